"""The inverse problem: how much of a wanted change so many sources reach, by the way in which they are found."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("inverse",)

_METHODS = {
    "sparse": ("least norm, refined", style.VERMILLION, "s"),
    "top": ("largest |a|, full strength", style.BLUE, "^"),
    "exhaustive": ("exhaustive patching", style.GREY, "o"),
}
_CLAIM = 90  # per cent of the wanted change


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: share of the wanted change that the first sources reach in the model, medians over prompts
    with 95 % intervals; above 100 % they overshoot. Written in: forward passes spent, and the side effect on other
    prompts in nats, means."""
    rows = shown.trained(tables["inverse"])
    with style.look():
        figure, panels = style.row_of_models(rows, "% of the wanted change", height=2.2, legend=0.75)
        for name, ax in panels.items():
            for place, (method, (_, color, marker)) in enumerate(_METHODS.items()):
                here = shown.of(rows, architecture=name, method=method)
                front = shown.of(here, metric="reached").sort_values("sources")
                x = front["sources"] + 0.1 * (place - 1)
                ax.vlines(x, 100 * front["low"], 100 * front["high"], color=color, linewidth=0.8)
                ax.plot(x, 100 * front["value"], color=color, marker=marker, markersize=3)
                spent = shown.of(here, sources=0).set_index("metric")["value"]
                if {"passes", "side_effect_nats"} <= set(spent.index):
                    told = f"{spent['passes']:.0f} passes, {spent['side_effect_nats']:.2f} nats"
                    style.note(ax, told, x=0.96, y=0.19 - 0.08 * place, va="bottom", color=color)
            ax.axhline(_CLAIM, color=style.WARNING, linestyle="--", linewidth=0.8)
            ax.set_yscale("log")
        keys = [style.key(text, color, marker=marker) for text, color, marker in _METHODS.values()]
        line = style.key("90 %", style.WARNING, "--")
        style.legend_below(figure, [*keys, line], 2, xlabel="sources")
    return figure
