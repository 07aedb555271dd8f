"""Calls whose sizes no earlier call had: one native call, too, for what depends on sizes is reckoned at once.

A step of a decoder has one token more than the step before. One function gives the shapes, blocks and sizes
of all kernels; the program of the native call (`prepared.py`) depends on how many blocks each kernel has, so
those that there were are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

from . import native_code
from .arrays import TorchLibrary
from .cpu_kernels import CpuKernel, Launch, threads_of
from .loops import moves_of
from .native_loops import native_loops
from .plan import Plan
from .plan_parts import ITEM_BYTES, Buffer, Ref, Step
from .prepared import NativePart, NativeStep, deplo_run
from .sizes import Expression, Extent, evaluator
from .threads import Sharing

MAX_PROGRAMS = 64
"""Numbers of blocks for which programs are kept."""

TIMED_AGAIN = 256
"""After so many calls one is timed again: its blocks may take longer than those of the first sizes did."""


class SizedCalls:
    """Runs a plan that calls nothing of PyTorch's on tensors of any sizes."""

    def __init__(self, plan: Plan, kernels: Mapping[str, CpuKernel], shared: Sharing):
        self.shared = shared
        self.repeats = 0
        """How many calls in a row had the sizes of the latest one."""
        self.count = len(plan.arguments)
        """How many arguments there are."""
        self._plan, self._kernels = plan, kernels
        self._calls = 0
        self._latest: list[int] = []
        self._steps = [step for step in plan.steps if isinstance(step, Step)]
        self._made = [i for i, buffer in enumerate(plan.buffers) if buffer.offset is None]
        placed = [i for i, buffer in enumerate(plan.buffers) if buffer.offset is not None]
        arguments = len(plan.arguments)
        self._places = {i: arguments + n for n, i in enumerate([*self._made, *placed])}
        self._results = [self._place(ref) for ref in plan.results]
        self._dynamic = [i for i, each in enumerate(plan.arguments) if not each.array.is_static]
        self._first = arguments + len(plan.buffers)
        moves = moves_of(plan.loops, plan.places, plan.array)
        self._loops = native_loops(plan.loops, moves, self._place, self._first)
        sizes = [*self._loops.numbers, *(size for step in self._steps for size in step.sizes)]
        arrays = [plan.arguments[i].array for i in self._dynamic]
        arrays += [plan.buffers[i].array for i in self._made]
        self._numbers = evaluator(
            [
                [step.blocks for step in self._steps],
                sizes,
                [plan.buffers[i].offset or 0 for i in placed],
                [_end(plan.buffers[i]) for i in placed],
                plan.positive,
                *(array.shape for array in arrays),
            ]
        )
        self._pack = Struct(f"{self._first + len(sizes)}q").pack
        self._programs: dict[tuple[int, ...], NativePart] = {}
        self._fits: Callable[..., bool] | None = None
        self._native = deplo_run()

    @staticmethod
    def may_run(plan: Plan, shared: Sharing) -> bool:
        """Whether all that a plan does is launches, and its arguments say all sizes."""
        said = all(size.argument is not None for size in plan.sizes)
        threads = shared.team is not None or shared.threads == 1
        return bool(plan.sizes) and said and threads and not plan.calls

    def learn(self, library: TorchLibrary, arguments: Sequence[Any]) -> None:
        """Take the arguments of a call for what those of later ones are to be like, but for their sizes.

        The latest call that was of another kind counts: one without gradients, say.
        """
        if self._fits is not None and self._fits(*arguments):
            return
        arrays = [argument.array for argument in self._plan.arguments]
        dynamic = [
            {axis for axis, extent in enumerate(array.shape) if isinstance(extent, Expression)}
            for array in arrays
        ]
        self._pointer = library.pointer
        self._empty = library.made
        self._makers = [
            library.maker(array) if (array := self._plan.buffers[i].array).is_static else None
            for i in self._made
        ]
        self._fits = library.guard(arguments, dynamic)  # last: from now on calls are run

    def run(
        self, arguments: Sequence[Any], arena: Callable[[int], int]
    ) -> tuple[Any, ...] | str | None:
        """The results, or what a check says that failed; None for a call of another kind, or to be timed.

        `arena` gives the address of so many bytes.
        """
        self._calls += 1
        if self._calls % TIMED_AGAIN == 0:
            self._programs.clear()
            return None
        if self._fits is None or not self._fits(*arguments):
            return None
        sizes: list[int] = []
        for size in self._plan.sizes:
            assert size.argument is not None
            value = size.at(arguments[size.argument].shape[size.axis])
            if not value:  # not allowed, or 0: the program is compiled apart
                return None
            sizes.append(value)
        blocks, numbers, offsets, ends, positive, *shapes = self._numbers(sizes)
        for position, shape in zip(self._dynamic, shapes, strict=False):
            argument = arguments[position]
            if argument.shape != shape or not argument.is_contiguous():
                return None
        if min(positive, default=1) < 1 or (part := self._program(blocks)) is None:
            return None
        made = shapes[len(self._dynamic) :]
        tensors = list(arguments)
        for i, maker, shape in zip(self._made, self._makers, made, strict=True):
            array = self._plan.buffers[i].array
            tensors.append(self._empty(array.dtype, shape) if maker is None else maker())
        places: Sequence[int] = ()
        if ends:
            start = arena(max(ends))
            places = [start + offset for offset in offsets]
        self._note(sizes)
        packed = self._pack(*map(self._pointer, tensors), *places, *numbers)
        if failed := self._native(part.address, packed):
            return part.messages[failed >> 32][(failed & 0xFFFFFFFF) - 1]
        return tuple([tensors[i] for i in self._results])

    def _note(self, sizes: list[int]) -> None:
        self.repeats = self.repeats + 1 if sizes == self._latest else 0
        self._latest = sizes

    def _place(self, ref: Ref) -> int:
        """Where an array is among a call's values: arguments, what is made, the arena's buffers, places."""
        if ref.kind == "place":
            return self._first + ref.index
        return ref.index if ref.kind == "argument" else self._places[ref.index]

    def _is_settled(self, launch: Launch) -> bool:
        """Whether it is known if a launch is worth other threads' help."""
        alone = self.shared.threads == 1 or launch.blocks < 2
        return alone or launch.kernel.is_settled(launch.blocks, self.shared)

    def _program(self, blocks: tuple[int, ...]) -> NativePart | None:
        """What the native call does where kernels have so many blocks; None until their times are known."""
        if (known := self._programs.get(blocks)) is not None:
            return known
        launches = [
            Launch(
                self._kernels[step.kernel],
                native_code.driver(len(step.arguments) + len(step.sizes)),
                tuple(self._place(ref) for ref in step.arguments),
                [0] * len(step.sizes),
                count,
            )
            for step, count in zip(self._steps, blocks, strict=True)
        ]
        if not all(map(self._is_settled, launches)):
            return None
        threads, together = threads_of(launches, self._plan.groups, self.shared)
        native: list[NativeStep] = []
        for number, launch in enumerate(launches):
            before, behind = self._loops.around(number)
            native += [*before, launch.native(threads[number], {}, together[number]), *behind]
        first = self._first + len(self._loops.numbers)
        if len(self._programs) >= MAX_PROGRAMS:
            self._programs.clear()
        part = self._programs[blocks] = NativePart.of(self.shared, native, first)
        return part


def _end(buffer: Buffer) -> Extent:
    """Where a buffer ends in the arena."""
    factors = [*buffer.array.shape, ITEM_BYTES[buffer.array.dtype]]
    text = f"{buffer.offset} + {' * '.join(f'({factor})' for factor in factors)}"
    return Expression(text)
