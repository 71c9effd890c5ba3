"""The scorecard: one HTML page that opens from disk, with the figures inside it and nothing fetched."""

import base64
import html
import math
import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from stateatlas import experiments
from stateatlas.names import label, ordered, spelled
from stateatlas.results import (
    DESCRIPTIVE,
    accuracy_tables,
    covered_prefixes,
    minis,
    more_solve_rates,
    narrower,
    per_task,
    reference_cells,
    selectivity_tables,
    sizes,
    smaller,
    solve_rates,
    unit_cells,
)

SEVERAL = 4  # so many values of a claim are listed in the first table; more are summed up there

_VERDICTS = {  # the word that a verdict begins with -> symbol and CSS class
    "reproduced": ("✓", "yes"),
    "contradicted": ("✗", "no"),
    "mixed": ("◐", "mixed"),
    "inconclusive": ("?", "open"),
    "by construction": ("≡", "open"),
    "not evaluable": ("–", "open"),
}
_FIGURES = (
    "strips", "profiles", "taxonomy", "linearity", "superposition", "prediction", "propagation", "composition",
    "concentration", "green", "displacement", "inverse", "transfer", "interventions", "needles", "surfaces", "scans",
    "units", "sets", "writes", "recipes", "lengths", "conv1d", "training", "controls", "ablations", "directions",
    "damage", "refits", "inlp", "erasure", "patches", "language",
)  # fmt: skip


def render(
    claims: pd.DataFrame,
    entries: list[dict],
    *,
    figures: dict[str, Path],
    captions: dict[str, str],
    tables: dict[str, pd.DataFrame],
    reference: dict[str, pd.DataFrame],
    settings: dict,
    run: dict,
    assumptions: list[dict],
    template: Path,
) -> str:
    """Return the page.

    claims: the verdict table; entries: the claims of `data/claims.yaml` in order. figures: name -> PNG or SVG
    file, with a caption (reStructuredText: paragraphs, bold, literals) in `captions`. tables, reference: this
    run's and the reference run's tables by name, the latter empty where there is none. run: `versions`
    (package -> version) and, where known, `seconds` and `machine`. assumptions: {point, choice} each.
    settings: as for the figures.
    """
    here = [e for e in entries if e["id"] in set(claims["claim"]) and in_run(e, tables, settings)]
    judged = claims[claims["claim"].isin([entry["id"] for entry in here])]
    own = settings["tasks"], settings["architectures"]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(Path(template).read_text(encoding="utf-8")).render(
        settings=settings,
        papers=[settings["published"][study] for study in settings["studies"]],
        run=_run(settings, run),
        claims=[_claim(entry, judged, figures) for entry in here],
        tally=_tally(judged),
        later=[entry for entry in entries if entry not in here],
        solve_rates=solve_rates(tables["behaviour"], tables["profiles"], *own),
        more_solve_rates=more_solve_rates(tables["behaviour"], tables["profiles"], settings),
        covered=covered_prefixes(tables["training"], *own),
        accuracy=accuracy_tables(tables["behaviour"], tables["probes"], *own),
        selectivity=selectivity_tables(tables["probes"], *own),
        reference=_reference(reference, settings["published"]),
        figures=[_figure(name, figures[name], captions.get(name, "")) for name in ordered(figures, _FIGURES)],
        assumptions=assumptions,
        sizes=sizes(settings) + narrower(settings) + smaller(settings),
        minis=minis(tables["minis"]) if "minis" in tables else None,
        unit_cells=unit_cells(tables["cells"], settings["published"]) if "cells" in tables else None,
    )


def _reference(reference: dict, published: dict) -> dict | None:
    return reference_cells(reference, published) if {"probes", "profiles"} <= set(reference) else None


def in_run(entry: dict, tables: dict, settings: dict) -> bool:
    """Whether a run can say anything on a claim: it has all tables of it or of one of its atoms, and for each of
    their conditions on task or architecture at least one that the run has, in whatever experiment."""
    has = {
        "table": list(tables),
        "task": experiments.tasks(settings),
        "architecture": experiments.architectures(settings),
    }

    def met(part: dict) -> bool:
        return all(_any_of(wanted, [*has[key], "present", "-"]) for key, wanted in _conditions(part))

    return met({**entry, "atoms": []}) and any(met(atom) for atom in entry["atoms"])


def _any_of(wanted: str | list, known: list[str]) -> bool:
    return any(choice in known for choice in (wanted if isinstance(wanted, list) else [wanted]))


def _conditions(part) -> Iterator[tuple[str, str | list]]:
    """Every (table | task | architecture, wanted value or values) in a claim or an atom, and in what it names."""
    if isinstance(part, list):
        for item in part:
            yield from _conditions(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("table", "task", "architecture"):
                yield key, value
            else:
                yield from _conditions(value)


def _run(settings: dict, run: dict) -> dict:
    """What the two sentences at the top need."""
    lengths = sorted(set(per_task(settings["train_length"], settings["tasks"]).values()))
    return {
        "tasks": ", ".join(label(name) for name in settings["tasks"]),
        "architectures": ", ".join(label(name) for name in settings["architectures"]),
        "lengths": " to ".join(str(length) for length in sorted({lengths[0], lengths[-1]})),
        "versions": ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items()),
        "time": duration(run["seconds"]) if run.get("seconds") else None,
        "machine": run.get("machine"),
    }


def duration(seconds: float) -> str:
    """ "50 seconds", "17 minutes", "3.5 hours"."""
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def verdict(text: str) -> dict:
    """A verdict with the symbol and the class that it is shown with. Raises ValueError for an unknown one."""
    for word, (symbol, style) in _VERDICTS.items():
        if text.startswith(word):
            return {"text": text, "symbol": symbol, "style": style}
    raise ValueError(f"unknown verdict {text!r}: expected one that begins with {', '.join(_VERDICTS)}")


def _claim(entry: dict, claims: pd.DataFrame, figures: dict[str, Path]) -> dict:
    """A claim of the file with its row in sum, its atoms and the verdict on its control."""
    rows = claims[claims["claim"] == entry["id"]]
    total, atoms = _in_sum(rows, entry["id"]), rows[rows["atom"] >= 0].sort_values("atom").to_dict("records")
    revision = entry.get("revision")
    if revision:
        other = claims[claims["claim"] == revision.get("claim")]
        judged = verdict(_in_sum(other, revision["claim"])["verdict"]) if len(other) else None
        revision = {"text": revision["text"], "claim": revision.get("claim"), "verdict": judged}
    return {
        **entry,
        "groups": [{**group, "rows": [_atom(row) for row in group["rows"]]} for group in _groups(atoms)],
        "ours": _ours(total, atoms),
        "verdict": verdict(total["verdict"]),
        "reason": total["reason"],
        "revision": revision,
        "figure": entry["figure"] if entry["figure"] in figures else None,
    }


def _in_sum(rows: pd.DataFrame, claim: str) -> dict:
    total = rows[rows["atom"] == -1]
    if len(total) != 1:
        raise ValueError(f"claims table: claim {claim} has {len(total)} rows with atom -1; it needs exactly one")
    return total.iloc[0].to_dict()


def _groups(atoms: list[dict]) -> list[dict]:
    """Atoms of one metric and bound stand together, so that neither is said again in every row."""
    groups: dict[tuple, list[dict]] = {}
    for row in atoms:
        groups.setdefault((spelled(row["metric"]), row["bound"]), []).append(row)
    return [{"metric": metric, "bound": bound, "rows": rows} for (metric, bound), rows in groups.items()]


def _atom(row: dict) -> dict:
    """A row of the evidence; of its reason what value and verdict do not say already."""
    parts = [part for part in row["reason"].split("; ") if part and part not in row["verdict"]]
    reason = "; ".join(part for part in parts if not part.startswith("descriptive ("))
    shown = {"cell": spelled(row["cell"]), "n": row["n"], "reason": spelled(reason)}
    return {**shown, "measured": measured(row), "verdict": verdict(row["verdict"])}


def measured(row: dict) -> dict | None:
    """Value and interval of a row as texts, and whether *descriptive* belongs beside the interval."""
    if not math.isfinite(row["value"]):
        return None
    interval = f"[{number(row['low'])}, {number(row['high'])}]" if math.isfinite(row["low"]) else ""
    return {
        "value": number(row["value"]),
        "interval": interval,
        "descriptive": bool(interval) and row["n"] < DESCRIPTIVE,
    }


def number(value: float) -> str:
    """Three decimals and a true minus sign."""
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−")


def _ours(total: dict, atoms: list[dict]) -> list[dict]:
    """The lines in the column "this run": every value where they are few, else a summary for every bound."""
    shown = [total] if math.isfinite(total["value"]) else [row for row in atoms if math.isfinite(row["value"])]
    if len(shown) <= SEVERAL:
        return [{"cell": spelled(row["cell"]) if len(shown) > 1 else "", **measured(row)} for row in shown]
    return [_summary(**group) for group in _groups(atoms)]


def _summary(metric: str, bound: str, rows: list[dict]) -> dict:
    """Many atoms of one metric and bound in a line: how many have which verdict, and the range of values."""
    counts = _tally_words(row["verdict"] for row in rows)
    words = "; ".join(f"{count} {word}" for word, count in counts.items())
    values = [row["value"] for row in rows if math.isfinite(row["value"])]
    span = f"{number(min(values))} to {number(max(values))}" if values else ""
    return {"cell": f"{metric} {bound}: {words}", "value": span, "interval": "", "descriptive": False}


def _tally_words(verdicts) -> dict[str, int]:
    texts = list(verdicts)
    counts = {word: sum(text.startswith(word) for text in texts) for word in _VERDICTS}
    return {word: count for word, count in counts.items() if count}


def _tally(claims: pd.DataFrame) -> list[dict]:
    """How many claims have which verdict."""
    counts = _tally_words(claims.loc[claims["atom"] == -1, "verdict"])
    return [{**verdict(word), "count": count} for word, count in counts.items()]


def _figure(name: str, path: Path, caption: str) -> dict:
    return {
        "name": name,
        "uri": data_uri(path),
        "caption": paragraphs(caption),
        "text": _plain(caption) or label(name),
    }


def data_uri(path: Path) -> str:
    """A PNG or SVG file as a data URI. As an image of its own an SVG cannot clash with the ids of another."""
    kinds = {".png": "image/png", ".svg": "image/svg+xml"}
    kind = kinds.get(path.suffix)
    if kind is None:
        raise ValueError(f"{path}: a figure on the page is a .png or .svg file")
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


def paragraphs(text: str) -> list[Markup]:
    """The paragraphs of a caption as HTML: **bold** and ``literal`` are kept, the rest is escaped."""
    blocks = [html.escape(" ".join(block.split())) for block in re.split(r"\n\s*\n", text.strip()) if block.strip()]
    marked = [re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", block) for block in blocks]
    return [Markup(re.sub(r"``(.+?)``", r"<code>\1</code>", block)) for block in marked]


def _plain(text: str) -> str:
    """The first sentence of a caption, for readers who cannot see the image."""
    return re.sub(r"\*\*|``", "", " ".join(text.split())).split(". ")[0]
