"""What INLP takes out step by step: what a probe still reads, and what the model still does."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("erasures", "probes", "profiles")

_METRICS = {"probe_accuracy": (style.BLUE, "o"), "accuracy": (style.VERMILLION, "s")}


def draw(tables: dict, settings: dict) -> Figure:
    """Accuracy (%) against the share of dimensions taken out, k / d, at the last block: of a probe fitted on what is
    left (blue) and of the model itself (red). Every seed a curve, a marker a step. Stars: LEACE, at k = its rank.
    Grey: the model after random subspaces of the same k, range over draws and seeds; dotted: a probe after one of
    them. Thin: the model's own curve at earlier blocks."""
    rows = shown.at_training_length(shown.one_half(shown.trained(tables["erasures"]), "measurement", "both"))
    rows = rows.assign(share=rows["k"] / settings["width"], percent=100 * rows["value"])
    base = shown.base_lines(tables["probes"])
    solved = shown.solved_seeds(tables["profiles"])
    edited = settings["edited"]
    tasks, models = ordered(edited["tasks"], TASKS), ordered(edited["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=1.1)
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(ax, shown.of(rows, task=task, architecture=model), settings["layers"])
                if task in base:
                    ax.axhline(100 * base[task].iloc[0], color=style.GREY, linestyle="--", linewidth=0.8)
                style.note_unsolved(ax, solved.get((task, model)))
        for ax in list(panels.values())[:1]:  # the others share its axes
            ax.set(xlim=(-0.02, 0.52), ylim=(0, 105))
            ax.set_xticks([0, 0.25, 0.5], ["0", "¼", "½"])
        figure.supylabel("accuracy (%)", fontsize=8)
        style.legend_below(figure, _handles(), 2, xlabel="share of the dimensions taken out, k / d")
    return figure


def _panel(ax, rows: pd.DataFrame, last: int) -> None:
    for _, curve in shown.of(rows[rows["site"].between(1, last - 1)], eraser="inlp", metric="accuracy").groupby(
        ["site", "seed"]
    ):
        ax.plot(curve["share"], curve["percent"], color=style.VERMILLION, linewidth=0.5, alpha=0.45, zorder=1)
    here = shown.of(rows, site=last)
    style.band(ax, shown.of(here, eraser="random", metric="accuracy"), "share", "percent")
    probe = shown.of(here, eraser="random", metric="probe_accuracy")
    style.median_line(ax, probe, "share", "percent", color=style.BLUE, linestyle=":", linewidth=1)
    for metric, (color, marker) in _METRICS.items():
        curves, points = (shown.of(here, metric=metric, eraser=name) for name in ("inlp", "leace"))
        for _, curve in curves.groupby("seed"):
            ax.plot(curve["share"], curve["percent"], color=color, linewidth=0.9)
        style.scatter(ax, curves["share"], curves["percent"], color, marker, size=6)
        style.scatter(ax, points["share"], points["percent"], color, "*", size=34, zorder=4)


def _handles() -> list[Artist]:
    (blue, circle), (red, square) = _METRICS.values()
    thin = style.key("model, INLP at earlier blocks", red)
    thin.set(linewidth=0.5, alpha=0.6)
    return [
        style.key("probe after INLP, last block", blue, "-", circle),
        style.key("model after INLP, last block", red, "-", square),
        thin,
        style.key("LEACE (probe blue, model red)", line="", marker="*", size=6),
        style.key("probe after a random subspace", blue, ":"),
        style.patch("model after random subspaces"),
        style.key("position + token", style.GREY, "--"),
    ]
