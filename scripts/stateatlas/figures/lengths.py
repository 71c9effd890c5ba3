"""The models' own accuracy at the training length and at longer ones."""

from itertools import pairwise

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("behaviour", "probes")


def draw(tables: dict, settings: dict) -> Figure:
    """A panel a task: median over seeds by architecture, every seed a marker; dashed: the position + token
    probe."""
    rows = shown.of(shown.trained(tables["behaviour"]), metric="accuracy")
    base = shown.base_lines(tables["probes"])
    solved = shown.solved_runs(tables["behaviour"])
    tasks = [task for task in ordered(settings["tasks"], TASKS) if task in set(rows["task"])]
    models = ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure = style.canvas(1.75 * max(len(tasks), 1) + 0.7)
        axes = figure.subplots(max(len(tasks), 1), 1, squeeze=False)[:, 0]
        for ax, task in zip(axes, tasks, strict=False):
            here = shown.of(rows, task=task)
            lengths = sorted(set(here["length"]))
            gap = min((b - a for a, b in pairwise(lengths)), default=1)
            for model, shift in zip(models, style.dodge(len(models), 0.55 * gap), strict=True):
                _model(ax, shown.of(here, architecture=model), model, shift, solved.get((task, model), []))
            if task in base:
                ax.plot(base[task].index, 100 * base[task], "--", color=style.GREY, linewidth=1)
            ax.set_xticks(lengths)
            ax.set_ylabel(f"{label(task)}\naccuracy (%)")
            ax.set_ylim(min(100 * here["value"].min() - 4, 100 * base[task].min() - 4 if task in base else 100), 102)
            ax.grid(axis="y", color="#ececec", linewidth=0.6)
        axes[-1].set_xlabel("length (tokens); the shortest is the training length")
        style.legend_below(figure, _handles(models))
    return figure


def _model(ax, rows, model: str, shift: float, solved: list[bool]) -> None:
    """Filled markers for solved seeds, hollow ones for the others."""
    rows = rows.assign(percent=100 * rows["value"])
    line = {"color": style.colour(model), "linestyle": style.dashes(model), "alpha": 0.8}
    style.median_line(ax, rows, "length", "percent", shift=shift, **line)
    for seed, group in rows.groupby("seed"):
        hollow = seed < len(solved) and not solved[seed]
        look_of = {"color": style.colour(model), "marker": style.marker(model), "size": 13, "hollow": hollow}
        style.scatter(ax, group["length"] + shift, group["percent"], **look_of)


def _handles(models: list[str]) -> list[Artist]:
    lines = [style.key(label(m), style.colour(m), style.dashes(m), style.marker(m)) for m in models]
    base = style.key("position + token", style.GREY, "--")
    return [*lines, base, style.key("unsolved seed", line="", marker="o", hollow=True)]
