"""What Mamba loses without its convolution, by task."""

from itertools import pairwise

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import TASKS, label, ordered
from stateatlas.statistics import student

TABLES = ("behaviour",)

_FULL, _FREE = "mamba", "mamba-noconv"
_MARGIN = -2  # percentage points: the bound of claim A10
_LOOKS = {_FULL: (style.VERMILLION, "-", "s"), _FREE: (style.BLUE, "--", "o")}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a task. Left: accuracy (%) by length, medians over seeds, every seed a marker, hollow where unsolved.
    Right: conv-free minus full with the same seed (percentage points) at the training length and in the mean over
    the longer ones, with mean and Student-t interval over seeds."""
    rows = shown.of(shown.trained(tables["behaviour"]), metric="accuracy")
    rows = rows[rows["architecture"].isin(_LOOKS)].assign(percent=lambda f: 100 * f["value"])
    tasks = ordered(settings["attribution"]["tasks"], TASKS)
    with style.look():
        figure = style.canvas(1.55 * len(tasks) + 0.75)
        axes = figure.subplots(len(tasks), 2, squeeze=False, width_ratios=[1.25, 1])
        for (left, right), task in zip(axes, tasks, strict=True):
            here = shown.of(rows, task=task)
            _accuracy(left, here)
            left.set_ylabel(f"{label(task)}\naccuracy (%)")
            _differences(right, here)
            for ax in (left, right):
                ax.grid(axis="y", color="#ececec", linewidth=0.6)
            if here.empty:
                style.note(left, "no run", color=style.GREY)
        axes[0, 1].set_title("conv-free $-$ full (points)", fontsize=8)
        axes[-1, 0].set_xlabel("length (tokens)")
        style.legend_below(figure, _handles(), 2)
    return figure


def _accuracy(ax, rows: pd.DataFrame) -> None:
    lengths = sorted(set(rows["length"]))
    step = min((b - a for a, b in pairwise(lengths)), default=1)
    solved = shown.solved_runs(rows)
    for (name, (color, line, marker)), shift in zip(_LOOKS.items(), (-0.12 * step, 0.12 * step), strict=True):
        mine = shown.of(rows, architecture=name)
        style.median_line(ax, mine, "length", "percent", shift=shift, color=color, linestyle=line)
        flags = {key[1]: flags for key, flags in solved.items()}.get(name, [])
        for (_, group), flag in zip(mine.groupby("seed"), flags, strict=True):
            style.scatter(ax, group["length"] + shift, group["percent"], color, marker, size=10, hollow=not flag)
    ax.set_xticks(lengths)


def _differences(ax, rows: pd.DataFrame) -> None:
    wide = rows.pivot_table(index=["length", "seed"], columns="architecture", values="percent")
    ax.axhline(0, color=style.GREY, linewidth=0.7)
    ax.axhline(_MARGIN, color=style.WARNING, linewidth=0.8, linestyle=":")
    ax.set(xlim=(-0.5, 1.5))
    ax.set_xticks([0, 1], ["training length\n(not judged)", "mean over\nlonger lengths"], fontsize=7)
    if not set(_LOOKS) <= set(wide):
        return
    gaps = (wide[_FREE] - wide[_FULL]).unstack("length").dropna()  # noqa: PD010, a row a seed that both have
    parts = (gaps[gaps.columns.min()], style.GREY), (gaps.drop(columns=gaps.columns.min()).mean(axis=1), style.BLACK)
    for x, (values, color) in enumerate(parts):
        shifts = style.dodge(len(values), 0.4)
        style.scatter(ax, x - 0.1 + shifts, values, color, size=11)
        if len(values) > 1:
            found = student(values)
            spread = [[found.value - found.low], [found.high - found.value]]
            ax.errorbar(
                [x + 0.25], [found.value], yerr=spread, fmt="D", color=color, markersize=3.5, capsize=2.5, linewidth=1
            )


def _handles() -> list[Artist]:
    lines = [style.key(label(name), *look_of) for name, look_of in _LOOKS.items()]
    return [
        *lines,
        style.key("unsolved seed", line="", marker="o", hollow=True),
        style.key("difference, one a seed", line="", marker="o"),
        style.key("mean and 95 % interval", line="-", marker="D"),
        style.key(f"{_MARGIN} points".replace("-", "−"), style.WARNING, ":"),
    ]
