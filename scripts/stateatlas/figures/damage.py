"""Where edits hurt the model: their cost at every site, beside the site where the state is read best."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("ablations", "profiles")

_EDITS = {"top_direction": (style.VERMILLION, "o"), "row_space": (style.BLUE, "D")}


def draw(tables: dict, settings: dict) -> Figure:
    """Drop in percentage points at the training length, zero ablation, every seed a marker. Grey: range of
    random subspaces as large as the row space. Triangles at the top: the best-probe sites of the seeds."""
    rows = shown.of(shown.at_training_length(shown.drops(tables["ablations"], tables["profiles"])), method="zero")
    solved = shown.solved_seeds(tables["profiles"])
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=0.6)
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(ax, shown.of(rows, task=task, architecture=model), settings["layers"])
                style.note_unsolved(ax, solved.get((task, model)))
        figure.supylabel("drop in accuracy (percentage points)", fontsize=8)
        style.legend_below(
            figure, _handles(), 2, xlabel="site of the edit (emb: embedding, L0...: output of that block)"
        )
    return figure


def _panel(ax, rows, layers: int) -> None:
    _, rank = shown.random_ks(rows)
    style.band(ax, shown.of(rows, subspace="random", k=rank), "site", "drop")
    for (subspace, (color, marker)), shift in zip(_EDITS.items(), style.dodge(2, 0.3), strict=True):
        here = shown.of(rows, subspace=subspace)
        style.median_line(ax, here, "site", "drop", shift=shift, color=color, linewidth=1)
        style.scatter(ax, here["site"] + shift, here["drop"], color, marker, size=10)
    best = rows.loc[rows["best"], ["seed", "site"]].drop_duplicates()
    for site, count in best["site"].value_counts().items():
        ax.text(
            site,
            0.99,
            "▼" * count,
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=5.5,
            color=style.BLACK,
        )
    ax.set_xticks(range(layers + 1), [site_label(site) for site in range(layers + 1)])
    ax.margins(y=0.18)


def _handles() -> list[Artist]:
    edits = [style.key(name.replace("_", " "), color, "-", marker) for name, (color, marker) in _EDITS.items()]
    triangle = style.key("best-probe site, one a seed", line="", marker="v")
    return [*edits, style.patch("random, size of the row space"), triangle]
