"""How much of an answer comes back when one position's state is taken from another run."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("patches", "profiles")

_READS = {"patched": (style.BLUE, "o"), "later": (style.VERMILLION, "s")}
_DIRECTIONS = {"denoise": ("-", False), "noise": ("--", True)}
_BOUND = 0.9  # of claim A13, for the best earlier site, read at later positions
_LIMITS = (-0.4, 1.4)  # beyond, a model has no gap to recover and the share says nothing


def draw(tables: dict, settings: dict) -> Figure:
    """Recovered share of the logit gap by patched site, read at the patched (middle) position and at later ones;
    every seed a marker with its 95 % interval, lines through the medians. Filled: clean into corrupt, hollow:
    corrupt into clean. Hatched: sites whose values hold by construction. What is beyond the axis stands at its edge."""
    rows = shown.of(shown.trained(tables["patches"]), metric="recovery", half="both")
    for column in ("value", "low", "high"):
        rows = rows.assign(**{column: rows[column].clip(*_LIMITS)})
    solved = shown.solved_seeds(tables["profiles"])
    edited = settings["edited"]
    tasks, models = ordered(edited["tasks"], TASKS), ordered(edited["architectures"], ARCHITECTURES)
    sites = range(settings["layers"] + 1)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks], legend=0.9)
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(ax, shown.of(rows, task=task, architecture=model))
                ax.tick_params(axis="x", labelsize=6.5)
                style.note_unsolved(ax, solved.get((task, model)))
        for ax in list(panels.values())[:1]:  # the others share its axes
            ax.set_xticks(sites, [site_label(site) for site in sites])
            ax.set(xlim=(-0.5, settings["layers"] + 0.5), ylim=(_LIMITS[0] - 0.06, _LIMITS[1] + 0.06))
        figure.supylabel("share of the logit gap recovered", fontsize=8)
        style.legend_below(figure, _handles(), 2, xlabel="patched site (emb: embedding, L0...: output of that block)")
    return figure


def _panel(ax, rows: pd.DataFrame) -> None:
    for y in (0, 1):
        ax.axhline(y, color=style.GREY, linewidth=0.7)
    ax.axhline(_BOUND, color=style.VERMILLION, linewidth=0.7, linestyle=":")
    for site in set(shown.of(rows, status="by construction")["site"]):
        ax.axvspan(
            site - 0.5, site + 0.5, facecolor="none", edgecolor=style.PALE, hatch="////", linewidth=0, zorder=0.5
        )
    shifts = iter(style.dodge(4, 0.6))
    for read, (color, marker) in _READS.items():
        for direction, (line, hollow) in _DIRECTIONS.items():
            shift = next(shifts)
            here = shown.of(rows, read=read, direction=direction)
            style.median_line(ax, here, "site", "value", shift=shift, color=color, linestyle=line, linewidth=0.9)
            ax.vlines(here["site"] + shift, here["low"], here["high"], color=color, linewidth=0.6)
            style.scatter(ax, here["site"] + shift, here["value"], color, marker, size=8, hollow=hollow)


def _handles() -> list[Artist]:
    names = {"patched": "read at the patched position", "later": "read at later positions"}
    reads = [style.key(names[read], color, "-", marker) for read, (color, marker) in _READS.items()]
    return [
        *reads,
        style.key("clean into corrupt", style.GREY, "-", "o"),
        style.key("corrupt into clean", style.GREY, "--", "o", hollow=True),
        Patch(facecolor="none", edgecolor=style.GREY, hatch="////", linewidth=0, label="by construction"),
        style.key("bound: .9 at later positions", style.VERMILLION, ":"),
    ]
