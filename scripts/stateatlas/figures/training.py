"""How training went: validation accuracy against step, for every seed."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("training", "behaviour")


def draw(tables: dict, settings: dict) -> Figure:
    """A line a seed, at the full training length. A dot where a seed stopped early, a cross where it met the
    cap."""
    rows = shown.trained(tables["training"])
    solved = shown.solved_runs(tables["behaviour"])
    tasks, models = ordered(settings["tasks"], TASKS), ordered(settings["architectures"], ARCHITECTURES)
    with style.look():
        figure, panels = style.grid(models, [label(task) for task in tasks])
        for model in models:
            for task in tasks:
                ax = panels[model, label(task)]
                _panel(ax, shown.of(rows, task=task, architecture=model), style.colour(model))
                seeds = solved.get((task, model), [])
                text = f"{sum(seeds)}/{len(seeds)} solved" if seeds else "no run"
                style.note(
                    ax,
                    text,
                    x=0.5,
                    y=1.0,
                    ha="center",
                    va="bottom",
                    color=style.BLACK if seeds and all(seeds) else style.WARNING,
                )
                ax.set_xscale("log")
                ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
                ax.xaxis.set_major_formatter("{x:g}")
                ax.xaxis.set_minor_formatter(NullFormatter())
        figure.supylabel("validation accuracy (%)", fontsize=8)
        style.legend_below(figure, _handles(), 2, xlabel="training step")
    return figure


def _panel(ax, rows, color: str) -> None:
    ax.axhline(99.5, color=style.GREY, linewidth=0.6, linestyle=":")
    for cap in set(shown.of(rows, metric="cap")["value"]):
        ax.axvline(cap, color=style.BLACK, linewidth=0.8, linestyle="--")
    caps = shown.of(rows, metric="cap").set_index("seed")["value"]
    stops = shown.of(rows, metric="stop_step").set_index("seed")["value"]
    curves = shown.of(rows, metric="validation_accuracy").sort_values("step")
    for seed, curve in curves[curves["step"] > 0].groupby("seed"):
        ax.plot(curve["step"], 100 * curve["value"], color=color, linewidth=0.9, alpha=0.85)
        if seed in stops.index:
            end = 100 * curve["value"].iloc[-1]
            if stops[seed] < caps.get(seed, float("inf")):
                style.scatter(ax, [stops[seed]], [end], style.BLACK, size=13)
            else:
                ax.scatter([stops[seed]], [end], s=20, marker="x", color=style.WARNING, linewidths=1.2, zorder=3)


def _handles() -> list[Artist]:
    stopped, capped = (
        style.key("stopped early", line="", marker="o"),
        style.key("met the cap", style.WARNING, "", "x"),
    )
    return [stopped, capped, style.key("cap", line="--"), style.key("99.5 %", style.GREY, ":")]
