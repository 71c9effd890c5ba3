"""Whether the direction that a probe finds at the training length is still needed at longer lengths."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("ablations", "probes", "profiles")

_METHODS = {"zero": ("o", style.VERMILLION), "mean": ("D", style.BLUE), "resample": ("^", style.GREEN)}


def draw(tables: dict, settings: dict) -> Figure:
    """Drop (percentage points) after the top direction is removed at the best-probe site, by length and by
    method.

    Every seed is a marker, hollow where the clean model is less than 20 points above the position + token
    probe (there is then little to lose). Grey: range of single random directions, draws and seeds, zero
    ablation.
    """
    rows = shown.drops(tables["ablations"], tables["profiles"])
    rows = rows[rows["best"] & (rows["k"] == 1)]
    base = shown.base_lines(tables["probes"])
    solved = shown.solved_seeds(tables["profiles"])
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=0.85)
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(ax, shown.of(rows, task=task, architecture=model), base.get(task))
                style.note_unsolved(ax, solved.get((task, model)))
        figure.supylabel("drop in accuracy (percentage points)", fontsize=8)
        style.legend_below(figure, _handles(), 3, xlabel="length / training length")
    return figure


def _panel(ax, rows, base) -> None:
    rows = rows.assign(factor=rows["length"] / rows["length"].min())
    style.band(ax, shown.of(rows, subspace="random", method="zero"), "factor", "drop")
    top = shown.of(rows, subspace="top_direction")
    for (method, (marker, color)), shift in zip(_METHODS.items(), style.dodge(3, 0.33), strict=True):
        here = shown.of(top, method=method)
        style.median_line(ax, here, "factor", "drop", shift=shift, color=color, linewidth=0.9)
        room = here["clean"] - (here["length"].map(base) if base is not None else 0)
        for hollow, group in ((False, here[room >= 0.2]), (True, here[~(room >= 0.2)])):
            style.scatter(ax, group["factor"] + shift, group["drop"], color, marker, size=10, hollow=hollow)
    ax.set_xticks([1, 1.5, 2, 2.5, 3], ["1", "1.5", "2", "2.5", "3"])


def _handles() -> list[Artist]:
    methods = [style.key(f"top direction, {name}", color, "-", marker) for name, (marker, color) in _METHODS.items()]
    hollow = style.key("clean < base + 20 pp", style.GREY, "", "o", hollow=True)
    return [*methods, style.patch("random directions"), hollow]
