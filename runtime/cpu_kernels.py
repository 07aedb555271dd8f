"""Kernels on the CPU: launches run in the calling thread, or shared with others where those are worth it."""

from __future__ import annotations

import array
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from . import native_code
from .failures import failure
from .prepared import NativeLaunch
from .threads import Sharing

TIMED_CALLS = 4
"""Calls after which it is settled whether a launch of fixed sizes is worth other threads' help."""

SURELY_WORTH = 40
"""How many times as long as such work must take that the first call settles it: caches and pages are cold."""

CHUNKS_PER_THREAD = 8
"""A thread takes its blocks in this many chunks, so that those who finish early can help it."""


@dataclass(frozen=True)
class Launch:
    """One launch, with numbers in the place of sizes; arrays by position: the arguments, then the buffers."""

    kernel: CpuKernel
    driver: native_code.Driver
    positions: tuple[int, ...]
    sizes: list[int]
    blocks: int

    def native(self, threads: int, places: Mapping[int, int], more: bool) -> NativeLaunch:
        """The launch, run by so many threads; `places` says where its arrays are that moved.

        If there is `more`, it runs at once with the next.
        """
        return NativeLaunch(
            self.driver.address,
            self.kernel.address,
            self.blocks,
            chunk_size(self.blocks, threads),
            threads,
            tuple(places.get(i, i) for i in self.positions),
            tuple(self.sizes),
            self.kernel.messages,
            more,
        )


def run_group(launches: Sequence[Launch], pointers: Sequence[int], shared: Sharing) -> None:
    """Run launches at once, if there are several worth other threads' help; else one after the other."""
    if len(launches) == 1 or not worth_sharing(launches, shared):
        for launch in launches:
            launch.kernel.run(launch, [pointers[i] for i in launch.positions], shared)
        return
    tasks: list[tuple[native_code.Driver, array.array[int]]] = []
    for launch in launches:
        values = [*(pointers[i] for i in launch.positions), *launch.sizes]
        chunk = chunk_size(launch.blocks, shared.threads)
        task = shared.task(launch.kernel.address, values, range(launch.blocks), chunk)
        tasks.append((launch.driver, task))
    shared.run_together(tasks)
    for launch, (_, task) in zip(launches, tasks, strict=True):
        launch.kernel.check(task[native_code.STATUS])


def worth_sharing(launches: Sequence[Launch], shared: Sharing) -> bool:
    """Whether other threads are to help with launches that may run at once; all must be settled by now."""
    seconds = 0.0
    for launch in launches:
        if not launch.kernel.is_settled(launch.blocks, shared):
            return False
        seconds += (launch.kernel.seconds_per_block or 0.0) * launch.blocks
    return shared.threads > 1 and seconds >= shared.worth_seconds


def threads_of(
    launches: Sequence[Launch | None], groups: Sequence[range], shared: Sharing
) -> tuple[list[int], list[bool]]:
    """How many threads are to run each launch, and whether it runs at once with the next one.

    What is no launch is run by one.
    """
    threads = [
        1 if each is None else each.kernel.threads_for(each.blocks, shared) for each in launches
    ]
    together = [False] * len(threads)
    for group in groups:
        members = [each for i in group if (each := launches[i]) is not None]
        if len(group) > 1 and worth_sharing(members, shared):
            for i in group:
                threads[i], together[i] = shared.threads, i != group[-1]
    return threads, together


class CpuKernel:
    """A compiled kernel, and how long one of its blocks takes."""

    def __init__(self, compiled: native_code.CompiledKernel, messages: tuple[str, ...]):
        self.address = compiled.address
        self.messages = messages
        self.seconds_per_block: float | None = None
        self.timed = 0

    def run(self, launch: Launch, values: list[int], shared: Sharing) -> None:
        """Run all blocks, in this thread or shared with others; `values` are the addresses of its buffers.

        The first calls are timed; where sizes may change all of them are. Raises the Python exception that a
        failed check stands for.
        """
        blocks, first = launch.blocks, 0
        values += launch.sizes
        if shared.threads == 1:
            self._alone(launch.driver, values, range(blocks))
            return
        if self.seconds_per_block is None and blocks > 1:
            # The first call pays for cold pages and caches, so the second block tells the truth.
            self._timed(launch, values, range(1))
            self.seconds_per_block = None
            self._timed(launch, values, range(1, 2))
            first = 2
        left = range(first, blocks)
        threads = self.threads_for(len(left), shared)
        settled = self.is_settled(len(left), shared)
        if threads > 1 and settled:
            chunk = chunk_size(len(left), threads)
            self.check(shared.run(launch.driver, self.address, values, left, chunk))
        elif launch.sizes or not settled:
            self._timed(launch, values, left)
            self.timed += 1
        else:
            self._alone(launch.driver, values, left)

    def is_settled(self, blocks: int, shared: Sharing) -> bool:
        """Whether the time of its blocks is known well enough to say if so many are worth sharing."""
        if self.seconds_per_block is None:
            return False
        surely = self.seconds_per_block * blocks >= SURELY_WORTH * shared.worth_seconds
        return surely or self.timed >= TIMED_CALLS

    def threads_for(self, blocks: int, shared: Sharing) -> int:
        """How many threads are to run so many blocks: one where others would come too late."""
        if blocks < 2 or self.seconds_per_block is None:
            return 1
        return shared.threads if self.seconds_per_block * blocks >= shared.worth_seconds else 1

    def _alone(
        self,
        driver: native_code.Driver,
        values: Sequence[int],
        blocks: range,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> float:
        """Run blocks in this thread; gives how long that took by the clock."""
        task = native_code.make_task(self.address, values, blocks, max(len(blocks), 1))
        address = task.buffer_info()[0]
        start = clock()
        driver.function(address)
        end = clock()
        self.check(task[native_code.STATUS])
        return end - start

    def _timed(self, launch: Launch, values: Sequence[int], blocks: range) -> None:
        """Run blocks in this thread; their time counts, of those of fixed sizes the shortest so far."""
        seconds = self._alone(launch.driver, values, blocks, time.perf_counter)
        if not blocks:
            return
        known = None if launch.sizes else self.seconds_per_block
        self.seconds_per_block = min(seconds / len(blocks), known or inf)

    def check(self, failed: int) -> None:
        """Raise the Python exception that a number in the status word stands for."""
        if failed:
            raise failure(self.messages[failed - 1])


def chunk_size(blocks: int, threads: int) -> int:
    """How many blocks a thread takes at once."""
    return max(1, blocks // (threads * CHUNKS_PER_THREAD) if threads > 1 else blocks)
