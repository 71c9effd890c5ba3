"""The error of superposition against the size of the two sources."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("superposition",)

_PAIRS = {
    "same_site": ("same site and token", style.VERMILLION, "s"),
    "same_layer": ("same site, two tokens", style.BLUE, "o"),
    "across_layers": ("two sites", style.GREEN, "^"),
}
_CLAIM = 0.2


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: what two sources do together beyond the sum of each, over the sum of their sizes, in per cent.
    Medians with 95 % intervals; dotted: what the mixed second derivative alone says; dashed: the 20 % of the paper."""
    rows = shown.trained(tables["superposition"])
    with style.look():
        figure, panels = style.row_of_models(rows, "error (%)", height=2.0, legend=0.65)
        for name, ax in panels.items():
            for pair, (_, color, marker) in _PAIRS.items():
                here = shown.of(rows, architecture=name, pair=pair).sort_values("eps")
                found = shown.of(here, metric="median_superposition_error")
                ax.vlines(found["eps"], 100 * found["low"], 100 * found["high"], color=color, linewidth=0.8)
                ax.plot(found["eps"], 100 * found["value"], color=color, marker=marker, markersize=3)
                second = shown.of(here, metric="median_second_order_error")
                ax.plot(second["eps"], 100 * second["value"], color=color, linestyle=":", linewidth=1)
            ax.axhline(100 * _CLAIM, color=style.WARNING, linestyle="--", linewidth=0.8)
            ax.set(xscale="log", yscale="log")
        keys = [style.key(text, color, marker=marker) for text, color, marker in _PAIRS.values()]
        more = [style.key("second order", line=":"), style.key("20 %", style.WARNING, "--")]
        style.legend_below(figure, [*keys, *more], 3, xlabel="sources, in units of the stream's norm")
    return figure
