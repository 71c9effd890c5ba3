"""The inverse problem (protocol B9): the sparsest source that changes the answer by what is wanted.

Wanted is that the two logits change places: dy = -2 y. Every source may have .3 of the norm of the stream at its site
and token; the final site is left out. Passes are counted in whole forwards: a run on from site s costs the share of
blocks behind it, a backward pass twice a forward.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linprog
from torch.nn.functional import kl_div, log_softmax

from stateatlas.field import Field
from stateatlas.over_prompts import Intervals
from stateatlas.response import Source, measured, sensitivity

LIMIT = 0.3  # of the norm of the stream
REACHED = 0.9  # of the wanted change
CLOSE = 0.05  # of it: nearer than this the refinement ends
STEPS = 8  # of the refinement, at most
GRADIENT = 3.0  # passes of a sensitivity: a forward and a backward


@dataclass
class Solution:
    """Sources in the order in which they are used, what they reach, (sources,), and the passes spent on them.

    reached: share of the wanted change with the first 1, 2, ... of them, measured in the model.
    """

    sources: list[Source]
    reached: np.ndarray
    passes: float

    @property
    def needed(self) -> int:
        """How many sources reach 90 % of the wanted change; all of them where none do."""
        enough = np.flatnonzero(self.reached >= REACHED)
        return int(enough[0]) + 1 if len(enough) else len(self.sources)

    @property
    def norm(self) -> float:
        """The sum of the norms of those."""
        return sum(source.vector.norm().item() for source in self.sources[: self.needed])


class Problem:
    """A prompt and the change of y that is wanted of it."""

    def __init__(self, field: Field):
        self.field, self.wanted = field, -2 * field.y
        self.limits = (LIMIT * field.norms[:-1]).cpu().numpy()  # (sites, length), the final site left out

    @property
    def number(self) -> int:
        """Sites and tokens that may have a source."""
        return self.limits.size

    def sparse(self) -> Solution:
        """Solve the convex problem, then again around its own solution in the real model until that is close.

        min sum |J| with a.J = wanted and |J| <= limit is linear in the norms: along a every source works best. Each
        step linearises the model at the sources of the last one; the step that came nearest is taken.
        """
        y, a = self.field.y, self.field.a
        sources, passes = [], GRADIENT
        best, nearest = sources, np.inf
        for _ in range(STEPS):
            rest = self.wanted - (y - self.field.y) + sum((a[s.site, s.token] @ s.vector).item() for s in sources)
            sources = self._convex(a, rest)
            y, a = sensitivity(self.field.model, self.field.tokens, self.field.observable, sources)
            passes += GRADIENT
            distance = abs((y - self.field.y) / self.wanted - 1)
            if distance < nearest:
                best, nearest = sources, distance
            if nearest < CLOSE:
                break
        return Solution(best, self._reached(best), passes)

    def _convex(self, a: torch.Tensor, wanted: float) -> list[Source]:
        """Return the sources of least total norm whose linear response is `wanted`, the strongest effect first.

        Where the limits do not allow that much they are all met.
        """
        score = a[:-1].norm(dim=-1).cpu().numpy()
        most = float((score * self.limits).sum())
        aim = min(abs(wanted), 0.999 * most)
        bounds = np.stack([np.zeros(self.number), self.limits.ravel()], axis=1)
        norms = linprog(np.ones(self.number), A_eq=score.reshape(1, -1), b_eq=[aim], bounds=bounds).x
        norms = norms.reshape(score.shape)
        order = np.argsort(-(norms * score), axis=None, kind="stable")[: int((norms > 1e-9 * self.limits).sum())]
        places = [tuple(map(int, np.unravel_index(i, score.shape))) for i in order]
        return [self._along(a, site, token, float(np.sign(wanted) * norms[site, token])) for site, token in places]

    def _along(self, a: torch.Tensor, site: int, token: int, norm: float) -> Source:
        direction = a[site, token]
        return Source(site, token, norm * direction / direction.norm())

    def top(self, most: int) -> Solution:
        """Take the places with the largest |a|, at full strength along it, one more at a time."""
        score = self.field.scores[:-1]
        order = np.argsort(-score, axis=None, kind="stable")[:most]
        places = [tuple(map(int, np.unravel_index(i, score.shape))) for i in order]
        sign = np.sign(self.wanted)
        sources = [self._along(self.field.a, site, x, sign * self.limits[site, x]) for site, x in places]
        return self._added(sources, GRADIENT)

    def exhaustive(self, most: int) -> Solution:
        """Patch the partner's stream, within the limit, at every place; take the best ones, one more at a time."""
        sources = []
        for site, token in np.ndindex(*self.limits.shape):
            shift = self.field.shift[site, token]
            norm = shift.norm().item()
            sources.append(Source(site, token, shift * min(1.0, self.limits[site, token] / norm) if norm else shift))
        effects = self.field.effects([(source,) for source in sources]) / self.wanted
        best = [sources[i] for i in np.argsort(-effects, kind="stable")[:most]]
        return self._added(best, self.sweep)

    @property
    def sweep(self) -> float:
        """Passes of patching every place once, run on from recorded states."""
        return 1 + sum(self._share(site) for site, _ in np.ndindex(*self.limits.shape))

    def _share(self, site: int) -> float:
        return (self.field.model.depth - site) / self.field.model.depth

    def _added(self, sources: list[Source], passes: float) -> Solution:
        reached = self._reached(sources)
        tried = Solution(sources, reached, passes).needed
        lowest = [min(source.site for source in sources[: i + 1]) for i in range(tried)]
        return Solution(sources, reached, passes + sum(map(self._share, lowest)))

    def _reached(self, sources: list[Source]) -> np.ndarray:
        """Return the share of the wanted change that the first 1, 2, ... sources reach."""
        return self.field.effects([tuple(sources[: i + 1]) for i in range(len(sources))]) / self.wanted


def side_effect(solution: Solution, others: list[Field]) -> float:
    """Return the mean KL divergence, in nats, of the next token of other prompts: without against with the sources."""
    found = []
    for field in others:
        case = tuple(s for s in solution.sources[: solution.needed] if s.token < field.length)
        if case:
            known = log_softmax(field.model.read(field.clean[-1][:, -1:])[:, 0], dim=-1)
            edited = measured(field.model, field.clean, [case], lambda logits: log_softmax(logits, dim=-1))
            found.append(kl_div(edited, known, log_target=True, reduction="batchmean").item())
    return float(np.mean(found)) if found else np.nan


def rows(
    solved: list[tuple[Problem, dict[str, Solution], dict[str, float]]], most: int, intervals: Intervals
) -> Iterator[dict]:
    """Yield the rows of the table `inverse`: problems with their solutions by method and side effects, one a prompt.

    The claim's numbers are those of the whole sparse solution. Of every method: whether it gets to 90 %, how many
    sources that takes, their norm, the passes spent, the side effect, and what the first 1, 2, ... reach.
    """
    whole = [(problem, solutions["sparse"]) for problem, solutions, _ in solved]
    claimed = {
        "share_of_sites": [len(best.sources) / problem.number for problem, best in whole],
        "share_reached": [float(best.reached[-1]) for _, best in whole],
        "share_of_passes": [best.passes / problem.sweep for problem, best in whole],
    }
    for metric, values in claimed.items():
        yield {"method": "sparse", "sources": 0, "metric": metric} | intervals.mean(values)
    for method in solved[0][1]:
        own = [(problem, solutions[method], effects[method]) for problem, solutions, effects in solved]
        measures = {
            "solved": [float((s.reached >= REACHED).any()) for _, s, _ in own],
            "needed_share_of_sites": [s.needed / problem.number for problem, s, _ in own],
            "norm": [s.norm for _, s, _ in own],
            "passes": [s.passes for _, s, _ in own],
            "share_of_sweep": [s.passes / problem.sweep for problem, s, _ in own],
            "side_effect_nats": [effect for *_, effect in own],
        }
        for metric, values in measures.items():
            yield {"method": method, "sources": 0, "metric": metric} | intervals.mean(values)
        for number in range(1, most + 1):
            # A prompt whose two logits are nearly equal can be overshot a hundredfold: the median stays readable.
            reached = [s.reached[min(number, len(s.reached)) - 1 :][:1] for _, s, _ in own]
            yield {"method": method, "sources": number, "metric": "reached"} | intervals.median(reached)
