"""The error of the linear response against the size of the source."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("linearity",)

KINDS = {  # kind of direction -> how it is written, colour, marker
    "random": ("random", style.GREY, "o"),
    "gradient": ("gradient", style.VERMILLION, "s"),
    "prompt_difference": ("prompt difference", style.BLUE, "^"),
    "unembedding_difference": ("unembedding difference", style.GREEN, "D"),
}
_CLAIM = 0.2  # the paper's error


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: abs(dy - a.J) / abs(a.J) in per cent, on logarithmic axes. Black: median of all directions
    with its quartiles shaded; colours: medians of one kind; dashed: the 20 % of the paper."""
    rows = shown.trained(tables["linearity"])
    with style.look():
        figure, panels = style.row_of_models(rows, "error (%)", height=2.0, legend=0.75)
        for name, ax in panels.items():
            here = shown.of(rows, architecture=name).sort_values("eps")
            every = {metric: part.set_index("eps")["value"] for metric, part in _all(here).groupby("metric")}
            low, high = (100 * every[f"{side}_quartile"] for side in ("lower", "upper"))
            ax.fill_between(low.index, low, high, color=style.PALE, alpha=0.65, linewidth=0)
            for kind, (_, color, marker) in KINDS.items():
                own = shown.of(here, direction=kind, metric="median_error")
                ax.plot(own["eps"], 100 * own["value"], color=color, marker=marker, markersize=3, linewidth=0.8)
            middle = 100 * every["median_nonlinearity_error"]
            ax.plot(middle.index, middle, color=style.BLACK, linewidth=1.6)
            ax.axhline(100 * _CLAIM, color=style.WARNING, linestyle="--", linewidth=0.8)
            ax.set(xscale="log", yscale="log")
        keys = [style.key(text, color, marker=marker) for text, color, marker in KINDS.values()]
        more = [style.key("all", style.BLACK), style.patch("quartiles"), style.key("20 %", style.WARNING, "--")]
        style.legend_below(figure, [*more, *keys], 3, xlabel="source, in units of the stream's norm")
    return figure


def _all(rows):
    return shown.of(rows, direction="all")
