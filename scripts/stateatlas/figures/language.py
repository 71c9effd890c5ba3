"""Language models tuned on a task: readable, needed and patched, block by block."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.drops import middle
from stateatlas.figures import style
from stateatlas.names import TASKS, label, ordered

TABLES = ("drops", "inlp", "patches", "probes", "profiles")

_COLUMNS = {
    "probe": ("probe\naccuracy", style.BLUE, "o"),
    "drop": ("damage, top\ndirection", style.ORANGE, "D"),
    "excess": ("damage, INLP\n$-$ random", style.VERMILLION, "s"),
    "patch": ("patching,\nread later", style.GREEN, "^"),
}
_BOUNDS = {"drop": 0.3, "excess": 0.2, "patch": 0.9}  # of claims A11, A16 and A13
_LIMITS = (-0.35, 1.25)  # a patch can do more than the other run's state; what is beyond stands at the edge


def draw(tables: dict, settings: dict) -> Figure:
    """A row a task and language model, by relative depth; every seed a marker with its 95 % interval, lines through
    the medians. Shaded: the middle half of the depth, where A11 looks for a bottleneck. Dotted: the claims' bounds."""
    found = {name: rows.assign(depth=_depth(rows)) for name, rows in _measured(tables).items()}
    cells = sorted(set(zip(found["drop"]["task"], found["drop"]["architecture"], strict=True)))
    tasks = ordered((task for task, _ in cells), TASKS)
    rows = {cell: _row(*cell, tables["profiles"]) for task in tasks for cell in cells if cell[0] == task}
    titles = [title for title, *_ in _COLUMNS.values()]
    with style.look():
        figure, panels = style.grid(list(rows.values()), titles, height=0.72, legend=0.75)
        for (task, model), row in rows.items():
            blocks = len(set(shown.of(found["drop"], task=task, architecture=model)["site"]))
            for name, (title, color, marker) in _COLUMNS.items():
                ax, here = panels[row, title], shown.of(found[name], task=task, architecture=model)
                if inner := middle(blocks):
                    ax.axvspan((inner[0] - 0.5) / blocks, (inner[-1] + 0.5) / blocks, color="#f3f3f3", zorder=0.4)
                _panel(ax, here, color, marker, _BOUNDS.get(name))
            panels[row, titles[0]].set_ylabel(row, fontsize=7, rotation=0, ha="right", va="center")
        for ax in list(panels.values())[:1]:  # the others share its axes
            ax.set(xlim=(0, 1.08), ylim=(_LIMITS[0] - 0.05, _LIMITS[1] + 0.05), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            ax.set_xticklabels(["0", ".5", "1"])
        style.legend_below(figure, _handles(), 3, xlabel="depth: output of that share of the blocks")
    return figure


def _row(task: str, model: str, profiles: pd.DataFrame) -> str:
    """The name of a row, with the token accuracy of the tuned models where not all seeds solved the task."""
    solved = shown.solved_seeds(profiles).get((task, model), [])
    return f"{label(task)}{'' if solved and all(solved) else f' ({sum(solved)}/{len(solved)})'}\n{label(model)}"


def _measured(tables: dict) -> dict[str, pd.DataFrame]:
    """The rows of each column, for the models that `drops` has."""
    drop = shown.of(shown.trained(tables["drops"]), metric="drop")
    models = set(drop["architecture"])
    probe = shown.of(shown.trained(tables["probes"]), metric="accuracy", control="none", target="state")
    probe = shown.at_training_length(shown.one_half(probe, "measurement"))
    patch = shown.of(shown.trained(tables["patches"]), metric="recovery", direction="denoise", read="later")
    patch = shown.of(patch, half="measurement", status="evidence")
    excess = shown.of(shown.trained(tables["inlp"]), metric="excess_damage")
    every = {"probe": probe, "drop": drop, "excess": excess, "patch": patch}
    return {n: rows[rows["architecture"].isin(models) & (rows["site"] >= 1)] for n, rows in every.items()}


def _depth(rows: pd.DataFrame) -> pd.Series:
    """The share of the blocks that have run; recovery ends one block earlier."""
    last = rows.groupby(["task", "architecture", "seed"])["site"].transform("max")
    return rows["site"] / (last + 1 if "status" in rows else last)


def _panel(ax, rows: pd.DataFrame, color: str, marker: str, bound: float | None) -> None:
    ax.axhline(0, color=style.GREY, linewidth=0.7)
    if bound is not None:
        ax.axhline(bound, color=style.BLACK, linewidth=0.7, linestyle=":")
    rows = rows.assign(**{column: rows[column].clip(*_LIMITS) for column in ("value", "low", "high")})
    style.median_line(ax, rows, "depth", "value", color=color, linewidth=1)
    ax.vlines(rows["depth"], rows["low"], rows["high"], color=color, linewidth=0.7)
    style.scatter(ax, rows["depth"], rows["value"], color, marker, size=9)


def _handles() -> list[Artist]:
    names = {"probe": "readable", "drop": "single direction", "excess": "INLP beyond random", "patch": "recovered"}
    keys = [style.key(names[name], color, "-", marker) for name, (_, color, marker) in _COLUMNS.items()]
    return [*keys, style.key("bound of the claim", style.BLACK, ":"), style.patch("middle half of the depth")]
