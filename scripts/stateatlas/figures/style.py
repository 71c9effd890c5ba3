"""The shared look: colours that colour-blind readers can tell apart, a width that a phone shows without
shrinking the text away, and files that depend on nothing but the data."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stateatlas.names import label

WIDTH = 4.9  # inches; at this width 8 pt text is still read on a phone that is 360 pixels wide

# Okabe and Ito's palette (Color Universal Design, 2008). Its yellow is left out: too pale for lines on white.
BLUE, VERMILLION, ORANGE, GREEN, SKY, PURPLE = (
    "#0072B2",
    "#D55E00",
    "#E69F00",
    "#009E73",
    "#56B4E9",
    "#CC79A7",
)
BLACK, GREY, PALE, WARNING = "#222222", "#757575", "#d4d4d4", "#a33c00"

# One colour and one marker an architecture: warm for the SSMs, green and purple for the recurrent ones.
_ARCHITECTURES = {
    "transformer": (BLUE, "o"),
    "mamba": (VERMILLION, "s"),
    "mamba2": (ORANGE, "D"),
    "lstm": (GREEN, "^"),
    "gru": (PURPLE, "v"),
}
_TASKS = {"parity": BLUE, "s3": VERMILLION, "dyck": GREEN}

_LOOK = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same glyphs on every machine
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "#555555",
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.dpi": 200,
    "svg.hashsalt": "state-atlas",  # ids in the SVG are random without it
    "svg.fonttype": "path",
}


@contextmanager
def look() -> Iterator[None]:
    """The style, for drawing and for saving (ticks are made as late as that); nothing outside is changed."""
    with mpl.rc_context(_LOOK):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by its ending. Same figure, same bytes: no date, no version inside."""
    metadata = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
    ending = Path(path).suffix
    if ending not in metadata:
        raise ValueError(f"{path}: figures are saved as .png or .svg, not {ending or 'without an ending'!r}")
    with look():
        _freeze_layout(figure)
        figure.savefig(path, format=ending[1:], metadata=metadata[ending])


def _freeze_layout(figure: Figure) -> None:
    """Lay out once: the engine moves axes a little at every draw, so a second file would differ."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def canvas(height: float) -> Figure:
    """An empty figure of the shared width; `height` in inches. Call inside `look()`."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def colour(architecture: str) -> str:
    """The colour of an architecture; a variant (`mamba-stock`) has its parent's, a new one is grey."""
    return _ARCHITECTURES.get(architecture.split("-", maxsplit=1)[0], (GREY, "P"))[0]


def task_colour(task: str) -> str:
    """The colour of one of the paper's tasks; others are purple."""
    return _TASKS.get(task, PURPLE)


def marker(architecture: str) -> str:
    """The marker of an architecture; variants have their parent's."""
    return _ARCHITECTURES.get(architecture.split("-", maxsplit=1)[0], (GREY, "P"))[1]


def dashes(architecture: str) -> str:
    """Variants are dotted, so that they do not look like their parent."""
    return ":" if "-" in architecture else "-"


def grid(
    rows: list[str], columns: list[str], height: float = 1.15, legend: float = 0.6, sharey: bool | str = True
) -> tuple[Figure, dict]:
    """Small multiples on shared axes, a row each of `rows` and a column each of `columns` (printed as given).

    `height` of one row and `legend` of the room below, in inches; `sharey` as for matplotlib. Returns the
    figure and {(row, column): Axes}.
    """
    figure = canvas(height * max(len(rows), 1) + legend + 0.35)
    axes = figure.subplots(max(len(rows), 1), max(len(columns), 1), sharex=True, sharey=sharey, squeeze=False)
    panels = {(row, column): axes[i, j] for i, row in enumerate(rows) for j, column in enumerate(columns)}
    for j, column in enumerate(columns):
        axes[0, j].set_title(column, pad=11)  # room for a note above the panel
    for i, row in enumerate(rows):
        axes[i, 0].set_ylabel(label(row), color=BLACK, fontweight="bold")
    for ax in axes.flat:
        ax.grid(axis="y", color="#ececec", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, panels


def row_of_models(rows, ylabel: str, height: float, legend: float) -> tuple[Figure, dict[str, Axes]]:
    """One row of panels, one for every language model in `rows`: the figure and {architecture: Axes}."""
    names = list(dict.fromkeys(rows["architecture"]))
    figure, panels = grid([""], [label(name) for name in names], height=height, legend=legend)
    axes = {name: panels["", label(name)] for name in names}
    if names:
        axes[names[0]].set_ylabel(ylabel)
    return figure, axes


def median_line(ax: Axes, frame, x: str, y: str, *, shift: float = 0.0, **line) -> None:
    """A line through the medians over seeds, moved along x by `shift`.

    A mean would hide a cell in which some seeds learn and some do not.
    """
    if frame.empty:
        return
    middle = frame.groupby(x)[y].median()
    ax.plot(middle.index.to_numpy(float) + shift, middle.to_numpy(), **line)


def scatter(ax: Axes, x, y, color: str, marker: str = "o", *, size: float = 9, hollow: bool = False, **more) -> None:
    """Seeds as dots, with a thin white edge so that they can be counted where they touch."""
    face = "white" if hollow else color
    edge = color if hollow else "white"
    ax.scatter(
        x,
        y,
        s=size,
        marker=marker,
        facecolors=face,
        edgecolors=edge,
        linewidths=0.8 if hollow else 0.3,
        **{"zorder": 3, **more},
    )


def band(ax: Axes, frame, x: str, y: str) -> None:
    """The range of `y` over all draws and seeds, shaded, with its median as a thin line."""
    if frame.empty:
        return
    by = frame.groupby(x)[y]
    low, middle, high = by.min(), by.median(), by.max()
    if len(low) == 1:
        ax.vlines(low.index, low, high, color=PALE, linewidth=5, zorder=0.8)
        return
    ax.fill_between(low.index, low, high, color=PALE, alpha=0.65, linewidth=0, zorder=0.8)
    ax.plot(middle.index, middle, color=GREY, linewidth=0.8, zorder=0.9)


def note(ax: Axes, text: str, x: float = 0.04, y: float = 0.94, **more) -> None:
    """A short text in a corner of the panel, on a white ground."""
    where = {"ha": "left" if x < 0.5 else "right", "va": "top" if y > 0.5 else "bottom"}
    look_of = {
        "fontsize": 7,
        "color": BLACK,
        "bbox": {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
    }
    ax.text(x, y, text, transform=ax.transAxes, **{**where, **look_of, **more})


def note_unsolved(ax: Axes, solved: Iterable[bool] | None) -> None:
    """Say above the panel how many seeds solved the task, where not all did, and "no run" where there was
    none."""
    seeds = list(solved or [])
    above = {"x": 0.5, "y": 1.0, "ha": "center", "va": "bottom"}
    if not seeds:
        note(ax, "no run", color=GREY, **above)
    elif not all(seeds):
        note(ax, f"{sum(seeds)} of {len(seeds)} solved", color=WARNING, **above)


def key(
    text: str, color: str = BLACK, line: str = "-", marker: str = "", *, size: float = 4, hollow: bool = False
) -> Line2D:
    """An entry of a legend: a line, a marker, or both."""
    face = "white" if hollow else color
    look_of = {
        "color": color,
        "linestyle": line,
        "marker": marker,
        "markersize": size,
        "markerfacecolor": face,
    }
    return Line2D([], [], linewidth=1.1, label=text, **look_of)


def patch(text: str) -> Patch:
    """An entry of a legend for a shaded range."""
    return Patch(color=PALE, label=text)


def legend_below(figure: Figure, handles: list, columns: int = 3, xlabel: str | None = None) -> None:
    """The legend under the panels, where it hides nothing, headed by the label of the shared x axis.

    (A `supxlabel` would be drawn over it: the layout engine reserves no room for both.)
    """
    legend = figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        title=xlabel,
        handlelength=2.0,
        columnspacing=1.3,
        borderaxespad=0.1,
    )
    legend.get_title().set_fontsize(8)


def dodge(count: int, width: float) -> np.ndarray:
    """`count` shifts, evenly spread over `width`, centred at 0."""
    return (np.arange(count) - (count - 1) / 2) * (width / max(count, 1))
