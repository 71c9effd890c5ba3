"""Whether a held-out task has the layer profile of the class that it was predicted to belong to."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("profiles",)

# Written down before the first run: claims A14 and A18. The strings of dyck-parity are Dyck's (claim A19).
_PREDICTED = {"mod3": "parity", "z6": "s3", "queue": "dyck", "code": "dyck"}
_SAME_STRINGS = {"dyck-parity": "dyck"}


def draw(tables: dict, settings: dict) -> Figure:
    """r by block of every held-out task (black; every solved seed a dot, line: their mean), a row an architecture,
    beside the mean profiles of the paper's tasks: thick the predicted one, thin the others."""
    rows = shown.of(shown.at_training_length(tables["profiles"]), metric="r", model="trained")
    rows = rows.assign(block=rows["site"] - 1)
    solved = shown.solved_seeds(tables["profiles"])
    tasks = ordered(settings["held_out"]["tasks"], TASKS)
    models = ordered(settings["held_out"]["architectures"], ARCHITECTURES)
    known = ordered(settings["tasks"], TASKS)
    with style.look():
        figure, panels = style.grid(models, [_title(task) for task in tasks], legend=0.75)
        for model in models:
            for task in tasks:
                ax = panels[model, _title(task)]
                for other in known:
                    _known(ax, shown.of(rows, task=other, architecture=model), other, _partner(task) == other)
                _held_out(ax, shown.of(rows, task=task, architecture=model), solved.get((task, model), []))
                style.note_unsolved(ax, solved.get((task, model)))
                ax.set_xticks(range(settings["layers"]), [site_label(x + 1) for x in range(settings["layers"])])
                ax.set(ylim=(-0.06, 1.08), yticks=[0, 0.5, 1])
        figure.supylabel("r: share of the readable state", fontsize=8)
        style.legend_below(figure, _handles(known), 3, xlabel="block")
    return figure


def _partner(task: str) -> str | None:
    """The paper's task whose profile stands out in the panel."""
    return _PREDICTED.get(task, _SAME_STRINGS.get(task))


def _title(task: str) -> str:
    if task in _PREDICTED:
        return f"{label(task)}\nlike {label(_PREDICTED[task])}?"
    return f"{label(task)}\n" + (f"strings of {label(_SAME_STRINGS[task])}" if task in _SAME_STRINGS else "")


def _known(ax, rows: pd.DataFrame, task: str, chosen: bool) -> None:
    mean = shown.of(rows, seed=-1).sort_values("block")
    ax.plot(
        mean["block"],
        mean["value"],
        color=style.task_colour(task),
        linewidth=3.2 if chosen else 0.9,
        alpha=0.55 if chosen else 0.9,
        zorder=1.5,
    )


def _held_out(ax, rows: pd.DataFrame, solved: list[bool]) -> None:
    kept = rows[[0 <= seed < len(solved) and solved[seed] for seed in rows["seed"]]]
    if kept.empty:
        return
    mean = kept.groupby("block")["value"].mean()
    ax.plot(mean.index, mean, color=style.BLACK, linewidth=1)
    style.scatter(ax, kept["block"], kept["value"], style.BLACK)


def _handles(known: list[str]) -> list[Artist]:
    lines = [style.key(label(task), style.task_colour(task)) for task in known]
    held_out = style.key("held-out task, seeds", style.BLACK, "-", "o")
    thick = style.key("thick: predicted, or same strings", style.GREY)
    thick.set(linewidth=3.2, alpha=0.55)
    return [*lines, held_out, thick]
