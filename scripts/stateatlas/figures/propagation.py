"""Response cones: where the response to a source at the embedding goes, over depth and token."""

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import label, site_label

TABLES = ("propagation",)

_MODELS = ("trained", "untrained")


def draw(tables: dict, settings: dict) -> Figure:
    """A row for the trained and one for the untrained model, a column a model: mean energy of the response in units of
    the source's, by site (upwards) and tokens after the source. Written in: the energy at the source's token over that
    at later ones, and Gini's coefficient over the cone."""
    rows = tables["propagation"]
    models = {label(name): name for name in dict.fromkeys(rows["architecture"])}
    energy = shown.of(rows, metric="energy")["value"]
    positive = energy[energy > 0]
    norm = LogNorm(positive.min(), positive.max()) if len(positive) > 1 else LogNorm(1e-3, 1)
    with style.look():
        figure, panels = style.grid(list(_MODELS), list(models), height=1.6, legend=0.45, sharey="col")
        for (kind, title), ax in panels.items():
            here = shown.of(rows, architecture=models[title], model=kind)
            cone = shown.of(here, metric="energy").pivot_table(index="site", columns="offset", values="value")
            if cone.empty:
                continue
            image = ax.imshow(
                np.where(cone > 0, cone, np.nan), norm=norm, cmap="viridis", origin="lower", aspect="auto",
                extent=(-0.5, cone.shape[1] - 0.5, -0.5, cone.shape[0] - 0.5),
            )  # fmt: skip
            ax.set_yticks(range(len(cone)), [site_label(int(site)) for site in cone.index])
            ax.grid(visible=False)
            told = shown.of(here, site=-1).set_index("metric")["value"]
            style.note(ax, f"own / later {told['energy_ratio']:.0f}\nGini {told['gini']:.2f}", x=0.96)
        if not positive.empty:
            bar = figure.colorbar(image, ax=list(panels.values()), shrink=0.7)
            bar.set_label("energy of the response")
        style.legend_below(figure, [], 1, xlabel="tokens after the source")
    return figure
