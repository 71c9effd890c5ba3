"""What sets of units cost against their size: single specialists, units by signature, and the sets of the claims."""

from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.interventions import deciding
from stateatlas.names import label

TABLES = ("cells",)

_SETS = {  # set in the table -> how it is written, colour, marker, size of a mark
    "single_unit": ("one specialist", style.ORANGE, "o", 6),
    "complement": ("size-matched", style.GREY, "o", 6),
    "single": ("specialists", style.VERMILLION, "s", 26),
    "top_activation": ("top activation", style.GREEN, "^", 26),
    "dual": ("dual, all", style.BLUE, "D", 22),
    "class": ("all above the threshold", style.BLACK, "P", 26),
}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a corpus, a column a language model: BOS windows, the intervention at every token. Line: the units of
    largest BOS signature. A set of one unit that costs what the whole set costs carries the set alone."""
    chosen = settings["sink"]
    models, corpora = chosen["models"], {name: f"{name} corpus" for name in chosen["corpora"]}
    decided = {name: deciding(settings["language_models"][name]["family"]) for name in models}
    rows = shown.of(tables["cells"], status="evaluated", span="all", **{"class": "bos"})
    with style.look():
        titles = {name: f"{label(name)}\n{decided[name]}" for name in models}
        figure, panels = style.grid(
            list(corpora.values()), list(titles.values()), height=1.7, legend=0.75, sharey="col"
        )
        for corpus, row in corpora.items():
            for name in models:
                here = shown.of(rows, corpus=corpus, architecture=name, intervention=decided[name])
                _panel(panels[row, titles[name]], here)
        panels[next(iter(corpora.values())), titles[models[0]]].set_ylabel(
            f"{next(iter(corpora.values()))}\nnats a token", fontweight="bold"
        )
        keys = [style.key(text, color, "", marker) for text, color, marker, _ in _SETS.values()]
        line = style.key("largest signatures", style.SKY)
        style.legend_below(figure, [line, *keys], 3, xlabel="units in the set")
    return figure


def _panel(ax, rows) -> None:
    ranked = shown.of(rows, set="ranked").drop_duplicates("units").sort_values("units")
    ax.plot(ranked["units"], ranked["value"], color=style.SKY, linewidth=1.1)
    for name, (_, color, marker, size) in _SETS.items():
        own = shown.of(rows, set=name)
        style.scatter(ax, own["units"], own["value"], color, marker, size=size)
    ax.axhline(0, color=style.BLACK, linewidth=0.7)
    if len(rows):  # an axis without data has no logarithm
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(ScalarFormatter())
