"""The map of signatures: block by unit, with the sets drawn in."""

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label

TABLES = ("signatures",)

_CLASSES = {"bos": "BOS", "newline": "newline"}
_SETS = {
    "single_bos": ("BOS alone", style.VERMILLION),
    "single_newline": ("newline alone", style.GREEN),
    "dual": ("BOS and newline", style.BLUE),
}
_STRIP = 0.28  # of a block's height: the sets below its map
_THRESHOLD = 0.5  # the one that decides
_COLOURS = "PuOr_r"
_LIMIT = 4 * _THRESHOLD  # where the colours end


def draw(tables: dict, settings: dict) -> Figure:
    """A row a corpus and class, a column a language model. Blocks from top to bottom; the units of a block from left to
    right, the largest BOS signature first, in the same order for both classes. Below every block: the sets."""
    chosen = settings["sink"]
    models = chosen["models"]
    rows = {f"{corpus}\n{text}": (corpus, name) for corpus in chosen["corpora"] for name, text in _CLASSES.items()}
    table = shown.of(tables["signatures"], model="trained")
    norm = TwoSlopeNorm(0, -_LIMIT, _LIMIT)
    with style.look():
        figure = style.canvas(1.05 * len(rows) + 0.9)
        axes = figure.subplots(len(rows), len(models), squeeze=False)
        for i, (title, (corpus, name)) in enumerate(rows.items()):
            for j, model in enumerate(models):
                ax, here = axes[i, j], shown.of(table, corpus=corpus, architecture=model)
                _map(ax, here, name, norm)
                if i == 0:
                    ax.set_title(label(model))
                ax.tick_params(labelbottom=i == len(rows) - 1)
                if j == 0:
                    ax.set_ylabel(title, fontweight="bold")
        colours = ScalarMappable(norm, _COLOURS)
        bar = figure.colorbar(colours, ax=axes, shrink=0.5, pad=0.01, extend="both")
        bar.set_label(f"signature (threshold {_THRESHOLD})")
        keys = [Patch(color=color, label=text) for text, color in _SETS.values()]
        style.legend_below(figure, keys, 3, xlabel="units of a block, by BOS signature")
    return figure


def _map(ax, rows, name: str, norm: TwoSlopeNorm) -> None:
    """Draw one model's signatures at a class."""
    blocks, units = sorted(set(rows["block"])), rows["unit"].nunique()
    for block in blocks:
        here = shown.of(rows, block=block)
        order = shown.of(here, **{"class": "bos"}).sort_values("value", ascending=False)
        own = shown.of(here, **{"class": name}).set_index("unit").loc[order["unit"]]
        extent = (0, len(own), block + 1 - _STRIP, block + 0.04)
        ax.imshow(own["value"].to_numpy()[None], cmap=_COLOURS, norm=norm, aspect="auto", extent=extent)
        for set_name, (_, color) in _SETS.items():
            places = np.flatnonzero(own["set"] == set_name)
            bottom = np.full(len(places), block + 1 - _STRIP)
            ax.bar(places, _STRIP - 0.06, width=1, bottom=bottom, align="edge", color=color)
    ax.set(xlim=(0, max(units, 1)), ylim=(max(len(blocks), 1), 0), facecolor="white")
    ax.set_yticks([block + 0.4 for block in blocks], [f"L{block}" for block in blocks])
