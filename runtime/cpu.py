"""Runs a plan on the CPU: LLVM compiles its kernels in this process, threads run their blocks.

A launch that is over sooner than other threads could help runs in the calling thread (`threads.py`).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
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
from .threads import share, thread_count, worth_sharing

CHUNKS_PER_THREAD = 8
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
        self._own = threading.local()
        self._ready: dict[int, _Ready] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it."""
        check_count(self.plan.arguments, arguments)
        library = self._library(arguments)
        ready = self._at(self.plan.at(shapes_of(arguments)) if self.plan.sizes else self.plan)
        plan = ready.plan
        arrays = [
            library.check(value, argument)
            for value, argument in zip(arguments, plan.arguments, strict=True)
        ]
        pointers = [library.pointer(value) for value in arrays]
        arena = self._arena(ready.arena_bytes)
        for buffer, offset in zip(plan.buffers, ready.offsets, strict=True):
            made = library.empty(buffer.array) if offset is None else None
            arrays.append(made)
            pointers.append(library.pointer(made) if offset is None else arena + offset)
        for step in ready.steps:
            if isinstance(step, CallStep):
                run_call(step, _by_reference(plan, arrays), "cpu")
            else:
                self._run(step, pointers)
        count = len(arguments)
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
        values = [*[pointers[i] for i in launch.positions], *launch.sizes]
        launch.kernel.run(values, launch.blocks, own.status_address)
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
        self.address = compiled.address
        self.messages = messages
        self.seconds_per_block: float | None = None

    def run(self, values: Sequence[int], blocks: int, status: int) -> None:
        """Run all blocks, in this thread or shared with others; `values` are its buffers and sizes."""
        driver = jit.driver(len(values))
        task = _task_type(len(values))(0, blocks, blocks, self.address, status, *values)
        address = ctypes.addressof(task)
        threads = thread_count()
        if threads == 1 or blocks < 2:
            driver.function(address)
            return
        if self.seconds_per_block is None:
            # The first call pays for cold pages and caches, so the second block tells the truth.
            task[1] = task[2] = 1
            driver.function(address)
            task[0], task[1] = 1, 2
            self._timed(lambda: driver.function(address), 1)
            task[0], task[1] = 2, blocks
        left = blocks - task[0]
        assert self.seconds_per_block is not None
        if self.seconds_per_block * left < worth_sharing():
            task[2] = left
            self._timed(lambda: driver.function(address), left)
        else:
            task[2] = max(1, left // (threads * CHUNKS_PER_THREAD))
            self._timed(lambda: share(driver, address), left, threads)

    def _timed(self, call: Callable[[], None], blocks: int, threads: int = 1) -> None:
        start = time.perf_counter()
        call()
        if blocks:
            self.seconds_per_block = (time.perf_counter() - start) * threads / blocks


@cache
def _task_type(arguments: int) -> Any:
    return ctypes.c_int64 * (jit.TASK_WORDS + arguments)


def _failure(message: str) -> Exception:
    """The Python exception that eager execution would end with."""
    if message.startswith("index"):
        return IndexError(message)
    if message.endswith("division by zero"):
        return ZeroDivisionError(message)
    return DeploError(message)
