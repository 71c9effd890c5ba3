"""How much of a response at the end comes from parts of the response in the middle."""

from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style

TABLES = ("composition",)

_KEPT = {
    "source": "source token",
    "top_quarter": "largest quarter",
    "jacobian": "Jacobians",
    "all": "all (identity)",
}
_CLAIM = 0.2


def draw(tables: dict, settings: dict) -> Figure:
    """A column a model: relative error of the response at the final site when only some tokens of the response in the
    middle are sent on, means with 95 % intervals. Hollow: an identity, no evidence. Dashed: the 20 % of claim B5."""
    rows = shown.of(shown.trained(tables["composition"]), metric="relative_error")
    with style.look():
        figure, panels = style.row_of_models(rows, "", height=1.4, legend=0.3)
        figure.get_layout_engine().set(w_pad=0.1)  # inches: the layout leaves too little for the longest label
        for name, ax in panels.items():
            here = shown.of(rows, architecture=name).set_index("tokens")
            for place, kept in enumerate(_KEPT):
                if kept not in here.index:
                    continue
                row, color = here.loc[kept], style.VERMILLION if kept == "top_quarter" else style.BLUE
                ax.hlines(place, 100 * row["low"], 100 * row["high"], color=color, linewidth=1)
                hollow = row["status"] != "evidence"
                style.scatter(ax, [100 * row["value"]], [place], color, size=18, hollow=hollow)
            ax.axvline(100 * _CLAIM, color=style.WARNING, linestyle="--", linewidth=0.8)
            ax.set_yticks(range(len(_KEPT)), _KEPT.values())
            ax.set_ylim(len(_KEPT) - 0.5, -0.5)
        style.legend_below(figure, [], 1, xlabel="relative error (%)")
    return figure
