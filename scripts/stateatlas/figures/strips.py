"""Probe accuracy layer by layer, in the layout of the paper's own table: models by row, blocks by column."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("probes", "profiles")

# Light enough throughout for dark numbers and dots.
_COLOURS = LinearSegmentedColormap.from_list("accuracy", ["#fbfcfe", "#d9e8f5", "#8fc0e3", "#4b9fd6"])


def draw(tables: dict, settings: dict) -> Figure:
    """Medians over seeds in per cent, every seed a dot on a line from 0 to 100 %; beside them the paper's
    table and the reference run, where there are any."""
    runs = [(f"This run ({settings['scale']})", *_measured(tables))]
    printed = settings["published"].get("encoding", {}).get("probe_accuracy", {}).get("cells", {})
    if printed:
        runs.append(("Paper, v1", _printed(printed), {}))
    if set(TABLES) <= set(settings["reference"]):
        runs.append(("Workstation", *_measured(settings["reference"])))
    tasks = ordered(settings["tasks"], TASKS)
    models = ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure = style.canvas(0.36 * len(models) * len(tasks) + 0.35 * len(tasks) + 0.5)
        axes = figure.subplots(len(tasks), len(runs), squeeze=False, width_ratios=[1.35] + [1] * (len(runs) - 1))
        for i, task in enumerate(tasks):
            for j, (title, values, solved) in enumerate(runs):
                _table(axes[i, j], task, models, settings["layers"], (values, solved))
                axes[i, j].set_yticks(range(len(models)), [label(m) for m in models] if j == 0 else [])
                if i == 0:
                    axes[i, j].set_title(title, pad=8)
            axes[i, 0].set_ylabel(label(task), fontweight="bold")
        figure.supxlabel("probe accuracy (%) on the output of each block; dots: seeds, from 0 to 100 %", fontsize=7.5)
    return figure


def _measured(tables: dict) -> tuple[dict, dict]:
    """({(task, architecture, block): accuracies by seed}, solved seeds) at the training length."""
    rows = shown.of(shown.trained(tables["probes"]), target="state", control="none", metric="accuracy")
    rows = shown.at_training_length(shown.one_half(rows, "both", "measurement")).sort_values("seed")
    rows = rows[rows["site"] >= 1]
    values = {(t, a, s - 1): list(g["value"]) for (t, a, s), g in rows.groupby(["task", "architecture", "site"])}
    return values, shown.solved_seeds(tables["profiles"])


def _printed(published: dict) -> dict:
    return {
        (task, architecture, block): [value / 100]
        for task, models in published.items()
        for architecture, row in models.items()
        for block, value in enumerate(row)
    }


def _table(ax: Axes, task: str, models: list[str], layers: int, run: tuple[dict, dict]) -> None:
    """One task of one run; cells without a number stay empty, rows with unsolved seeds say so."""
    values, solved = run
    for y, model in enumerate(models):
        for x in range(layers):
            _cell(ax, x, y, values.get((task, model, x), []), measured=bool(solved))
        seeds = solved.get((task, model), [])
        if not all(seeds):
            ax.text(
                layers - 0.45,
                y,
                f"{sum(seeds)}/{len(seeds)}\nsolved",
                fontsize=6.5,
                color=style.WARNING,
                va="center",
                linespacing=0.95,
            )
    if not any(key[0] == task for key in values):
        ax.text(
            (layers - 1) / 2,
            (len(models) - 1) / 2,
            "not printed" if not solved else "no run",
            ha="center",
            va="center",
            color=style.GREY,
        )
    ax.set(xlim=(-0.55, layers - 0.45), ylim=(len(models) - 0.45, -0.55))
    ax.set_xticks(range(layers), [site_label(x + 1) for x in range(layers)])
    ax.tick_params(length=0, labelbottom=False, labeltop=True, pad=1)
    ax.spines[:].set_visible(False)


def _cell(ax: Axes, x: int, y: int, seeds: list[float], measured: bool) -> None:
    if not seeds:
        ax.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor="#f6f6f6", linewidth=0))
        return
    middle = float(np.median(seeds))
    ax.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=_COLOURS(middle), linewidth=0))
    ax.text(
        x,
        y - (0.12 if measured else 0),
        f"{100 * middle:.0f}",
        ha="center",
        va="center",
        fontsize=8,
        color=style.BLACK,
    )
    if measured:
        ax.plot([x - 0.4, x + 0.4], [y + 0.3, y + 0.3], color="#5b6b78", linewidth=0.5, zorder=1.5)
        style.scatter(ax, x - 0.4 + 0.8 * np.asarray(seeds), np.full(len(seeds), y + 0.3), style.BLACK, size=8)
