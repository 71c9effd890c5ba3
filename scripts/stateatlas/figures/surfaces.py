"""Two surfaces of the same units: perturbing Δ against silencing what they write."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.interventions import NAMES
from stateatlas.names import label

TABLES = ("interventions",)

_SPANS = {"all": ("o", False, "at every token"), "from_boundary": ("D", True, "from the boundary on")}
_CLAIM = 0.16  # nats, C8


def draw(tables: dict, settings: dict) -> Figure:
    """A row a corpus, a column a language model: what each intervention on the BOS specialists costs after a BOS, with
    95 % intervals. The shaded range is that of claim C8. An intervention without a mark has no meaning there."""
    chosen = settings["sink"]
    models, corpora = chosen["models"], {name: f"{name} corpus" for name in chosen["corpora"]}
    with style.look():
        figure, panels = style.grid(list(corpora.values()), [label(name) for name in models], height=1.7, legend=0.55)
        for corpus, row in corpora.items():
            for name in models:
                ax = panels[row, label(name)]
                ax.axvspan(-_CLAIM, _CLAIM, color=style.PALE, alpha=0.6, linewidth=0)
                rows = shown.of(tables["interventions"], metric="specialist", corpus=corpus, architecture=name)
                for shift, (span, (marker, hollow, _)) in zip(style.dodge(2, 0.3), _SPANS.items(), strict=True):
                    here = shown.of(rows, span=span, **{"class": "bos"}).set_index("intervention")
                    places = [place for place, known in enumerate(NAMES) if known in here.index]
                    here = here.loc[[NAMES[place] for place in places]]
                    heights = [place + shift for place in places]
                    ax.hlines(heights, here["low"], here["high"], color=style.VERMILLION, linewidth=0.8)
                    style.scatter(ax, here["value"], heights, style.VERMILLION, marker, size=12, hollow=hollow)
                ax.set_yticks(range(len(NAMES)), NAMES)
                ax.set_ylim(len(NAMES) - 0.5, -0.5)
        keys = [
            style.key(text, style.VERMILLION, line="", marker=marker, hollow=hollow)
            for marker, hollow, text in _SPANS.values()
        ]
        style.legend_below(
            figure, [*keys, style.patch("within .16 nats")], 3, xlabel="nats a token beyond the clean model"
        )
    return figure
