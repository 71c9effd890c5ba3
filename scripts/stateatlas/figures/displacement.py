"""What the displacement between two prompts does, by the site that it is put in at, beside its controls."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label, site_label

TABLES = ("displacement",)

_CONTROLS = {
    "none": ("displacement", style.VERMILLION, "s"),
    "random": ("random, same norm", style.GREY, "o"),
    "shuffled_prompt": ("another pair's", style.BLUE, "^"),
}
_TOKENS = {"last": "at the last token", "changed": "at the first\nchanged token"}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a token, a column a model: the share of the shift to the other prompt that one patched place brings, at
    full scale, with 95 % intervals. Dotted: what the sensitivities predict of the displacement."""
    rows = shown.of(shown.trained(tables["displacement"]), scale=1.0)
    models = {label(name): name for name in dict.fromkeys(rows["architecture"])}
    with style.look():
        figure, panels = style.grid(list(_TOKENS.values()), list(models), height=1.6, legend=0.65, sharey="row")
        for token, row in _TOKENS.items():
            for title, name in models.items():
                ax, here = panels[row, title], shown.of(rows, token=token, architecture=name)
                for shift, (control, (_, color, marker)) in zip(style.dodge(3, 0.3), _CONTROLS.items(), strict=True):
                    own = shown.of(here, control=control, metric="site_share").sort_values("site")
                    x = own["site"] + shift
                    ax.vlines(x, 100 * own["low"], 100 * own["high"], color=color, linewidth=0.8)
                    ax.plot(x, 100 * own["value"], color=color, marker=marker, markersize=3)
                linear = shown.of(here, control="none", metric="site_predicted").sort_values("site")
                ax.plot(linear["site"], 100 * linear["value"], color=style.VERMILLION, linestyle=":")
                sites = sorted(set(here["site"]) - {-1})
                ax.set_xticks(sites, [site_label(site) for site in sites])
                ax.axhline(0, color=style.BLACK, linewidth=0.6)
        if models:
            first = panels[_TOKENS["last"], next(iter(models))]
            first.set_ylabel(f"{first.get_ylabel()}\n% of the shift", fontweight="bold")
        keys = [style.key(text, color, marker=marker) for text, color, marker in _CONTROLS.values()]
        predicted = style.key("predicted", style.VERMILLION, ":")
        style.legend_below(figure, [*keys, predicted], 2, xlabel="site")
    return figure
