"""What the linear response predicts of single sources, against what they do."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.figures.linearity import KINDS

TABLES = ("effects", "prediction")

_EPS = 0.03
_LINEAR = 1e-3  # logits, where the axes change from linear to logarithmic


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: every source of .03 of the stream's norm in four prompts, predicted against measured change
    of the logit difference. Written in: Spearman's correlation and the slope, means over all prompts."""
    rows, found = (shown.trained(tables[name]) for name in ("effects", "prediction"))
    with style.look():
        figure, panels = style.row_of_models(rows, "measured (logits)", height=2.1, legend=0.6)
        for name, ax in panels.items():
            here = shown.of(rows, architecture=name)
            wide = here.pivot_table(index=["prompt", "case", "direction"], columns="metric", values="value")
            for kind, (_, color, marker) in KINDS.items():
                own = wide[wide.index.get_level_values("direction") == kind]
                style.scatter(ax, own["predicted"], own["measured"], color, marker, size=7, alpha=0.6)
            largest = here["value"].abs().max()
            ax.plot([-largest, largest], [-largest, largest], color=style.BLACK, linewidth=0.7)
            ax.set_xscale("symlog", linthresh=_LINEAR)
            ax.set_yscale("symlog", linthresh=_LINEAR)
            ax.set_xticks([-1, -0.01, 0, 0.01, 1], ["−1", "−.01", "0", ".01", "1"])
            ax.set_yticks([-1, -0.01, 0, 0.01, 1], ["−1", "−.01", "0", ".01", "1"])
            told = shown.of(found, architecture=name, eps=_EPS, direction="all", site=-1).set_index("metric")["value"]
            if {"spearman", "slope"} <= set(told.index):
                style.note(ax, f"ρ = {told['spearman']:.3f}\nslope {told['slope']:.3f}")
        keys = [style.key(text, color, "", marker) for text, color, marker in KINDS.values()]
        style.legend_below(figure, keys, 2, xlabel="predicted (logits)")
    return figure
