"""Runs a plan on the CPU: LLVM compiles its kernels in this process, a thread pool runs their blocks.

`DEPLO_NUM_THREADS` sets the number of threads; the default is one per core. A launch that is over sooner
than threads could be woken runs in the calling thread.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numpy as np

from ..errors import DeploError, UsageError
from . import jit
from .arrays import (
    Library,
    NumpyLibrary,
    TorchLibrary,
    aligned_bytes,
    check_count,
    is_torch_tensor,
    shapes_of,
)
from .calls import run_call
from .plan import CallStep, Plan, Ref, Step
from .sizes import static

PARALLEL_SECONDS = 100e-6
"""A launch expected to take longer than this is worth waking the pool for (about 40 us)."""

CHUNKS_PER_THREAD = 4
"""Blocks are handed out in this many chunks per thread, so that an early finisher helps the others."""


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
        self._arenas = threading.local()

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it."""
        check_count(self.plan.arguments, arguments)
        library = self._library(arguments)
        plan = self.plan.at(shapes_of(arguments))
        checked = [
            library.check(value, argument)
            for value, argument in zip(arguments, plan.arguments, strict=True)
        ]
        arena = self._arena(plan.arena_bytes or 0)
        made = [library.empty(b.array) if b.offset is None else None for b in plan.buffers]
        pointers = {Ref("argument", i): library.pointer(value) for i, value in enumerate(checked)}
        for i, buffer in enumerate(plan.buffers):
            offset = buffer.offset
            where = library.pointer(made[i]) if offset is None else arena + static(offset)
            pointers[Ref("buffer", i)] = where
        arrays = {Ref("argument", i): value for i, value in enumerate(checked)}
        arrays |= {Ref("buffer", i): value for i, value in enumerate(made)}
        for step in plan.steps:
            if isinstance(step, CallStep):
                run_call(step, arrays, "cpu")
            else:
                self._run(step, [pointers[ref] for ref in step.arguments])
        return tuple(
            arguments[ref.index] if ref.kind == "argument" else made[ref.index]
            for ref in self.plan.results
        )

    def _library(self, arguments: Sequence[object]) -> Library:
        uses_torch = any(map(is_torch_tensor, arguments))
        if uses_torch or (not arguments and self._default_library == "torch"):
            return TorchLibrary("cpu")
        if self.plan.calls:
            raise UsageError(
                f"this program lets PyTorch run {self.plan.calls[0].operator}: pass torch tensors"
            )
        return NumpyLibrary()

    def _arena(self, size: int) -> int:
        """The address of this thread's arena, which has at least `size` bytes."""
        if not hasattr(self._arenas, "memory") or len(self._arenas.memory) < size:
            self._arenas.memory = aligned_bytes(size)
        return self._arenas.memory.ctypes.data

    def _run(self, step: Step, pointers: list[int]) -> None:
        kernel = self._kernels[step.kernel]
        status = np.zeros(1, np.int64)
        sizes = [static(size) for size in step.sizes]
        kernel.run(pointers, sizes, static(step.blocks), status.ctypes.data)
        if failed := int(status[0]):
            raise _failure(kernel.messages[failed - 1])


class _CpuKernel:
    """A compiled kernel, and how long one of its blocks takes."""

    def __init__(self, compiled: jit.CompiledKernel, messages: tuple[str, ...]):
        self.compiled = compiled
        self.messages = messages
        self.seconds_per_block: float | None = None

    def run(self, pointers: list[int], sizes: list[int], blocks: int, status: int) -> None:
        """Run all blocks, in this thread or shared with the pool."""
        call = self._bind(pointers, sizes, status)
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

    def _bind(
        self, pointers: list[int], sizes: list[int], status: int
    ) -> Callable[[int, int], None]:
        function = self.compiled.function(len(pointers), len(sizes))
        values = [*map(ctypes.c_void_p, pointers), *sizes]

        def call(begin: int, end: int) -> None:
            function(*values, begin, end, status)

        return call

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
