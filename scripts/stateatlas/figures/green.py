"""Singular values of Green slices: through how many directions one place answers another."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("green",)

_SLICES = {"own": ("same token", style.VERMILLION, "-"), "other": ("earlier token", style.BLUE, "--")}


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: singular values relative to the largest of a slice, medians over slices, against their rank in
    units of the width. Along one token the stream itself is carried on. Written in: the median effective rank of
    slices drawn evenly over the causal cone, in units of the width (claim B7: below .25)."""
    rows = shown.trained(tables["green"])
    with style.look():
        figure, panels = style.row_of_models(rows, "singular value", height=2.0, legend=0.45)
        for name, ax in panels.items():
            here = shown.of(rows, architecture=name)
            for token, (_, color, line) in _SLICES.items():
                values = shown.of(here, token=token, metric="singular_value").sort_values("k")
                ax.plot((values["k"] + 1) / len(values), values["value"], color=color, linestyle=line)
            ax.set(yscale="log", ylim=(1e-6, 2))
            told = shown.of(here, metric="effective_rank_over_width")["value"]
            style.note(ax, f"effective rank {told.iloc[0]:.2f}", x=0.96, y=0.05)
        keys = [style.key(text, color, line) for text, color, line in _SLICES.values()]
        style.legend_below(figure, keys, 2, xlabel="rank / width")
    return figure
