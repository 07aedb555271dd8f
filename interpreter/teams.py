"""Threads that meet at named barriers: what they did before races with the others' accesses only.

Where the memory notes who touched an element it then notes the team, as a number from `TEAM` down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .numpy_types import Array

NOBODY, SEVERAL, ATOMIC, TEAM = -1, -2, -3, -4
"""What is noted in place of a thread's number; teams have TEAM and the numbers below."""

_NO_THREAD = np.iinfo(np.int64).max


class Teams:
    """The teams of one memory, each a range of threads; and for each element which threads read it."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.first, self.last = (np.zeros(0, np.int64) for _ in range(2))
        self.lowest = np.full(shape, _NO_THREAD, np.int64)
        self.highest = np.full(shape, NOBODY, np.int64)

    def without(self, touched: Array, numbers: Array) -> Array:
        """What is noted, with nobody in place of the teams that threads `numbers` belong to."""
        is_team, first, last = self._ranges(touched)
        return np.where(is_team & (first <= numbers) & (numbers <= last), NOBODY, touched)

    def read(self, flat: Array, before: Array, numbers: Array) -> None:
        """Threads `numbers` read elements; what was noted `before` are teams of others."""
        is_team, first, last = self._ranges(before)
        lowest, highest = self.lowest.reshape(-1), self.highest.reshape(-1)
        np.minimum.at(lowest, flat, np.where(is_team, np.minimum(first, numbers), numbers))
        np.maximum.at(highest, flat, np.where(is_team, np.maximum(last, numbers), numbers))

    def meet(self, touched: Sequence[Array], low: int, high: int) -> None:
        """Threads `low` to `high` meet: what only they touched is noted as theirs."""
        (known,) = np.nonzero((self.first == low) & (self.last == high))
        team = int(known[0]) if known.size else len(self.first)
        if not known.size:
            self.first, self.last = np.append(self.first, low), np.append(self.last, high)
        readers = (self.lowest >= low) & (self.highest <= high)
        for noted in touched:
            is_team, first, last = self._ranges(noted)
            own = (low <= noted) & (noted <= high) | is_team & (low <= first) & (last <= high)
            own |= (noted == SEVERAL) & readers
            noted[own] = TEAM - team
        self.lowest[readers], self.highest[readers] = _NO_THREAD, NOBODY

    def forget(self, blocks: Array) -> None:
        """All threads of some blocks met."""
        self.lowest[blocks], self.highest[blocks] = _NO_THREAD, NOBODY

    def _ranges(self, touched: Array) -> tuple[Array, Array, Array]:
        """Where teams are noted, and their first and last threads there."""
        is_team = touched <= TEAM
        if not len(self.first):
            return is_team, touched, touched
        team = np.where(is_team, TEAM - touched, 0)
        return is_team, self.first[team], self.last[team]
