"""What a probe's accuracy is worth: beside the trained model, all that a probe could read without it."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("probes", "profiles")

_SERIES = {
    "trained": (("trained", "none"), style.BLUE, "o", False),
    "untrained": (("untrained", "none"), style.ORANGE, "D", True),
    "shuffled labels": (("trained", "shuffled_labels"), style.PURPLE, "v", True),
}


def draw(tables: dict, settings: dict) -> Figure:
    """Probe accuracy (%) by site at the training length, a column a task and target, every seed a marker. The
    first site is the embedding; dashed: the probe on position and token alone."""
    probes = shown.at_training_length(shown.of(tables["probes"], metric="accuracy"))
    solved = shown.solved_seeds(tables["profiles"])
    found = sorted(set(zip(probes["task"], probes["target"], strict=True)), key=lambda pair: (pair[1] != "state", pair))
    columns = [(task, target) for task in ordered(settings["tasks"], TASKS) for t, target in found if t == task]
    models = ordered(settings["architectures"], ARCHITECTURES)
    several = {task for task, target in columns if target != "state"}
    titles = {
        (task, target): label(task) + (f",\n{label(target)}" if task in several else "") for task, target in columns
    }
    with style.look():
        figure, panels = style.grid(models, list(titles.values()), legend=0.75)
        for model in models:
            for (task, target), title in titles.items():
                ax = panels[model, title]
                _panel(ax, shown.of(probes, task=task, target=target), model)
                ax.set_xticks(
                    range(settings["layers"] + 1),
                    [site_label(site) for site in range(settings["layers"] + 1)],
                )
                style.note_unsolved(ax, solved.get((task, model)))
        for ax in panels.values():
            ax.tick_params(axis="x", labelsize=6.5)
        figure.supylabel("probe accuracy (%)", fontsize=8)
        style.legend_below(figure, _handles(), 2, xlabel="site (emb: embedding, L0...: output of that block)")
    return figure


def _panel(ax, probes: pd.DataFrame, model: str) -> None:
    rows = shown.one_half(shown.of(probes, architecture=model), "both", "measurement").assign(
        percent=lambda f: 100 * f["value"]
    )
    for ((name, control), color, marker, hollow), shift in zip(_SERIES.values(), style.dodge(3, 0.3), strict=True):
        here = shown.of(rows, model=name, control=control)
        style.median_line(ax, here, "site", "percent", shift=shift, color=color, linewidth=0.9)
        style.scatter(ax, here["site"] + shift, here["percent"], color, marker, size=10, hollow=hollow)
    base = shown.of(probes, control="position_token")["value"]
    if len(base):
        ax.axhline(100 * base.mean(), color=style.GREY, linestyle="--", linewidth=0.9)


def _handles() -> list[Artist]:
    series = [
        style.key(name, color, "-", marker, hollow=hollow) for name, (_, color, marker, hollow) in _SERIES.items()
    ]
    return [*series, style.key("position + token", style.GREY, "--")]
