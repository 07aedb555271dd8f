"""Runs a plan on the CPU: LLVM compiles its kernels in this process, threads run their blocks.

A launch that is over sooner than other threads could help runs in the calling thread (`threads.py`).
"""

from __future__ import annotations

import array
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from ..errors import DeploError, UsageError
from . import jit
from .arrays import (
    Library,
    NumpyLibrary,
    aligned_bytes,
    check_count,
    is_torch_tensor,
    shapes_of,
    torch_library,
)
from .calls import BoundCall
from .plan import MAX_KNOWN, Array, CallStep, Plan, Ref
from .prepared import NativeLaunch, PreparedCall, nothing, prepare
from .sizes import static
from .stages import check_found, find_sizes, stages_of
from .threads import Sharing, sharing

TIMED_CALLS = 4
"""Calls after which it is settled whether a launch of fixed sizes is worth other threads' help."""

SURELY_WORTH = 40
"""How many times as long as such work must take that the first call settles it: caches and pages are cold."""

MAX_PREPARED = 4
"""Calls that a program has prepared at most; the oldest makes room."""

CHUNKS_PER_THREAD = 8
"""A thread takes its blocks in this many chunks, so that those who finish early can help it."""


@dataclass(frozen=True)
class _Launch:
    """One launch, with numbers in the place of sizes; arrays by their position in `_Ready.arrays`."""

    kernel: _CpuKernel
    driver: jit.Driver
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


@dataclass
class _Ready:
    """A plan whose sizes are known, as calls need it; its arrays are the arguments, then the buffers."""

    plan: Plan
    arena_bytes: int
    buffers: tuple[tuple[Array | None, int], ...]
    """Each buffer's array, or None and its place in the arena if it lies there."""
    steps: tuple[_Launch | BoundCall, ...]
    results: tuple[int, ...]
    calls: int = 0
    """How often it ran."""

    def launches(self, group: range) -> list[_Launch]:
        """The launches of a group of steps."""
        steps = (self.steps[i] for i in group)
        return [step for step in steps if isinstance(step, _Launch)]


class CpuProgram:
    """A plan compiled for this CPU; call it with the plan's arguments, in order.

    Arrays may be numpy arrays or torch CPU tensors; results are of the same library. Calls from
    several threads at once are safe.
    """

    def __init__(self, plan: Plan, library: str | None = None):
        """Compile the kernels; `library` is where results come from if no argument says so."""
        if plan.target != "cpu":
            raise UsageError(f"a plan for {plan.target} does not run on the CPU; compile for cpu")
        self.plan = plan
        self._default_library = library
        self._kernels = {
            k.name: _CpuKernel(jit.compile_kernel(k.name, k.source), k.messages)
            for k in plan.kernels
        }
        self._stages = stages_of(plan)
        if any(len(group) > 1 for stage in self._stages for group in stage.groups):
            jit.group_driver()  # now, not in the first call that shares its launches out
        self._own = threading.local()
        self._ready: dict[int, _Ready] = {}
        self._prepared: tuple[PreparedCall, ...] = ()

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it.

        `given` is what its first calls of PyTorch gave, which are not to run again. Raises EmptySize where
        a size is found to be 0.
        """
        if not given and (results := self.again(arguments)) is not None:
            return results
        return self._run(arguments, given, sharing())

    def again(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """Run the plan as an earlier call did, if arguments are like its: prepared; else None."""
        shared = sharing()
        count = len(arguments)
        for prepared in self._prepared:
            if (
                prepared.shared is shared  # in a forked child it is not
                and prepared.count == count
                and prepared.fits(*arguments)
            ):
                arena = self._arena(prepared.arena_bytes) if prepared.arena_bytes else 0
                results = prepared.run(arguments, arena)
                if isinstance(results, str):
                    raise _failure(results)
                return results
        return None

    def _run(
        self, arguments: Sequence[Any], given: Sequence[Sequence[Any]], shared: Sharing
    ) -> tuple[Any, ...]:
        check_count(self.plan.arguments, arguments)
        library = self._library(arguments)
        shapes = shapes_of(arguments) if self.plan.sizes else ()
        ready = self._at(self.plan.at(shapes) if self.plan.sizes else self.plan)
        arrays = list(arguments)
        pointers = library.addresses(arguments, ready.plan.arguments)
        as_they_are = pointers is not None
        if pointers is None:
            arrays = list(map(library.check, arguments, ready.plan.arguments))
            pointers = library.pointers(arrays)
        count = len(arrays)
        arrays += [None] * len(ready.buffers)
        pointers += [0] * len(ready.buffers)
        arena = self._arena(ready.arena_bytes) if ready.arena_bytes else 0
        calls: list[Sequence[Any]] = []
        found: dict[int, int] = {}
        for stage in self._stages:
            for index in stage.buffers:
                kind, offset = ready.buffers[index]
                if kind is None:
                    pointers[count + index] = arena + offset
                    continue
                made = arrays[count + index] = library.empty(kind)
                pointers[count + index] = library.pointer(made)
            for group in stage.groups:
                step = ready.steps[group.start]
                if len(group) > 1:
                    _run_group(ready.launches(group), pointers, shared)
                elif isinstance(step, _Launch):
                    step.kernel.run(step, [pointers[i] for i in step.positions], shared)
                else:
                    again = given[len(calls)] if len(calls) < len(given) else None
                    calls.append(step.run(arrays, again))
                    for position in step.results:
                        pointers[position] = library.pointer(arrays[position])
            if stage.finds:
                made = dict(enumerate(arrays[count:]))
                found |= find_sizes(self.plan, stage, made, calls)
                ready = self._at(self.plan.at(shapes, found))
                check_found(ready.plan, stage, made)
        _write_back(ready.plan, arguments, arrays)
        ready.calls += 1
        if as_they_are and ready.calls >= TIMED_CALLS:
            self._prepare(ready, arguments, library, shared)
        return tuple([arguments[i] if i < count else arrays[i] for i in ready.results])

    def _prepare(
        self, ready: _Ready, arguments: Sequence[Any], library: Library, shared: Sharing
    ) -> None:
        """Prepare calls with such arguments, if native calls can do all launches: without a pool."""
        if any(stage.finds for stage in self._stages):
            return
        threads = [
            step.kernel.threads_for(step.blocks, shared) if isinstance(step, _Launch) else 1
            for step in ready.steps
        ]
        together = [False] * len(threads)
        for group in (group for stage in self._stages for group in stage.groups):
            if len(group) > 1 and _worth_sharing(ready.launches(group), shared):
                for i in group:
                    threads[i], together[i] = shared.threads, i != group[-1]
        if shared.team is None and max(threads, default=1) > 1:
            return
        if (fits := library.guard(arguments)) is None:
            return
        made = [i for i, (kind, _) in enumerate(ready.buffers) if kind is not None]
        placed = [i for i, (kind, _) in enumerate(ready.buffers) if kind is None]
        count = len(arguments)
        places = {count + i: count + n for n, i in enumerate([*made, *placed])}
        called = {ref.index for step in ready.plan.calls for ref in step.results}

        def place(ref: Ref) -> int:
            position = _position(ready.plan, ref)
            return places.get(position, position)

        def prepared_step(
            step: _Launch | BoundCall, n: int, more: bool
        ) -> NativeLaunch | BoundCall:
            if isinstance(step, BoundCall):
                return BoundCall(step.step, "cpu", place, ready.plan.array)
            return step.native(n, places, more)

        prepared = prepare(
            shared,
            count,
            fits,
            library.pointer,
            [
                nothing if i in called else library.maker(kind)
                for i, (kind, _) in enumerate(ready.buffers)
                if kind is not None
            ],
            ready.arena_bytes,
            [ready.buffers[i][1] for i in placed],
            list(map(prepared_step, ready.steps, threads, together)),
            [places.get(i, i) for i in ready.results],
        )
        self._prepared = (*self._prepared[1 - MAX_PREPARED :], prepared)

    def _library(self, arguments: Sequence[object]) -> Library:
        uses_torch = any(map(is_torch_tensor, arguments))
        if uses_torch or (not arguments and self._default_library == "torch"):
            return torch_library("cpu")
        if self.plan.calls:
            raise UsageError(
                f"this program lets PyTorch run {self.plan.calls[0].operator}: pass torch tensors"
            )
        return NumpyLibrary()

    def _at(self, plan: Plan) -> _Ready:
        """What calls need of a plan whose sizes are known."""
        ready = self._ready.get(id(plan))
        if ready is None or ready.plan is not plan:
            if len(self._ready) >= MAX_KNOWN:
                self._ready.clear()
            ready = self._ready[id(plan)] = self._make_ready(plan)
        return ready

    def _make_ready(self, plan: Plan) -> _Ready:
        position = partial(_position, plan)
        compared_later = {stage.end - 1 for stage in self._stages if stage.finds}
        steps: list[_Launch | BoundCall] = []
        for number, step in enumerate(plan.steps):
            if isinstance(step, CallStep):
                array = None if number in compared_later else plan.array
                steps.append(BoundCall(step, "cpu", position, array))
                continue
            positions = tuple(map(position, step.arguments))
            sizes = list(map(static, step.sizes))
            kernel = self._kernels[step.kernel]
            driver = jit.driver(len(positions) + len(sizes))
            steps.append(_Launch(kernel, driver, positions, sizes, static(step.blocks)))
        buffers = tuple(
            (b.array, 0) if b.offset is None else (None, static(b.offset)) for b in plan.buffers
        )
        results = tuple(map(position, plan.results))
        return _Ready(plan, plan.arena_bytes or 0, buffers, tuple(steps), results)

    def _arena(self, size: int) -> int:
        """The address of this thread's arena, which has at least `size` bytes."""
        own = self._own
        if getattr(own, "arena_bytes", -1) < size:
            own.arena, own.arena_bytes = aligned_bytes(size), size
            own.arena_address = own.arena.ctypes.data
        return own.arena_address


def _position(plan: Plan, ref: Ref) -> int:
    """Where an array is among the arguments and, behind them, the buffers."""
    return ref.index if ref.kind == "argument" else len(plan.arguments) + ref.index


def _write_back(plan: Plan, arguments: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Give the arguments that a plan writes to what it wrote, where it got copies of them."""
    for i in plan.updated:
        argument = arguments[i]
        if arrays[i] is not argument:
            (argument.detach() if is_torch_tensor(argument) else argument)[...] = arrays[i]


def _run_group(launches: Sequence[_Launch], pointers: Sequence[int], shared: Sharing) -> None:
    """Run launches at once, if other threads are worth the handing over; else one after the other."""
    if not _worth_sharing(launches, shared):
        for launch in launches:
            launch.kernel.run(launch, [pointers[i] for i in launch.positions], shared)
        return
    tasks: list[tuple[jit.Driver, array.array[int]]] = []
    for launch in launches:
        values = [*(pointers[i] for i in launch.positions), *launch.sizes]
        chunk = chunk_size(launch.blocks, shared.threads)
        task = shared.task(launch.kernel.address, values, range(launch.blocks), chunk)
        tasks.append((launch.driver, task))
    shared.run_together(tasks)
    for launch, (_, task) in zip(launches, tasks, strict=True):
        launch.kernel.check(task[jit.STATUS])


def _worth_sharing(launches: Sequence[_Launch], shared: Sharing) -> bool:
    """Whether other threads are to help with launches that may run at once; all must be settled by now."""
    seconds = 0.0
    for launch in launches:
        if not launch.kernel.is_settled(launch.blocks, shared):
            return False
        seconds += (launch.kernel.seconds_per_block or 0.0) * launch.blocks
    return shared.threads > 1 and seconds >= shared.worth_seconds


class _CpuKernel:
    """A compiled kernel, and how long one of its blocks takes."""

    def __init__(self, compiled: jit.CompiledKernel, messages: tuple[str, ...]):
        self.address = compiled.address
        self.messages = messages
        self.seconds_per_block: float | None = None
        self.timed = 0

    def run(self, launch: _Launch, values: list[int], shared: Sharing) -> None:
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
        driver: jit.Driver,
        values: Sequence[int],
        blocks: range,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> float:
        """Run blocks in this thread; gives how long that took by the clock."""
        task = jit.make_task(self.address, values, blocks, max(len(blocks), 1))
        address = task.buffer_info()[0]
        start = clock()
        driver.function(address)
        end = clock()
        self.check(task[jit.STATUS])
        return end - start

    def _timed(self, launch: _Launch, values: Sequence[int], blocks: range) -> None:
        """Run blocks in this thread; their time counts, of those of fixed sizes the shortest so far."""
        seconds = self._alone(launch.driver, values, blocks, time.perf_counter)
        if not blocks:
            return
        known = None if launch.sizes else self.seconds_per_block
        self.seconds_per_block = min(seconds / len(blocks), known or inf)

    def check(self, failed: int) -> None:
        """Raise the Python exception that a number in the status word stands for."""
        if failed:
            raise _failure(self.messages[failed - 1])


def chunk_size(blocks: int, threads: int) -> int:
    """How many blocks a thread takes at once."""
    return max(1, blocks // (threads * CHUNKS_PER_THREAD) if threads > 1 else blocks)


def _failure(message: str) -> Exception:
    """The Python exception that eager execution would end with."""
    if message.startswith("index"):
        return IndexError(message)
    if message.endswith("division by zero"):
        return ZeroDivisionError(message)
    return DeploError(message)
