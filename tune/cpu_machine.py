"""This CPU, as a worker measures on it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle

import torch

from ..machine.host_cpu import host_cpu
from ..runtime.plan import Plan
from .machines import Inputs, Run, Turn, random_sets

CACHES = 4
"""Inputs take turns until they have filled this many times the second-level caches of all cores: what a
kernel reads comes from the shared cache then, as in a program of which other kernels ran in between."""

MAX_COPIES = 64
"""Sets of inputs at most."""

TURN_SECONDS = 2e-3
"""A turn is as many calls as take about this long."""

MAX_CALLS = 50
"""Calls of a turn at most."""

WARM_CALLS = 6
"""Calls after which a program knows whether other threads are worth asking."""

LONG_SECONDS = 1e-3
"""A call that takes so long surely is, which two calls tell."""


def copies_beyond_caches(bytes_of_set: int) -> int:
    """How many sets of inputs, each so large, are together larger than the cores' own caches."""
    cpu = host_cpu()
    needed = -(-CACHES * cpu.cores * cpu.l2_bytes // max(bytes_of_set, 1))
    return min(max(needed, 2), MAX_COPIES)


class CpuMachine:
    """Calls are timed one by one, and of a turn the median counts."""

    def inputs(self, plan: Plan, *, positive: bool) -> Inputs:
        """Sets of random inputs that together are larger than a core's caches."""
        arrays = [argument.array for argument in plan.arguments]
        copies = copies_beyond_caches(sum(array.nbytes for array in arrays))
        return random_sets(arrays, copies, "cpu", positive=positive)

    def turns(self, programs: Sequence[Run], inputs: Inputs) -> list[Turn]:
        """A turn of each program."""
        supply = cycle(inputs)
        return [partial(_seconds, each, supply, _calls_of_turn(each, supply)) for each in programs]

    def is_lost(self) -> bool:
        """A CPU that is lost takes the process along."""
        return False


def _calls_of_turn(program: Run, supply: Iterator[Sequence[torch.Tensor]]) -> int:
    """How many calls a turn has; warms the program up."""
    seconds = _seconds(program, supply, 2)
    if seconds < LONG_SECONDS:
        seconds = min(seconds, _seconds(program, supply, WARM_CALLS))
    return min(max(int(TURN_SECONDS / seconds), 1), MAX_CALLS)


def _seconds(program: Run, supply: Iterator[Sequence[torch.Tensor]], calls: int) -> float:
    """The median of the seconds of some calls."""
    taken: list[float] = []
    for _ in range(calls):
        chosen = next(supply)
        start = time.perf_counter()
        program(*chosen)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
