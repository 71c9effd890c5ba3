"""How many units answer to BOS alone, to newline alone and to both, over a sweep of thresholds."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label

TABLES = ("thresholds",)

_SETS = {
    "dual": ("BOS and newline", style.BLUE, "o"),
    "single_bos": ("BOS alone", style.VERMILLION, "s"),
    "single_newline": ("newline alone", style.GREEN, "^"),
}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a corpus, a column a language model: share of the units against the threshold, on raw signatures of Δ and
    standardised ones of attention. Dotted: the untrained model. Shaded: what pairs of frequent tokens have in common,
    from the median pair to the 95th percentile. The line marks the threshold that decides, .5."""
    chosen = settings["sink"]
    models, corpora = chosen["models"], {name: f"{name} corpus" for name in chosen["corpora"]}
    with style.look():
        figure, panels = style.grid(list(corpora.values()), [label(name) for name in models], height=1.35, legend=0.7)
        for corpus, row in corpora.items():
            for name in models:
                ax = panels[row, label(name)]
                form = "standardised" if settings["language_models"][name]["family"] == "gpt_neox" else "raw"
                rows = shown.of(tables["thresholds"], corpus=corpus, architecture=name, form=form)
                low, high = (
                    shown.of(rows, metric=metric, model="trained").sort_values("tau")
                    for metric in ("pairs_median", "pairs_95")
                )
                ax.fill_between(low["tau"], 100 * low["value"], 100 * high["value"], color=style.PALE, linewidth=0)
                for metric, (_, color, marker) in _SETS.items():
                    for model, line in (("trained", "-"), ("untrained", ":")):
                        here = shown.of(rows, metric=metric, model=model).sort_values("tau")
                        ax.plot(
                            here["tau"], 100 * here["value"], color=color, linestyle=line, marker=marker, markersize=3
                        )
                ax.axvline(0.5, color=style.GREY, linewidth=0.7)
                ax.set_xscale("log", base=2)
        next(iter(panels.values())).set_ylim(bottom=0)  # after all is drawn: the panels share this axis
        panels[next(iter(corpora.values())), label(models[0])].set_ylabel(
            f"{next(iter(corpora.values()))}\n% of units", fontweight="bold"
        )
        keys = [style.key(text, color, marker=marker) for text, color, marker in _SETS.values()]
        more = [style.key("untrained", line=":"), style.patch("any two frequent tokens")]
        style.legend_below(figure, [*keys, *more], 3, xlabel="threshold τ")
    return figure
