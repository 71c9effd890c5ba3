"""How well a small model's map of sensitive sites predicts a large one's, with and without known sites."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label

TABLES = ("transfer",)

_PREDICTORS = {
    "map": ("map of the small model", style.VERMILLION, "s"),
    "token": ("its mean by token", style.BLUE, "^"),
    "depth": ("its mean by depth", style.GREEN, "o"),
}
_METRICS = {"spearman": "rank\ncorrelation", "recall": "recall of the\ntop tenth (%)"}


def draw(tables: dict, settings: dict) -> Figure:
    """A row a metric, a column a large model: means over prompts with 95 % intervals, against the number of the large
    model's sites that are known beforehand."""
    rows = shown.trained(tables["transfer"])
    pairs = dict.fromkeys(zip(rows["architecture"], rows["source"], strict=True))
    titles = {f"{label(large)}\nfrom {label(small)}": large for large, small in pairs}
    with style.look():
        figure, panels = style.grid(list(_METRICS.values()), list(titles), height=1.5, legend=0.6, sharey="row")
        for (metric, text), (title, name) in [(m, t) for m in _METRICS.items() for t in titles.items()]:
            ax, here = panels[text, title], shown.of(rows, architecture=name, metric=metric)
            anchors, scale = sorted(set(here["anchors"])), 100 if metric == "recall" else 1
            for shift, (predictor, (_, color, marker)) in zip(style.dodge(3, 0.3), _PREDICTORS.items(), strict=True):
                own = shown.of(here, predictor=predictor).sort_values("anchors")
                x = [anchors.index(number) + shift for number in own["anchors"]]
                ax.vlines(x, scale * own["low"], scale * own["high"], color=color, linewidth=0.8)
                ax.plot(x, scale * own["value"], color=color, marker=marker, markersize=3)
            ax.set_xticks(range(len(anchors)), anchors)
        keys = [style.key(text, color, marker=marker) for text, color, marker in _PREDICTORS.values()]
        style.legend_below(figure, keys, 3, xlabel="known sites of the large model")
    return figure
