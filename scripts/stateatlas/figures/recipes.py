"""Whether the published shapes belong to the task or to the recipe of training."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered

TABLES = ("recipes",)

_CHOSEN = "#ececec"
_METRICS = {"concentration": "concentration", "late_rise_margin": "late rise margin"}
# (task, metric) -> value and colour: claim A1 is on the others, A2 on the Transformer.
_BOUNDS = {("parity", "late_rise_margin"): (0, style.BLACK), ("parity", "concentration"): (0.6, style.BLUE)}


def draw(tables: dict, settings: dict) -> Figure:
    """Indices of the profile by the initial scale of the embedding, a column a learning rate (in units of the chosen
    one), a row a task and index. Every solved seed a marker; lines: medians. Shaded: the chosen recipe. A cross at
    the bottom: no seed solved the task."""
    grid, chosen = settings["recipes"], settings["training"]["embedding_std"]
    stds = sorted({chosen, *grid["embedding_std"]})
    rates = sorted({1.0, *grid["learning_rate"]})
    tasks, models = ordered(grid["tasks"], TASKS), ordered(grid["architectures"], ARCHITECTURES)
    keys = [(task, metric) for task in tasks for metric in _METRICS]
    rows, columns = (
        [f"{label(t)}\n{_METRICS[m]}" for t, m in keys],
        {rate: f"learning rate × {rate:g}" for rate in rates},
    )
    with style.look():
        figure, panels = style.grid(rows, list(columns.values()), height=1.3, legend=0.75, sharey="row")
        for (task, metric), row in zip(keys, rows, strict=True):
            here = shown.of(tables["recipes"], task=task, metric=metric)
            for rate, column in columns.items():
                ax = panels[row, column]
                if rate == 1:
                    ax.axvspan(stds.index(chosen) - 0.48, stds.index(chosen) + 0.48, color=_CHOSEN, zorder=0)
                if (task, metric) in _BOUNDS:
                    value, color = _BOUNDS[task, metric]
                    ax.axhline(value, color=color, linewidth=0.8, linestyle=":")
                for model, shift in zip(models, style.dodge(len(models), 0.8), strict=True):
                    _model(ax, shown.of(here, rate=rate, architecture=model), model, stds, shift)
                ax.set_xticks(range(len(stds)), [f"{std:g}" for std in stds])
                ax.set(xlim=(-0.5, len(stds) - 0.5), ylim=(-1.08, 1.08) if metric != "concentration" else (-0.04, 1.04))
            panels[row, columns[rates[0]]].set_ylabel(row, fontsize=7.5)
        style.legend_below(figure, _handles(models), 3, xlabel="standard deviation of the initial embedding")
    return figure


def _model(ax, rows: pd.DataFrame, model: str, stds: list[float], shift: float) -> None:
    places = {std: place for place, std in enumerate(stds)}
    rows = rows.assign(place=rows["embedding_std"].map(places).astype(float))
    color = style.colour(model)
    style.median_line(ax, rows, "place", "value", shift=shift, color=color, linewidth=0.9, alpha=0.8)
    style.scatter(ax, rows["place"] + shift, rows["value"], color, style.marker(model), size=11)
    lacking = [place + shift for place in places.values() if place not in set(rows["place"])]
    where = {"transform": ax.get_xaxis_transform(), "clip_on": False}
    ax.scatter(lacking, [0.05] * len(lacking), marker="x", s=12, color=color, linewidths=0.9, **where)


def _handles(models: list[str]) -> list[Artist]:
    lines = [style.key(label(model), style.colour(model), "-", style.marker(model)) for model in models]
    return [
        *lines,
        style.key("no solved seed", style.GREY, "", "x"),
        style.key("bound of A1, A2", style.GREY, ":"),
        Patch(color=_CHOSEN, label="chosen recipe"),
    ]
