"""How alike units write at BOS and at newline: dual units against single-bucket ones and against control sets."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label

TABLES = ("writes",)

_SETS = {
    "dual_cosine": ("dual", style.BLUE, "o"),
    "single_cosine": ("BOS alone", style.VERMILLION, "s"),
    "null_cosine": ("size- and\ndepth-matched", style.GREY, "D"),
}


def draw(tables: dict, settings: dict) -> Figure:
    """A column a language model: the mean cosine over a set between what its units write at BOS and at newline, one
    mark a corpus (the first on the left), with 95 % intervals. Of a unit with one channel the cosine is 1 or -1."""
    chosen = settings["sink"]
    models, corpora = chosen["models"], chosen["corpora"]
    with style.look():
        figure, panels = style.grid([""], [label(name) for name in models], height=1.9, legend=0.2)
        for name in models:
            ax = panels["", label(name)]
            for place, (metric, (_, color, marker)) in enumerate(_SETS.items()):
                for shift, corpus in zip(style.dodge(len(corpora), 0.4), corpora, strict=True):
                    row = shown.of(tables["writes"], metric=metric, architecture=name, corpus=corpus, model="trained")
                    ax.vlines([place + shift] * len(row), row["low"], row["high"], color=color, linewidth=1)
                    style.scatter(ax, [place + shift] * len(row), row["value"], color, marker, size=14)
            ax.axhline(0, color=style.GREY, linewidth=0.7)
            ax.set(ylim=(-1.05, 1.05), xlim=(-0.6, len(_SETS) - 0.4))
            ax.set_xticks(range(len(_SETS)), [text for text, *_ in _SETS.values()], rotation=60, ha="right")
        panels["", label(models[0])].set_ylabel("cosine of the mean writes")
    return figure
