"""The bound of a claim, `> 0.05` or `in [0.8, 1.2]`, and what an interval says about it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_SIDE = re.compile(rf"(>=|<=|>|<) ?({_NUMBER})")
_RANGE = re.compile(rf"in ?([\[(])({_NUMBER}), ?({_NUMBER})([\])])")


@dataclass(frozen=True)
class Bound:
    """The numbers between `low` and `high`; a limit counts as inside when it is closed."""

    text: str
    low: float
    high: float
    low_closed: bool = False
    high_closed: bool = False

    def holds(self, value: float) -> bool:
        return self.inside(value, value)

    def inside(self, low: float, high: float) -> bool:
        """Whether the whole interval from `low` to `high` (both included) fulfils the bound."""
        above = low > self.low or (self.low_closed and low == self.low)
        below = high < self.high or (self.high_closed and high == self.high)
        return above and below

    def outside(self, low: float, high: float) -> bool:
        """Whether no point of the interval fulfils the bound."""
        under = high < self.low or (not self.low_closed and high == self.low)
        over = low > self.high or (not self.high_closed and low == self.high)
        return under or over

    def nearest_limit(self, value: float) -> float:
        return min((self.low, self.high), key=lambda limit: abs(value - limit))


def parse(text: str) -> Bound:
    """Read `> x`, `>= x`, `< x`, `<= x`, `in [a, b]` or `in (a, b)`; raises ValueError for anything else."""
    if side := _SIDE.fullmatch(text):
        sign, limit = side[1], float(side[2])
        closed = sign.endswith("=")
        if sign.startswith(">"):
            return Bound(text, limit, math.inf, low_closed=closed)
        return Bound(text, -math.inf, limit, high_closed=closed)
    if span := _RANGE.fullmatch(text):
        low, high = float(span[2]), float(span[3])
        if low < high:
            return Bound(text, low, high, span[1] == "[", span[4] == "]")
    raise ValueError(f"not a bound: {text!r}")
