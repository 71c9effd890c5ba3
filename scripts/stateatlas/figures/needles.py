"""The needle test: answers found at every depth, with sets of units silenced, in the layout of the paper's panel."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label

TABLES = ("needles",)

_ARMS = {
    "baseline": ("none silenced", style.BLACK, "o"),
    "complement": ("size-matched", style.GREY, "D"),
    "specialist": ("BOS specialists", style.VERMILLION, "s"),
    "dual_complement": ("matched to dual", style.SKY, "v"),
    "dual": ("dual", style.BLUE, "^"),
}
_METRICS = {"accuracy": "found (%)", "answer_nats": "answer (nats)"}
_FLOOR = 0.9  # of the baseline: below, the test says nothing about units


def draw(tables: dict, settings: dict) -> Figure:
    """A row for answers found and one for how unlikely the right answer is, a column a model and length. Marks: means
    over prompts (and draws) with 95 % intervals; small dots: every draw. A length that the model itself does not
    master is marked *floor*."""
    rows = tables["needles"]
    columns = {
        f"{label(name)}\n{length} tokens": (name, length)
        for name, length in dict.fromkeys(zip(rows["architecture"], rows["length"], strict=True))
    }
    with style.look():
        figure, panels = style.grid(list(_METRICS.values()), list(columns), height=1.6, legend=0.7, sharey="row")
        for title, (name, length) in columns.items():
            here = shown.of(rows, architecture=name, length=length)
            for metric, text in _METRICS.items():
                _lines(panels[text, title], here, metric)
            pooled = shown.of(here, metric="baseline_accuracy", depth="pooled")["value"]
            if len(pooled) and pooled.iloc[0] < _FLOOR:
                style.note(panels[_METRICS["accuracy"], title], "floor")
        keys = [style.key(text, color, marker=marker) for text, color, marker in _ARMS.values()]
        style.legend_below(figure, keys, 3, xlabel="depth of the needle")
    return figure


def _lines(ax, rows, metric: str) -> None:
    """Draw every arm over the depths."""
    scale = 100 if metric == "accuracy" else 1
    depths = sorted({depth for depth in rows["depth"] if depth != "pooled"}, key=float)
    shifts = style.dodge(len(_ARMS), 0.4)
    for shift, (arm, (_, color, marker)) in zip(shifts, _ARMS.items(), strict=True):
        places = [place + shift for place in range(len(depths))]
        here = shown.of(rows, metric=f"{arm}_{metric}").set_index("depth")
        if here.empty:
            continue
        here = here.loc[depths]
        draws = shown.of(rows, metric=f"{arm}_draw_{metric}")
        for place, depth in zip(places, depths, strict=True):
            own = shown.of(draws, depth=depth)["value"] * scale
            style.scatter(ax, [place] * len(own), own, color, size=3)
        ax.vlines(places, here["low"] * scale, here["high"] * scale, color=color, linewidth=0.9)
        ax.plot(places, here["value"] * scale, color=color, linewidth=0.8)
        style.scatter(ax, places, here["value"] * scale, color, marker, size=14)
    ax.set_xticks(range(len(depths)), depths)
    if metric == "accuracy":
        ax.set_ylim(-5, 105)
