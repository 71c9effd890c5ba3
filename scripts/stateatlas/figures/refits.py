"""Whether a probe that is fitted again recovers what the projection took from the first one."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("refits", "probes", "profiles")

_SUBSPACES = {"top_direction": (style.VERMILLION, "o"), "row_space": (style.BLUE, "D")}


def draw(tables: dict, settings: dict) -> Figure:
    """Probe accuracy (%) by site at the training length: before, after the projection, and refitted after it.
    Every seed is a marker. Grey: refitted after random subspaces as large as the row space, range over
    draws, one bar a seed."""
    rows = shown.at_training_length(shown.of(shown.trained(tables["refits"]), target="state"))
    rows = shown.one_half(rows, "measurement", "both")
    base = shown.base_lines(tables["probes"])
    solved = shown.solved_seeds(tables["profiles"])
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=1.0)
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(
                    ax,
                    shown.of(rows, task=task, architecture=model).assign(percent=lambda f: 100 * f["value"]),
                )
                if task in base:
                    ax.axhline(100 * base[task].iloc[0], color=style.GREY, linestyle="--", linewidth=0.8)
                ax.set_xticks(
                    range(settings["layers"] + 1),
                    [site_label(site) for site in range(settings["layers"] + 1)],
                )
                style.note_unsolved(ax, solved.get((task, model)))
        figure.supylabel("probe accuracy (%)", fontsize=8)
        style.legend_below(figure, _handles(), 2, xlabel="site (emb: embedding, L0...: output of that block)")
    return figure


def _panel(ax, rows) -> None:
    _, rank = shown.random_ks(rows)
    # A range a seed: one range over solved and unsolved seeds together would show neither.
    draws = (
        shown.of(rows, subspace="random", k=rank, metric="accuracy_refitted")
        .groupby(["seed", "site"])["percent"]
        .agg(["min", "max"])
    )
    ax.vlines(
        draws.index.get_level_values("site"),
        draws["min"] - 0.7,
        draws["max"] + 0.7,
        color=style.PALE,
        linewidth=5,
        zorder=0.8,
    )
    first = shown.of(rows, metric="accuracy_original")
    first = first[first["subspace"] != "random"].drop_duplicates(["seed", "site"])
    style.median_line(ax, first, "site", "percent", color=style.BLACK, linewidth=1)
    ax.scatter(first["site"], first["percent"], s=22, marker="_", color=style.BLACK, linewidths=1, zorder=2.5)
    for (subspace, (color, marker)), shift in zip(_SUBSPACES.items(), (-0.2, 0.2), strict=True):
        here = shown.of(rows, subspace=subspace)
        after, refitted = (
            shown.of(here, metric="accuracy_ablated"),
            shown.of(here, metric="accuracy_refitted"),
        )
        ax.scatter(after["site"] + shift, after["percent"], s=11, marker="x", color=color, linewidths=0.9, zorder=3)
        style.scatter(ax, refitted["site"] + shift, refitted["percent"], color, marker, size=12, hollow=True)


def _handles() -> list[Artist]:
    handles = [style.key("before (median and seeds)")]
    for name, (color, marker) in _SUBSPACES.items():
        words = name.replace("_", " ")
        handles.append(style.key(f"{words} projected out", color, "", "x"))
        handles.append(style.key(f"{words}, probe refitted", color, "", marker, hollow=True))
    return [
        *handles,
        style.patch("random subspace, refitted"),
        style.key("position + token", style.GREY, "--"),
    ]
