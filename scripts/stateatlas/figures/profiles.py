"""How the state builds up from block to block, for the tasks side by side."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("profiles",)


def draw(tables: dict, settings: dict) -> Figure:
    """r by block (0: no better than position + token, 1: as good as this model's best block), one row an
    architecture.

    Line: mean over solved seeds; every solved seed a dot; dashed: seed 0 trained on to the cap. The table at
    the right prints concentration (largest rise) and centre, in brackets those of the capped model, and the
    paper's; a fraction behind the task counts the solved seeds where not all are.
    """
    rows = shown.at_training_length(tables["profiles"])
    solved = shown.solved_seeds(tables["profiles"])
    paper = settings["published"].get("encoding", {}).get("profile_indices", {}).get("concentration", {})
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure = style.canvas(1.25 * len(models) + 0.85)
        axes = figure.subplots(len(models), 2, sharex="col", sharey="col", squeeze=False, width_ratios=[1, 1.3])
        for (ax, side), model in zip(axes, models, strict=True):
            for task, shift in zip(tasks, style.dodge(len(tasks), 0.24), strict=True):
                _curves(
                    ax,
                    shown.of(rows, task=task, architecture=model),
                    solved.get((task, model), []),
                    style.task_colour(task),
                    shift,
                )
            ax.set_xticks(range(settings["layers"]), [site_label(x + 1) for x in range(settings["layers"])])
            ax.set(ylim=(-0.06, 1.08), yticks=[0, 0.5, 1])
            ax.set_ylabel(label(model), fontweight="bold")
            ax.grid(axis="y", color="#ececec", linewidth=0.6)
            lines = [_indices(rows, task, model, solved.get((task, model), []), paper) for task in tasks]
            _print(side, lines, heading=model == models[0])
        figure.supylabel("r: share of the readable state", fontsize=8)
        style.legend_below(figure, _handles(tasks), len(tasks) + 1)
    return figure


def _curves(ax, rows: pd.DataFrame, solved: list[bool], color: str, shift: float) -> None:
    r = shown.of(rows, metric="r").assign(block=lambda f: f["site"] - 1)
    kept = shown.trained(r)
    kept = kept[[seed < len(solved) and solved[seed] for seed in kept["seed"]]]
    if kept.empty:
        return
    mean = kept.groupby("block")["value"].mean()
    ax.plot(mean.index + shift, mean, color=color)
    style.scatter(ax, kept["block"] + shift, kept["value"], color, size=11)
    capped = shown.of(r, model="capped").sort_values("block")
    ax.plot(
        capped["block"] + shift,
        capped["value"],
        color=color,
        linestyle="--",
        linewidth=1,
        marker="x",
        markersize=3.5,
    )


def _indices(rows: pd.DataFrame, task: str, model: str, solved: list[bool], paper: dict) -> tuple[str, ...]:
    """(task, its label, concentration, centre, the paper's concentration) as texts; unsolved seeds are
    counted."""
    here = shown.of(rows, task=task, architecture=model)

    def value(metric: str, **who) -> str:
        found = shown.of(here, metric=metric, **who)["value"]
        return f"{found.iloc[0]:.2f}" if len(found) else ""

    def both(metric: str) -> str:
        capped = value(metric, model="capped")
        return value(metric, model="trained", seed=-1) + (f" ({capped})" if capped else "")

    printed = paper.get(task, {}).get(model)
    tail = f"{printed:.2f}" if printed is not None else ""
    count = f"{sum(solved)} of {len(solved)} solved" if solved else "no run"
    if not any(solved):
        return task, label(task), count, "", tail
    name = label(task) + ("" if all(solved) else f" ({sum(solved)}/{len(solved)})")
    return task, name, both("concentration"), both("centre"), tail


def _print(ax, lines: list[tuple[str, ...]], heading: bool) -> None:
    """A small table in place of a panel; the columns stand at fixed places so that the rows of all panels
    align."""
    ax.set_axis_off()
    places = (0.0, 0.26, 0.57, 0.9)
    if heading:
        for place, text in zip(places[1:], ("concen-\ntration", "centre", "paper's\nconc."), strict=True):
            ax.text(
                place,
                1.04,
                text,
                transform=ax.transAxes,
                fontsize=7,
                color=style.GREY,
                va="bottom",
                linespacing=0.95,
            )
    for i, line in enumerate(lines):
        for place, text in zip(places, line[1:], strict=True):
            shade = style.task_colour(line[0]) if place == 0 else style.BLACK
            ax.text(place, 0.78 - 0.28 * i, text, transform=ax.transAxes, fontsize=7.5, color=shade, va="center")


def _handles(tasks: list[str]) -> list[Artist]:
    lines = [style.key(label(task), style.task_colour(task), "-", "o") for task in tasks]
    return [*lines, style.key("seed 0 at the cap", style.GREY, "--", "x")]
