"""Verdicts: of every atom by its interval and bound, and of every claim by its atoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import pandas as pd

from stateatlas import evidence, statistics
from stateatlas.evidence import Finding
from stateatlas.selection import Tables

COLUMNS = ["claim", "study", "atom", "cell", "metric", "bound", "value", "low", "high", "n"]
COLUMNS += ["verdict", "reason"]
SUM = -1  # the atom of the row for the whole claim
REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
BY_CONSTRUCTION = "by construction"
_SHOWN_REASONS = 3


def evaluate(claims: list[dict], tables: Mapping[str, pd.DataFrame], scale: str) -> pd.DataFrame:
    """Judge claims on the tables there are.

    claims: from `claims.load_claims`. tables: name -> frame; a table that is missing makes its atoms not
    evaluable. Returns the claims table: the row of a whole claim (atom -1), then its atoms. `n` counts seeds.
    The row of a whole claim has numbers only when the claim has a single atom, else its smallest `n`.
    Raises ClaimError when the rows of an atom differ in a column that the claim does not name.
    """
    known = Tables(tables)
    rows = []
    for claim in claims:
        rows += _claim_rows(claim, evidence.findings(claim, known, scale))
    return pd.DataFrame(rows, columns=COLUMNS)


def _claim_rows(claim: dict, findings: list[Finding]) -> list[tuple]:
    if claim.get("any"):
        _widen(findings)
    if column := claim.get("together"):
        _keep_together(findings, column)
    verdicts = [_verdict(finding) for finding in findings]
    head = (SUM, "all", _common_name(findings), claim["bound"], *_sum_numbers(findings))
    rows = [(*head, _sum_verdict(claim, findings, verdicts), _sum_reason(findings, verdicts))]
    for k, (finding, verdict) in enumerate(zip(findings, verdicts, strict=True)):
        bound = finding.bound.text if finding.bound else "-"
        rows.append((k, finding.label, finding.name, bound, *_numbers(finding), verdict, _reason(finding)))
    return [(claim["id"], claim["study"], *row) for row in rows]


def _common_name(findings: list[Finding]) -> str:
    names = {finding.name for finding in findings}
    return names.pop() if len(names) == 1 else "-"


def _verdict(finding: Finding) -> str:
    if finding.by_construction:
        return BY_CONSTRUCTION
    if finding.missing:
        return f"not evaluable ({finding.missing})"
    interval, bound = finding.interval, finding.bound
    if bound.inside(interval.low, interval.high):
        return REPRODUCED
    if bound.outside(interval.low, interval.high):
        return CONTRADICTED
    return INCONCLUSIVE


def _widen(findings: list[Finding]) -> None:
    """Holm inside a claim of which one atom is enough: each interval is shown at the level of its test."""
    judged = [finding for finding in findings if finding.interval and not finding.missing]
    pvalues = [f.interval.pvalue(f.bound.nearest_limit(f.interval.value)) for f in judged]
    for finding, level in zip(judged, statistics.holm(pvalues), strict=True):
        finding.interval = finding.interval.at(1 - level)
        finding.notes.append(f"{100 * (1 - level):.2f} % interval after Holm")


def _keep_together(findings: list[Finding], column: str) -> None:
    """An atom whose partner is missing says nothing about the claim: it is shown, but not judged."""
    broken: dict[object, str] = {}
    for finding in findings:
        if finding.missing:
            broken.setdefault(finding.cell.get(column, "present"), finding.label)
    for finding in findings:
        # A word that stands for nothing is missing for everybody.
        partner = broken.get(finding.cell.get(column)) or broken.get("present")
        if partner and not finding.missing and not finding.by_construction:
            finding.missing = f"counts only with {partner}"


def _sum_verdict(claim: dict, findings: list[Finding], verdicts: list[str]) -> str:
    judged = [v for v in verdicts if v in (REPRODUCED, CONTRADICTED, INCONCLUSIVE)]
    if not judged:
        missing = list(dict.fromkeys(f.missing for f in findings if f.missing))
        return f"not evaluable ({_few(missing)})" if missing else BY_CONSTRUCTION
    if rule := claim.get("rule"):
        return _grouped_verdict(rule, findings, verdicts)
    reproduced = judged.count(REPRODUCED)
    if reproduced == len(judged) or (claim.get("any") and reproduced):
        return REPRODUCED
    if CONTRADICTED in judged and judged.count(CONTRADICTED) == len(judged):
        return CONTRADICTED
    if INCONCLUSIVE in judged and judged.count(INCONCLUSIVE) == len(judged):
        return INCONCLUSIVE
    return f"mixed ({reproduced} of {len(judged)})"


def _grouped_verdict(rule: dict, findings: list[Finding], verdicts: list[str]) -> str:
    groups: dict[object, list[str]] = defaultdict(list)
    for finding, verdict in zip(findings, verdicts, strict=True):
        kept = groups[finding.cell.get(rule["by"])]
        if not finding.missing:
            kept.append(verdict)
    if any(group.count(REPRODUCED) >= rule["reproduced_in"] for group in groups.values()):
        return REPRODUCED
    full = all(len(group) >= rule["at_least"] for group in groups.values())
    spared = rule["contradicted_in_all_but"]
    if full and all(group.count(CONTRADICTED) >= len(group) - spared for group in groups.values()):
        return CONTRADICTED
    return INCONCLUSIVE


def _numbers(finding: Finding) -> tuple[float, float, float, int]:
    if finding.interval is None:
        return (*[float("nan")] * 3, 0)
    return finding.interval.value, finding.interval.low, finding.interval.high, finding.interval.n


def _sum_numbers(findings: list[Finding]) -> tuple[float, float, float, int]:
    if len(findings) == 1:
        return _numbers(findings[0])
    return (*[float("nan")] * 3, _fewest_seeds(findings))


def _fewest_seeds(findings: list[Finding]) -> int:
    return min((f.interval.n for f in findings if f.interval and not f.missing), default=0)


def _reason(finding: Finding) -> str:
    return "; ".join(part for part in (finding.missing or finding.by_construction, *finding.notes) if part)


def _sum_reason(findings: list[Finding], verdicts: list[str]) -> str:
    missing = [finding.missing for finding in findings if finding.missing]
    counts = {v: verdicts.count(v) for v in (REPRODUCED, CONTRADICTED, INCONCLUSIVE, BY_CONSTRUCTION)}
    parts = [", ".join(f"{count} {word}" for word, count in counts.items() if count)]
    fewest = _fewest_seeds(findings)
    if 0 < fewest < evidence.FEW_SEEDS:
        parts.append(evidence.descriptive(fewest))
    if missing:
        # When nothing could be judged, the verdict itself says why.
        why = f": {_few(list(dict.fromkeys(missing)))}" if parts[0] else ""
        parts.append(f"{len(missing)} of {len(findings)} not evaluable{why}")
    return "; ".join(part for part in parts if part)


def _few(reasons: list[str]) -> str:
    shown = "; ".join(reasons[:_SHOWN_REASONS])
    return shown if len(reasons) <= _SHOWN_REASONS else f"{shown}; and {len(reasons) - _SHOWN_REASONS} more"
