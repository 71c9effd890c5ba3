"""Where the state is read best, and where taking it out does the damage: three measures side by side."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label

TABLES = ("inlp", "probes", "ablations", "profiles")

_COLUMNS = {
    "probe": ("probe\naccuracy (%)", style.BLUE, "o"),
    "drop": ("damage (points),\ntop direction", style.ORANGE, "D"),
    "excess": ("damage (points),\nINLP $-$ random", style.VERMILLION, "s"),
}
_BOUND = 20  # percentage points at the last block: claim A16


def draw(tables: dict, settings: dict) -> Figure:
    """A row a task and architecture, by block at the training length; line: median over seeds, every seed a marker,
    INLP with its own 95 % interval. A triangle at the top marks the block where a seed has its largest value: the
    best-probe site in the first column, the site of largest damage in the others."""
    found = _measured(tables)
    solved = shown.solved_seeds(tables["profiles"])
    edited = settings["edited"]
    tasks, models = ordered(edited["tasks"], TASKS), ordered(edited["architectures"], ARCHITECTURES)
    blocks = range(1, settings["layers"] + 1)
    rows = {(task, model): _row(task, model, solved.get((task, model), [])) for task in tasks for model in models}
    titles = [title for title, *_ in _COLUMNS.values()]
    with style.look():
        figure, panels = style.grid(list(rows.values()), titles, height=0.62, legend=0.75, sharey="col")
        for (task, model), row in rows.items():
            for name, (title, color, marker) in _COLUMNS.items():
                _panel(panels[row, title], shown.of(found[name], task=task, architecture=model), color, marker)
            last = settings["layers"]
            panels[row, titles[-1]].hlines(_BOUND, last - 0.35, last + 0.35, color=style.BLACK, linewidth=0.8)
            panels[row, titles[0]].set_ylabel(row, fontsize=7, rotation=0, ha="right", va="center")
        lowest = found["excess"]["percent"].min()
        for ax, title in zip(list(panels.values())[:3], titles, strict=True):  # the others share their axes
            ax.set_xticks(blocks, [site_label(site) for site in blocks])
            bottom = min(-12, lowest - 8) if title == titles[-1] and len(found["excess"]) else -12
            ax.set(xlim=(0.6, settings["layers"] + 0.4), ylim=(bottom, 140), yticks=[0, 50, 100])
        style.legend_below(figure, _handles(), 2, xlabel="site of the probe or edit (output of that block)")
    return figure


def _row(task: str, model: str, solved: list[bool]) -> str:
    """The name of a row; a fraction counts the solved seeds where not all are."""
    count = "" if solved and all(solved) else f" ({sum(solved)}/{len(solved)})" if solved else " (no run)"
    return f"{label(task)}{count}\n{label(model)}"


def _measured(tables: dict) -> dict[str, pd.DataFrame]:
    """The rows of each column, one a task, architecture, seed and block, with `percent` and, where known, `down`
    and `up`, the reach of its interval. `marked`: the seed has its largest value there (or its best probe)."""
    probes = shown.of(shown.trained(tables["probes"]), metric="accuracy", control="none", target="state")
    probes = shown.at_training_length(shown.one_half(probes, "both", "measurement"))
    drops = shown.drops(tables["ablations"], tables["profiles"])
    best = drops[[*shown.CELL, "site", "best"]].drop_duplicates()
    probes = probes.merge(best, on=[*shown.CELL, "site"], how="left")
    drops = shown.at_training_length(shown.of(drops, method="zero", subspace="top_direction"))
    excess = shown.of(shown.trained(tables["inlp"]), metric="excess_damage")
    return {
        "probe": probes.assign(percent=100 * probes["value"], marked=probes["best"].eq(True)),
        "drop": _largest(drops.assign(percent=drops["drop"])),
        "excess": _largest(
            excess.assign(
                percent=100 * excess["value"],
                down=100 * (excess["value"] - excess["low"]),
                up=100 * (excess["high"] - excess["value"]),
            )
        ),
    }


def _largest(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["site"] >= 1]
    return rows.assign(marked=rows["percent"] == rows.groupby(shown.CELL)["percent"].transform("max"))


def _panel(ax, rows: pd.DataFrame, color: str, marker: str) -> None:
    rows = rows[rows["site"] >= 1]
    style.median_line(ax, rows, "site", "percent", color=color, linewidth=1)
    seeds = sorted(set(rows["seed"]))
    for seed, shift in zip(seeds, style.dodge(len(seeds), 0.3), strict=True):
        here = shown.of(rows, seed=seed)
        if "down" in here:
            reach = here[["down", "up"]].clip(lower=0).to_numpy().T
            ax.errorbar(here["site"] + shift, here["percent"], yerr=reach, fmt="none", ecolor=color, elinewidth=0.6)
        style.scatter(ax, here["site"] + shift, here["percent"], color, marker, size=9)
    for site, count in rows.loc[rows["marked"], "site"].value_counts().items():
        where = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "top"}
        ax.text(site, 0.99, "▼" * count, fontsize=5.5, color=style.BLACK, **where)


def _handles() -> list[Artist]:
    triangle = style.key("best probe or largest damage, one a seed", line="", marker="v")
    return [triangle, style.key(f"{_BOUND} points, last block")]
