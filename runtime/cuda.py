"""Runs a plan on a GPU: NVRTC compiles its kernels, the CUDA driver launches them, here on torch's stream.

Arrays are torch CUDA tensors, and so is the arena: torch's allocator knows every byte, and work is
ordered with the torch operations around it. A program from a file has a GPU without torch (`driver_gpu.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from operator import is_
from typing import Any

from . import cuda_driver
from .arrays import Library, check_count, shapes_of, write_back
from .calls import bind
from .cuda_kernels import CudaKernels
from .cuda_prepared import Launch, PreparedCall
from .gpus import Gpu, Gpus, TorchGpus
from .loops import in_order, moves_of
from .nvrtc import Cubin, Usage, compile_all, compute_capability
from .plan import Plan
from .plan_parts import Array, CallStep, Ref, Step
from .sizes import static
from .stages import Stage, check_found, find_sizes, stages_of

MAX_PREPARED = 4
"""Calls that a program has prepared at most; the oldest makes room."""


@dataclass
class _Run:
    """One run of a plan: its arrays, and where they lie."""

    plan: Plan
    """With the sizes that are known by now."""
    gpu: Gpu
    given: Sequence[Sequence[Any]]
    arrays: dict[Ref, Any]
    pointers: dict[Ref, int]
    calls: list[Sequence[Any]] = field(default_factory=list[Sequence[Any]])
    """What the calls gave so far."""

    def make_buffers(self, stage: Stage, arena: int) -> None:
        """Make the buffers of a stage, or find them in the arena, which begins there."""
        library = self.gpu.library
        for ref in (Ref("buffer", index) for index in stage.buffers):
            buffer = self.plan.buffers[ref.index]
            if buffer.offset is None:
                self.arrays[ref] = library.empty(buffer.array)
                self.pointers[ref] = library.pointer(self.arrays[ref])
            else:
                self.pointers[ref] = arena + static(buffer.offset)

    def call(self, step: CallStep, finds: bool, programs: Mapping[str, CudaProgram]) -> None:
        """Run a call, or take what it gave before; what it `finds` is compared later."""
        again = self.given[len(self.calls)] if len(self.calls) < len(self.given) else None
        array = None if finds else self.plan.array
        bound = bind(step, self.gpu.library, array=array, programs=programs)
        self.calls.append(bound.run(self.arrays, again))
        pointer = self.gpu.library.pointer
        self.pointers |= {ref: pointer(self.arrays[ref]) for ref in step.results}

    @property
    def buffers(self) -> dict[int, Any]:
        """The buffers by number."""
        return {ref.index: value for ref, value in self.arrays.items() if ref.kind == "buffer"}


class CudaProgram:
    """A plan compiled for a GPU architecture; call it with the plan's arguments, in order.

    Making one needs NVRTC only. Calling it needs a GPU of that architecture: without one it raises
    MissingEnvironmentError. Calls return before the GPU is done, as torch's do.
    """

    def __init__(
        self, plan: Plan, cubins: Mapping[str, Cubin] | None = None, gpus: Gpus | None = None
    ):
        """`cubins` are its kernels, if they are compiled already; `gpus` says where it runs, if not torch."""
        compute_capability(plan.target)
        self.plan = plan
        self._gpus = TorchGpus() if gpus is None else gpus
        self._parts = {name: CudaProgram(part, cubins, gpus) for name, part in plan.parts.items()}
        self._stages = stages_of(plan)
        self._kernels = CudaKernels(plan.kernels, _compiled(plan) if cubins is None else cubins)
        self._prepared: tuple[tuple[Gpu, PreparedCall], ...] = ()
        self._groups = any(len(group) > 1 for stage in self._stages for group in stage.groups)

    @property
    def usage(self) -> dict[str, Usage]:
        """Registers, spills and memory of each kernel."""
        parts = {n: u for part in self._parts.values() for n, u in part.usage.items()}
        return parts | self._kernels.usage

    def load(self, gpu: Gpu) -> None:
        """Load all kernels now, not when each is launched first. The GPU must be the current one."""
        for kernel in self.plan.kernels:
            self._kernels.function(gpu.index, kernel.name)
        for part in self._parts.values():
            part.load(gpu)

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it.

        `given` is what its first calls of PyTorch gave, which are not to run again. Raises EmptySize where
        a size is found to be 0.
        """
        if not given and (results := self.again(arguments)) is not None:
            return results
        check_count(self.plan.arguments, arguments)
        gpu = self._gpus.of(arguments, self.plan.target)
        library = gpu.library
        plan = self.plan.at(shapes_of(arguments))
        with gpu.active():
            checked = [
                gpu.aligned(library.check(value, argument))
                for value, argument in zip(arguments, plan.arguments, strict=True)
            ]
            arrays: dict[Ref, Any] = {Ref("argument", i): value for i, value in enumerate(checked)}
            pointers = {ref: library.pointer(value) for ref, value in arrays.items()}
            arrays |= {Ref("buffer", i): None for i in range(len(plan.buffers))}
            run = _Run(plan, gpu, given, arrays, pointers)
            self._run(run, shapes_of(arguments))
        write_back(run.plan.updated, arguments, checked)
        if all(map(is_, checked, arguments)):
            self._prepare(run.plan, arguments, library, gpu)
        return tuple(
            arguments[ref.index] if ref.kind == "argument" else run.arrays[ref]
            for ref in self.plan.results
        )

    def _run(self, run: _Run, shapes: Sequence[Sequence[int]]) -> None:
        """Run all stages, on arguments of these shapes."""
        library = run.gpu.library
        arena = library.empty(Array("i8", (run.plan.arena_bytes or 0,)))
        found: dict[int, int] = {}
        for stage in self._stages:
            run.make_buffers(stage, library.pointer(arena))
            self._run_stage(run, stage)
            if stage.finds:
                found |= find_sizes(self.plan, stage, run.buffers, run.calls)
                run.plan = self.plan.at(shapes, found)
                check_found(run.plan, stage, run.buffers)

    def _run_stage(self, run: _Run, stage: Stage) -> None:
        """Launch the kernels of a stage, and make its calls."""
        plan = run.plan
        for group in in_order(stage.groups, plan.loops, _turns(plan, run.pointers)):
            step = plan.steps[group.start]
            if isinstance(step, CallStep):
                finds = bool(stage.finds) and group.start == stage.end - 1
                run.call(step, finds, self._parts)
                continue
            launches = [s for s in plan.steps[group.start : group.stop] if isinstance(s, Step)]
            with run.gpu.branches(len(group)) as streams:
                for step, stream in zip(launches, cycle(streams), strict=False):
                    self._kernels.launch(plan, step, run.pointers, run.gpu.index, stream)

    def again(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """Run the plan as an earlier call did, if arguments are like its: prepared; else None."""
        count = len(arguments)
        for gpu, prepared in self._prepared:
            if prepared.count == count and prepared.fits(*arguments):
                if not gpu.may_repeat(groups=self._groups):
                    return None
                return prepared.run(arguments, partial(cuda_driver.launch, gpu.stream()))
        return None

    def _prepare(self, plan: Plan, arguments: Sequence[Any], library: Library, gpu: Gpu) -> None:
        """Prepare calls with such arguments, if kernels that get addresses and sizes are all there is."""
        if plan.calls or plan.tensor_maps or (fits := library.guard(arguments)) is None:
            return
        with gpu.active():
            launches = [
                Launch(
                    number,
                    step.kernel,
                    self._kernels.function(gpu.index, step.kernel),
                    static(step.blocks),
                    step.threads,
                    self._kernels.kernels[step.kernel].shared_bytes,
                    step.arguments,
                    tuple(map(static, step.sizes)),
                )
                for number, step in enumerate(plan.steps)
                if isinstance(step, Step) and static(step.blocks)
            ]
            prepared = PreparedCall(plan, launches, library, fits)
        self._prepared = (*self._prepared[1 - MAX_PREPARED :], (gpu, prepared))


def _compiled(plan: Plan) -> dict[str, Cubin]:
    """The kernels of a plan, without those of its parts, by NVRTC."""
    cubins = compile_all([k.source for k in plan.kernels], plan.target)
    return {k.name: cubin for k, cubin in zip(plan.kernels, cubins, strict=True)}


def _turns(plan: Plan, pointers: dict[Ref, int]) -> Callable[[int, int], None]:
    """What puts the places of a loop where they are in a turn, by the numbers of both."""
    moves = moves_of(plan.loops, plan.places, plan.array)

    def begin_turn(loop: int, turn: int) -> None:
        for number, move in enumerate(moves):
            if move.place.loop == loop:
                pointers[Ref("place", number)] = move.address(turn, pointers.__getitem__)

    return begin_turn
