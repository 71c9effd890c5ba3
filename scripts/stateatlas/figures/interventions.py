"""What silencing sets of units costs: the specialists against their controls, in the layout of the paper's bars."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.interventions import deciding
from stateatlas.names import label

TABLES = ("interventions", "cells")

# Set in the tables: how it is written, and its colour.
_SETS = {
    "specialist": ("specialists", style.VERMILLION),
    "complement": ("size-matched", style.GREY),
    "norm_matched": ("norm-matched", style.GREY),
    "top_activation": ("top activation", style.ORANGE),
    "dual_subsample": ("dual, same size", style.SKY),
    "dual": ("dual, all", style.BLUE),
}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a corpus, a column a language model: BOS windows, the intervention at every token. Attention heads have no
    gate: there it is `output_zero`. Bars: means with 95 % intervals; every draw of a drawn set is a dot."""
    chosen = settings["sink"]
    models, corpora = chosen["models"], {name: f"{name} corpus" for name in chosen["corpora"]}
    decided = {name: deciding(settings["language_models"][name]["family"]) for name in models}
    common = {"class": "bos", "span": "all"}
    with style.look():
        titles = {name: f"{label(name)}\n{decided[name]}" for name in models}
        figure, panels = style.grid(list(corpora.values()), list(titles.values()), height=1.7, legend=0.2, sharey="col")
        for corpus, row in corpora.items():
            for name in models:
                ax = panels[row, titles[name]]
                here = common | {"corpus": corpus, "architecture": name, "intervention": decided[name]}
                _bars(ax, shown.of(tables["interventions"], **here), shown.of(tables["cells"], **here))
        for name in models:
            ax = panels[row, titles[name]]
            ax.set_xticks(range(len(_SETS)), [text for text, _ in _SETS.values()], rotation=60, ha="right")
        panels[next(iter(corpora.values())), titles[models[0]]].set_ylabel(
            f"{next(iter(corpora.values()))}\nnats a token", fontweight="bold"
        )
    return figure


def _bars(ax, effects, cells) -> None:
    for place, (name, (_, color)) in enumerate(_SETS.items()):
        row = shown.of(effects, metric=name)
        if row.empty:
            ax.text(place, 0, "none", rotation=90, ha="center", va="bottom", fontsize=6, color=style.GREY)
            continue
        value, low, high = row[["value", "low", "high"]].to_numpy(float)[0]
        ax.bar(place, value, color=color, alpha=0.75, width=0.7)
        ax.vlines(place, low, high, color=style.BLACK, linewidth=0.9, zorder=4)
        draws = shown.of(cells, set=name, status="evaluated")["value"]
        if len(draws) > 1:
            style.scatter(ax, place + style.dodge(len(draws), 0.5), draws, style.BLACK, size=4)
    ax.axhline(0, color=style.BLACK, linewidth=0.7)
