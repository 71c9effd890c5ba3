"""How much of the sensitivity the most sensitive sites hold."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("concentration",)

_SITES = {
    "all": ("all sites and tokens", style.GREY, ":"),
    "no_first_token": ("without the first token", style.BLUE, "--"),
    "inner": ("without the final site too", style.VERMILLION, "-"),
}
_SHARE, _CLAIM = 10, 50  # per cent of the places and of the sum, B6


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: share of the sum of |a| that the largest so many per cent of the places hold, means over
    prompts with 95 % intervals shaded. The cross marks claim B6: above it is concentrated."""
    rows = shown.of(shown.trained(tables["concentration"]), metric="cumulative")
    with style.look():
        figure, panels = style.row_of_models(rows, "% of the sensitivity", height=2.0, legend=0.6)
        for name, ax in panels.items():
            for sites, (_, color, line) in _SITES.items():
                here = shown.of(rows, architecture=name, sites=sites).sort_values("share")
                x, y = 100 * here["share"], 100 * here["value"]
                ax.fill_between(x, 100 * here["low"], 100 * here["high"], color=color, alpha=0.2, linewidth=0)
                ax.plot(x, y, color=color, linestyle=line)
            ax.plot([0, 100], [0, 100], color=style.PALE, linewidth=0.8, zorder=0.5)
            ax.plot([_SHARE], [_CLAIM], color=style.BLACK, marker="+", markersize=8)
            ax.set(xlim=(0, 100), ylim=(0, 102))
        keys = [style.key(text, color, line) for text, color, line in _SITES.values()]
        style.legend_below(figure, keys, 2, xlabel="% of the places, the most sensitive first")
    return figure
