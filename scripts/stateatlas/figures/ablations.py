"""What it costs the model to lose a subspace at its best-probe site, against the size of the subspace."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("ablations", "profiles")

_CURVES = {"probe_singular": style.VERMILLION, "pca": style.BLUE}
_POINTS = {"top_direction": ("*", style.BLACK, 34), "row_space": ("s", style.BLACK, 15)}
_LINES = {"zero": "-", "mean": "--", "resample": ":"}


def draw(tables: dict, settings: dict) -> Figure:
    """Drop in percentage points at the training length. Seeds are dots for zero ablation; mean and resample
    ablation are lines through the medians. Grey: range of random subspaces of the same size, zero
    ablation, draws and seeds."""
    rows = shown.at_training_length(shown.drops(tables["ablations"], tables["profiles"]))
    rows = rows[rows["best"]]
    solved = shown.solved_seeds(tables["profiles"])
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=0.95)
        for (model, task), ax in (
            (key, panels[key[0], label(key[1])]) for key in ((m, t) for m in models for t in tasks)
        ):
            _panel(ax, shown.of(rows, task=task, architecture=model))
            style.note_unsolved(ax, solved.get((task, model)))
        for ax in panels.values():
            ax.set_xscale("log", base=2)
            ks = sorted(k for k in set(rows["k"]) if k & (k - 1) == 0)
            ax.set_xticks(ks, [str(k) for k in ks])
            ax.minorticks_off()
        figure.supylabel("drop in accuracy (percentage points)", fontsize=8)
        style.legend_below(figure, _handles(), 3, xlabel="size k of the subspace (directions)")
    return figure


def _panel(ax, rows) -> None:
    zero = shown.of(rows, method="zero")
    style.band(ax, shown.of(zero, subspace="random"), "k", "drop")
    for method, line in _LINES.items():
        here = shown.of(rows, method=method)
        for subspace, color in _CURVES.items():
            curve = shown.of(here, subspace=subspace)
            style.median_line(ax, curve, "k", "drop", color=color, linestyle=line, linewidth=1.2)
            if method == "zero":
                style.scatter(ax, curve["k"], curve["drop"], color)
        for subspace, (marker, color, size) in _POINTS.items():
            point = shown.of(here, subspace=subspace)
            if method == "zero":
                style.scatter(ax, point["k"], point["drop"], color, marker, size=size, zorder=4)


def _handles() -> list[Artist]:
    names = {
        "probe_singular": "probe singular",
        "pca": "PCA",
        "top_direction": "top direction",
        "row_space": "row space",
    }
    curves = [style.key(names[subspace], color) for subspace, color in _CURVES.items()]
    points = [style.key(names[s], color, "", marker, size=size**0.5) for s, (marker, color, size) in _POINTS.items()]
    methods = [style.key(method, style.GREY, line) for method, line in _LINES.items()]
    gap = style.key(" ", line="")  # so that the three methods stand in one column
    return [*curves, style.patch("random subspaces"), *points, gap, *methods]
