"""Two programs timed in pairs of turns, on a machine that has other things to do, too.

Both turns of a pair meet the same machine, a moment apart, so their quotient says more than either time does,
and of some quotients the median counts. Only those of the quicker half of the pairs do, by both their times:
who chose them by one would favour it. While even in these the first program takes much longer than it ever
did, the machine is busy, and what is faster then may be slower else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from .machines import Turn

Pair = tuple[float, float]
"""The seconds of a call of each program."""

STEADY = 1.3
"""Pairs count in which the first program takes at most so many times as long as it ever did."""

PAUSES = (0.0, 0.1, 0.2, 0.4)
"""Seconds before each lot of pairs, until some count: other work comes and goes."""

FEW = 9
"""Pairs of which a quarter tell something, and that are enough of calls that take long."""

PAIR_SECONDS = 2e-2
"""A pair that takes longer is of such calls."""

HOPELESS = 1.05
"""A program that takes so many times as long as the first one is given up early."""

EARLY = 3
"""Pairs after which that can be told."""


@dataclass(frozen=True)
class Comparison:
    """How long the second program takes."""

    ratio: float | None
    """As a part of what the first one takes; None if the machine was too busy to tell."""
    seconds: float
    """A call of it."""
    fastest: float
    """What a call of the first one ever took."""


def compare(turns: Sequence[Turn], rounds: int, fastest: float) -> Comparison:
    """So many pairs of turns of two programs, each first in half of them.

    `fastest` are the seconds that a call of the first one ever took before. If the machine stays busy, the
    second one is faster, or hopeless, if three quarters of the pairs say so.
    """
    pairs, ours = list[Pair](), inf
    for pause in PAUSES:
        time.sleep(pause)
        pairs += _lot(turns, rounds)
        quick = sorted(pairs, key=lambda pair: pair[0] * pair[1])[: -(-len(pairs) // 2)]
        model, ours = (median(times) for times in zip(*quick, strict=True))
        fastest = min(fastest, model)
        if model <= fastest * STEADY:
            return Comparison(median(quotients(quick)), ours, fastest)
    found = quotients(pairs)
    low, high = found[len(found) // 4], found[-1 - len(found) // 4]
    return Comparison(high if high < 1 else low if low > HOPELESS else None, ours, fastest)


def quotients(pairs: Sequence[Pair]) -> list[float]:
    """What the second program takes as a part of the first one's time, the least first."""
    return sorted(ours / model for model, ours in pairs)


def _lot(turns: Sequence[Turn], rounds: int) -> list[Pair]:
    """So many pairs, or fewer that tell what there is to be told."""
    pairs: list[Pair] = []
    end = time.perf_counter() + rounds * PAIR_SECONDS
    while len(pairs) < rounds:
        seconds = [0.0, 0.0]
        for number in (0, 1) if len(pairs) % 2 else (1, 0):
            seconds[number] = turns[number]()
        pairs.append((seconds[0], seconds[1]))
        found = quotients(pairs)
        if len(pairs) >= EARLY and found[0] > HOPELESS:
            break
        if len(pairs) >= FEW and (found[len(found) // 4] > 1 or time.perf_counter() > end):
            break
    return pairs
