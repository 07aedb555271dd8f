"""Runs a plan on the CPU: LLVM compiles its kernels in this process, threads run their blocks.

A launch that is over sooner than other threads could help runs in the calling thread (`threads.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from ..errors import UsageError
from . import native_code
from .arrays import (
    Library,
    NumpyLibrary,
    TorchLibrary,
    aligned_bytes,
    check_count,
    is_torch_tensor,
    shapes_of,
    torch_library,
    write_back,
)
from .calls import bind
from .cpu_kernels import TIMED_CALLS, CpuKernel, Launch, run_group, threads_of
from .failures import failure
from .loops import Move, in_order, moves_of
from .native_loops import native_loops
from .own_calls import BoundCall, is_own
from .plan import MAX_KNOWN, Plan
from .plan_parts import Array, CallStep, Ref, Step
from .prepared import NativeLaunch, NativeStep, PreparedCall, nothing, prepare
from .sized_calls import SizedCalls
from .sizes import static
from .stages import check_found, find_sizes, stages_of
from .threads import Sharing, sharing

MAX_PREPARED = 4
"""Calls that a program has prepared at most; the oldest makes room."""


@dataclass
class _Ready:
    """A plan whose sizes are known, as calls need it; its arrays are the arguments, then the buffers."""

    plan: Plan
    arena_bytes: int
    buffers: tuple[tuple[Array | None, int], ...]
    """Each buffer's array, or None and its place in the arena if it lies there."""
    steps: tuple[Launch | BoundCall, ...]
    results: tuple[int, ...]
    moves: Sequence[Move]
    """Where the places of its loops lie."""
    calls: int = 0
    """How often it ran."""

    @property
    def names(self) -> list[str]:
        """The kernels or operators of its steps."""
        steps = self.plan.steps
        return [each.kernel if isinstance(each, Step) else each.operator for each in steps]

    def launches(self, group: range) -> list[Launch]:
        """The launches of a group of steps."""
        steps = (self.steps[i] for i in group)
        return [step for step in steps if isinstance(step, Launch)]


class CpuProgram:
    """A plan compiled for this CPU; call it with the plan's arguments, in order.

    Arrays may be numpy arrays or torch CPU tensors; results are of the same library. Calls from
    several threads at once are safe.
    """

    def __init__(self, plan: Plan, library: str | None = None):
        """Compile the kernels; `library` is where results come from if no argument says so."""
        if plan.target != "cpu":
            raise UsageError(f"a plan for {plan.target} does not run on this CPU; compile for cpu")
        self.plan = plan
        self._default_library = library
        self._kernels = {
            k.name: CpuKernel(native_code.compile_kernel(k.name, k.source), k.messages)
            for k in plan.kernels
        }
        self._parts = {name: CpuProgram(part, library) for name, part in plan.parts.items()}
        self._stages = stages_of(plan)
        if any(len(group) > 1 for stage in self._stages for group in stage.groups):
            native_code.group_driver()  # now, not in the first call that shares its launches out
        self._own = threading.local()
        self._ready: dict[tuple[int, str], _Ready] = {}
        self._prepared: tuple[PreparedCall, ...] = ()
        self._sized: SizedCalls | None = None

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it.

        `given` is what its first calls of PyTorch gave, which are not to run again. Raises EmptySize where
        a size is found to be 0.
        """
        shared = sharing()
        if not given:
            if (results := self.again(arguments)) is not None:
                return results
            if (results := self._of_any_sizes(arguments, shared)) is not None:
                return results
        return self._run(arguments, given, shared)

    def _of_any_sizes(self, arguments: Sequence[Any], shared: Sharing) -> tuple[Any, ...] | None:
        """Run the plan on tensors that differ from an earlier call's in their sizes alone; else None."""
        sized = self._sized
        if sized is None or sized.shared is not shared or sized.count != len(arguments):
            return None
        results = sized.run(arguments, self._arena)
        if isinstance(results, str):
            raise failure(results)
        if results is not None and sized.repeats == TIMED_CALLS:
            library = self._library(arguments)
            ready = self._at(self.plan.at(shapes_of(arguments)), library)
            self._prepare(ready, arguments, library, shared)
        return results

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
                    raise failure(results)
                return results
        return None

    def launch_seconds(self, arguments: Sequence[Any], rounds: int) -> dict[str, float]:
        """The median seconds of a launch of each kernel, in runs after it is settled which are shared.

        Kernels that run at once with others have none.
        """
        seconds: dict[str, list[float]] = {}
        for turn in range(TIMED_CALLS + rounds):
            watch = seconds if turn >= TIMED_CALLS else None
            self._run(arguments, (), sharing(), watch)
        return {name: median(times) for name, times in seconds.items()}

    def _run(
        self,
        arguments: Sequence[Any],
        given: Sequence[Sequence[Any]],
        shared: Sharing,
        watch: dict[str, list[float]] | None = None,
    ) -> tuple[Any, ...]:
        """Run the plan, step by step; `watch` gets the seconds of launches by kernel."""
        check_count(self.plan.arguments, arguments)
        library = self._library(arguments)
        shapes = shapes_of(arguments) if self.plan.sizes else ()
        ready = self._at(self.plan.at(shapes) if self.plan.sizes else self.plan, library)
        arrays = list(arguments)
        pointers = library.addresses(arguments, ready.plan.arguments)
        as_they_are = pointers is not None
        if pointers is None:
            arrays = list(map(library.check, arguments, ready.plan.arguments))
            pointers = library.pointers(arrays)
        count = len(arrays)
        arrays += [None] * len(ready.buffers)
        pointers += [0] * (len(ready.buffers) + len(ready.moves))
        arena = self._arena(ready.arena_bytes) if ready.arena_bytes else 0
        calls: list[Sequence[Any]] = []
        found: dict[int, int] = {}
        begin_turn = partial(self._begin_turn, ready, pointers)
        for stage in self._stages:
            for index in stage.buffers:
                kind, offset = ready.buffers[index]
                if kind is None:
                    pointers[count + index] = arena + offset
                    continue
                made = arrays[count + index] = library.empty(kind)
                pointers[count + index] = library.pointer(made)
            for group in in_order(stage.groups, ready.plan.loops, begin_turn):
                step, begin = ready.steps[group.start], time.perf_counter()
                if isinstance(step, BoundCall):
                    again = given[len(calls)] if len(calls) < len(given) else None
                    calls.append(step.run(arrays, again))
                    for position in step.results:
                        pointers[position] = library.pointer(arrays[position])
                    continue
                run_group(ready.launches(group), pointers, shared)
                if watch is not None and len(group) == 1:
                    name = ready.names[group.start]
                    watch.setdefault(name, []).append(time.perf_counter() - begin)
            if stage.finds:
                made = dict(enumerate(arrays[count:]))
                found |= find_sizes(self.plan, stage, made, calls)
                ready = self._at(self.plan.at(shapes, found), library)
                check_found(ready.plan, stage, made)
        write_back(ready.plan.updated, arguments, arrays)
        ready.calls += 1
        if as_they_are:
            self._learn(arguments, library, shared)
        if as_they_are and ready.calls >= TIMED_CALLS:
            self._prepare(ready, arguments, library, shared)
        return tuple([arguments[i] if i < count else arrays[i] for i in ready.results])

    @staticmethod
    def _begin_turn(ready: _Ready, pointers: list[int], loop: int, turn: int) -> None:
        """Put the places of a loop where they are in a turn."""
        position = partial(_position, ready.plan)
        for number, move in enumerate(ready.moves):
            if move.place.loop == loop:
                place = position(Ref("place", number))
                pointers[place] = move.address(turn, lambda ref: pointers[position(ref)])

    def _learn(self, arguments: Sequence[Any], library: Library, shared: Sharing) -> None:
        """Be ready for arguments of other sizes than these."""
        if not isinstance(library, TorchLibrary) or not SizedCalls.may_run(self.plan, shared):
            return
        if self._sized is None or self._sized.shared is not shared:
            self._sized = SizedCalls(self.plan, self._kernels, shared)
        self._sized.learn(library, arguments)

    def _prepare(
        self, ready: _Ready, arguments: Sequence[Any], library: Library, shared: Sharing
    ) -> None:
        """Prepare calls with such arguments, if native calls can do all launches: without a pool."""
        if any(stage.finds for stage in self._stages):
            return
        groups = [group for stage in self._stages for group in stage.groups]
        launches = [step if isinstance(step, Launch) else None for step in ready.steps]
        threads, together = threads_of(launches, groups, shared)
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

        def prepared_step(step: Launch | BoundCall, n: int, more: bool) -> NativeLaunch | BoundCall:
            if isinstance(step, BoundCall):
                return bind(step.step, library, place, ready.plan.array, self._parts)
            return step.native(n, places, more)

        loops = native_loops(
            ready.plan.loops, ready.moves, place, _position(ready.plan, Ref("place", 0))
        )
        steps: list[NativeStep | BoundCall] = []
        for number, step in enumerate(map(prepared_step, ready.steps, threads, together)):
            before, behind = loops.around(number)
            steps += [*before, step, *behind]
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
            list(map(static, loops.numbers)),
            steps,
            [places.get(i, i) for i in ready.results],
        )
        self._prepared = (*self._prepared[1 - MAX_PREPARED :], prepared)

    def _library(self, arguments: Sequence[object]) -> Library:
        uses_torch = any(map(is_torch_tensor, arguments))
        if uses_torch or (not arguments and self._default_library == "torch"):
            return torch_library("cpu")
        if called := [call.operator for call in self.plan.calls if not is_own(call)]:
            raise UsageError(f"this program lets PyTorch run {called[0]}: pass torch tensors")
        return NumpyLibrary()

    def _at(self, plan: Plan, library: Library) -> _Ready:
        """What calls with arrays of a library need of a plan whose sizes are known."""
        key = id(plan), library.name
        ready = self._ready.get(key)
        if ready is None or ready.plan is not plan:
            if len(self._ready) >= MAX_KNOWN:
                self._ready.clear()
            ready = self._ready[key] = self._make_ready(plan, library)
        return ready

    def _make_ready(self, plan: Plan, library: Library) -> _Ready:
        position = partial(_position, plan)
        compared_later = {stage.end - 1 for stage in self._stages if stage.finds}
        steps: list[Launch | BoundCall] = []
        for number, step in enumerate(plan.steps):
            if isinstance(step, CallStep):
                array = None if number in compared_later else plan.array
                steps.append(bind(step, library, position, array, self._parts))
                continue
            positions = tuple(map(position, step.arguments))
            sizes = list(map(static, step.sizes))
            kernel = self._kernels[step.kernel]
            driver = native_code.driver(len(positions) + len(sizes))
            steps.append(Launch(kernel, driver, positions, sizes, static(step.blocks)))
        buffers = tuple(
            (b.array, 0) if b.offset is None else (None, static(b.offset)) for b in plan.buffers
        )
        results = tuple(map(position, plan.results))
        moves = moves_of(plan.loops, plan.places, plan.array)
        return _Ready(plan, plan.arena_bytes or 0, buffers, tuple(steps), results, moves)

    def _arena(self, size: int) -> int:
        """The address of this thread's arena, which has at least `size` bytes."""
        own = self._own
        if getattr(own, "arena_bytes", -1) < size:
            own.arena, own.arena_bytes = aligned_bytes(size), size
            own.arena_address = own.arena.ctypes.data
        return own.arena_address


def _position(plan: Plan, ref: Ref) -> int:
    """Where an array is among the arguments and, behind them, the buffers and then the places of loops."""
    before = {"argument": 0, "buffer": len(plan.arguments)}
    return before.get(ref.kind, len(plan.arguments) + len(plan.buffers)) + ref.index
