"""Runs a plan on the CPU: LLVM compiles its kernels in this process, a thread pool runs their blocks.

`DEPLO_NUM_THREADS` sets the number of threads; the default is one per core. A launch that is over sooner
than threads could be woken runs in the calling thread.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

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
from .calls import run_call
from .plan import MAX_KNOWN, CallStep, Plan, Ref
from .sizes import static
from .stages import check_found, find_sizes, stages_of

PARALLEL_SECONDS = 100e-6
"""A launch expected to take longer than this is worth waking the pool for (about 40 us)."""

CHUNKS_PER_THREAD = 4
"""Blocks are handed out in this many chunks per thread, so that an early finisher helps the others."""


@dataclass(frozen=True)
class _Launch:
    """One launch, with numbers in the place of sizes; arrays by their position in `_Ready.arrays`."""

    kernel: _CpuKernel
    positions: tuple[int, ...]
    sizes: tuple[int, ...]
    blocks: int


@dataclass(frozen=True)
class _Ready:
    """A plan whose sizes are known, as calls need it; its arrays are the arguments, then the buffers."""

    plan: Plan
    arena_bytes: int
    offsets: tuple[int | None, ...]
    """Each buffer's place in the arena, if it lies there."""
    steps: tuple[_Launch | CallStep, ...]
    results: tuple[int, ...]


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
        self._own = threading.local()
        self._ready: dict[int, _Ready] = {}

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it.

        `given` is what its first calls of PyTorch gave, which are not to run again. Raises EmptySize where
        a size is found to be 0.
        """
        check_count(self.plan.arguments, arguments)
        library = self._library(arguments)
        shapes = shapes_of(arguments) if self.plan.sizes else ()
        ready = self._at(self.plan.at(shapes))
        arrays: list[Any] = [
            library.check(value, argument)
            for value, argument in zip(arguments, ready.plan.arguments, strict=True)
        ]
        pointers = [library.pointer(value) for value in arrays]
        count = len(arrays)
        arrays += [None] * len(ready.offsets)
        pointers += [0] * len(ready.offsets)
        arena = self._arena(ready.arena_bytes)
        calls: list[Sequence[Any]] = []
        found: dict[int, int] = {}
        for stage in self._stages:
            for index in stage.buffers:
                offset = ready.offsets[index]
                if offset is not None:
                    pointers[count + index] = arena + offset
                    continue
                made = arrays[count + index] = library.empty(ready.plan.buffers[index].array)
                pointers[count + index] = library.pointer(made)
            for step in ready.steps[stage.begin : stage.end]:
                if isinstance(step, CallStep):
                    again = given[len(calls)] if len(calls) < len(given) else None
                    named = _by_reference(ready.plan, arrays)
                    calls.append(run_call(step, named, "cpu", again))
                    for ref in step.results:
                        arrays[count + ref.index] = named[ref]
                        pointers[count + ref.index] = library.pointer(named[ref])
                else:
                    self._run(step, pointers)
            if stage.finds:
                made = dict(enumerate(arrays[count:]))
                found |= find_sizes(self.plan, stage, made, calls)
                ready = self._at(self.plan.at(shapes, found))
                check_found(ready.plan, stage, made)
        return tuple(arguments[i] if i < count else arrays[i] for i in ready.results)

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
        def position(ref: Ref) -> int:
            return ref.index if ref.kind == "argument" else len(plan.arguments) + ref.index

        steps: list[_Launch | CallStep] = []
        for step in plan.steps:
            if isinstance(step, CallStep):
                steps.append(step)
                continue
            positions = tuple(map(position, step.arguments))
            sizes = tuple(map(static, step.sizes))
            kernel = self._kernels[step.kernel]
            steps.append(_Launch(kernel, positions, sizes, static(step.blocks)))
        offsets = tuple(None if b.offset is None else static(b.offset) for b in plan.buffers)
        results = tuple(map(position, plan.results))
        return _Ready(plan, plan.arena_bytes or 0, offsets, tuple(steps), results)

    def _arena(self, size: int) -> int:
        """The address of this thread's arena, which has at least `size` bytes."""
        own = self._own
        if getattr(own, "arena_bytes", -1) < size:
            own.arena, own.arena_bytes = aligned_bytes(size), size
            own.arena_address = own.arena.ctypes.data
        return own.arena_address

    def _run(self, launch: _Launch, pointers: Sequence[int]) -> None:
        own = self._own
        if not hasattr(own, "status"):
            own.status = np.zeros(1, np.int64)
            own.status_address = own.status.ctypes.data
        values = (*[pointers[i] for i in launch.positions], *launch.sizes)
        launch.kernel.run(values, len(launch.sizes), launch.blocks, own.status_address)
        if failed := int(own.status[0]):
            own.status[0] = 0
            raise _failure(launch.kernel.messages[failed - 1])


def _by_reference(plan: Plan, arrays: Sequence[Any]) -> dict[Ref, Any]:
    """A call's arrays by what the plan calls them."""
    count = len(plan.arguments)
    named = {Ref("argument", i): value for i, value in enumerate(arrays[:count])}
    return named | {Ref("buffer", i): value for i, value in enumerate(arrays[count:])}


class _CpuKernel:
    """A compiled kernel, and how long one of its blocks takes."""

    def __init__(self, compiled: jit.CompiledKernel, messages: tuple[str, ...]):
        self.compiled = compiled
        self.messages = messages
        self.seconds_per_block: float | None = None

    def run(self, values: tuple[int, ...], sizes: int, blocks: int, status: int) -> None:
        """Run all blocks, in this thread or shared with the pool; the last of `values` are sizes."""
        function = self.compiled.function(len(values) - sizes, sizes)

        def call(begin: int, end: int) -> None:
            function(*values, begin, end, status)

        if thread_count() == 1 or blocks < 2:
            call(0, blocks)
            return
        done = 0
        if self.seconds_per_block is None:
            done = 1
            self._timed(call, 0, 1)
            # The first call pays for cold pages and caches, so the second block tells the truth.
            if blocks > 2:
                done = 2
                self._timed(call, 1, 2)
        assert self.seconds_per_block is not None
        if self.seconds_per_block * (blocks - done) < PARALLEL_SECONDS:
            self._timed(call, done, blocks)
        else:
            _share(call, done, blocks)

    def _timed(self, call: Callable[[int, int], None], begin: int, end: int) -> None:
        start = time.perf_counter()
        call(begin, end)
        if end > begin:
            self.seconds_per_block = (time.perf_counter() - start) / (end - begin)


def _share(call: Callable[[int, int], None], begin: int, end: int) -> None:
    """Run the blocks on all threads, this one included; each takes the next chunk when it is free."""
    size = max(1, -(-(end - begin) // (thread_count() * CHUNKS_PER_THREAD)))
    starts = itertools.count(begin, size)

    def work() -> None:
        for start in starts:  # next() of a count is atomic: no chunk is taken twice
            if start >= end:
                return
            call(start, min(start + size, end))

    others = [_pool().submit(work) for _ in range(thread_count() - 1)]
    work()
    wait(others)
    for other in others:
        other.result()


@cache
def thread_count() -> int:
    """The number of threads that run blocks."""
    text = os.environ.get("DEPLO_NUM_THREADS")
    if text is None:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"DEPLO_NUM_THREADS must be a positive integer, got {text!r}")
    return int(text)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count() - 1, thread_name_prefix="deplo")


# Threads do not survive a fork: a child that used its parent's pool would wait for ever.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _failure(message: str) -> Exception:
    """The Python exception that eager execution would end with."""
    if message.startswith("index"):
        return IndexError(message)
    if message.endswith("division by zero"):
        return ZeroDivisionError(message)
    return DeploError(message)
