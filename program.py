"""`deplo.compile`: from a PyTorch module or function to a program that runs.

program = deplo.compile(nn.RMSNorm(2048), (torch.randn(1, 32, 2048),))
program(x)                      # as the original: same pytree, dtypes and shapes
program.ir("loop")              # the text of any stage
program.kernels[0].source       # CUDA C++ or LLVM IR
program.report()                # decisions, kernels, times
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from .analysis.fallbacks import Fallback as EagerCall
from .analysis.fallbacks import summary
from .analysis.sizes import without_size
from .analysis.targets import TARGETS, Target, get_target
from .errors import FallbackWarning, MissingEnvironmentError, UsageError
from .frontend.capture import Captured, capture
from .frontend.importer import Fallback
from .garbage import fewer_collections
from .passes.pipelines import DEFAULT_CUDA_TARGET, make_pipeline
from .program_stages import (
    Compilation,
    asked_schedule,
    compile_module,
    module_at,
    text_of,
)
from .runtime.cpu import CpuProgram
from .runtime.cuda import CudaProgram
from .runtime.cuda_graphs import GraphedCalls
from .runtime.plan import Plan
from .runtime.sizes import EmptySize, Extent
from .tune.session import tune as search
from .tune.settings import Settings, seconds_of


@dataclass(frozen=True)
class Kernel:
    """One kernel of a program: its name and its text, CUDA C++ or LLVM IR."""

    name: str
    source: str


class Program:
    """A compiled program; call it like what it was compiled from."""

    def __init__(self, captured: Captured, target: Target, schedule: str | None = None):
        """Compile a captured program for a target, with the choices of `asked_schedule(schedule)`."""
        self.captured = captured
        self.target = target
        self.schedule = asked_schedule(schedule)
        self.compilation = Compilation()
        self._empty: dict[int, Program] = {}
        compiled = compile_module(captured.module, target, self.schedule, self.compilation)
        self.fallbacks: tuple[EagerCall, ...] = self.compilation.fallbacks
        self.plan = Plan.from_data(compiled.plan)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The program's kernels; one that is launched several times is here once."""
        return tuple(Kernel(k.name, k.source) for k in self.plan.kernels)

    def stage(self, stage: str) -> ModuleOp:
        """The module at a stage: torch, tensor, loop, tile, then kernel and cuda, or llvm."""
        return module_at(stage, self.captured.module, self.target, self.schedule)

    def ir(self, stage: str) -> str:
        """The text of a stage; that of `cuda` is CUDA C++. Raises UsageError if there is none."""
        return text_of(stage, self.stage(stage))

    @cached_property
    def executable(self) -> CpuProgram | CudaProgram:
        """The machine code of all kernels, made when first needed.

        Raises MissingEnvironmentError where the machine lacks the compiler.
        """
        start = time.perf_counter()
        with fewer_collections():
            made = CudaProgram(self.plan) if self.target.is_gpu else CpuProgram(self.plan, "torch")
        name = "nvrtc" if self.target.is_gpu else "llvm -O3"
        self.compilation.seconds.append((name, time.perf_counter() - start))
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Raises UsageError if the inputs do not fit what it was compiled for."""
        return self.run_flat(self.captured.flatten_inputs(args, kwargs))

    def run_flat(self, flat: Sequence[Any]) -> Any:
        """Run the program on flattened inputs that are known to be organized as when compiled."""
        arguments = self._arguments(flat)
        results = self._run(arguments)
        if self._only_result is not None:
            return results[self._only_result]
        return self.captured.unflatten_outputs(results, arguments)

    def _run(self, arguments: Sequence[Any], given: Sequence[Sequence[Any]] = ()) -> Sequence[Any]:
        """The results of `@main`; `given` is what its first calls of PyTorch gave."""
        try:
            if given:
                return self.executable(*arguments, given=given)
            return self.executable(*arguments)
        except EmptySize as found:
            return self._without(found.number)._run(arguments, found.given)

    def _without(self, size: int) -> Program:
        """The program for which a size is 0, compiled when it is first needed."""
        if size not in self._empty:
            module = without_size(self.captured.module, size)
            self._empty[size] = Program(
                replace(self.captured, module=module), self.target, self.schedule
            )
        return self._empty[size]

    def _arguments(self, flat: Sequence[Any]) -> Sequence[Any]:
        """The tensors of all arguments of `@main`."""
        if self._takes_inputs:
            return flat
        arguments = self._tensors.copy()
        for position, index in self._inputs:
            arguments[position] = flat[index]
        return arguments

    @cached_property
    def _tensors(self) -> list[torch.Tensor | None]:
        """The parameters, buffers and constants in their places among the arguments of `@main`."""
        return [self.captured.tensors.get(argument.name) for argument in self.captured.arguments]

    @cached_property
    def _inputs(self) -> list[tuple[int, int]]:
        """The places of the other arguments, with their positions among the flattened inputs."""
        places = enumerate(argument.flat_index for argument in self.captured.arguments)
        return [(place, index) for place, index in places if index is not None]

    @cached_property
    def _takes_inputs(self) -> bool:
        """Whether the arguments of `@main` are the flattened inputs, all of them and in order."""
        count = max(len(self.captured.arguments), self.captured.in_spec.num_leaves)
        return self._inputs == [(n, n) for n in range(count)]

    @cached_property
    def _only_result(self) -> int | None:
        """The result of `@main` that is what the program returns, if it is one as it is."""
        outputs, spec = self.captured.outputs, self.captured.out_spec
        if len(outputs) != 1 or not spec.is_leaf() or spec.type is torch.Size:
            return None
        (output,) = outputs
        whole = output.source == "result" and output.view is None and output.axes is None
        return output.index if whole else None

    def graphed(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Record a call as a CUDA graph; gives a function that replays it on inputs of the same shapes.

        Its results are new tensors each time. Raises UsageError for a program that is not on a GPU, or whose
        sizes change from call to call, or that has PyTorch run a part of it.
        """
        if not self.target.is_gpu:
            raise UsageError(f"CUDA graphs need a GPU; the program is for {self.target.name}")
        if self.plan.sizes or self.plan.calls:
            raise UsageError("only a program of fixed sizes and kernels alone can be recorded")
        constant = [i for i, a in enumerate(self.captured.arguments) if a.flat_index is None]
        arguments = self._arguments(self.captured.flatten_inputs(args, kwargs))
        recorded = GraphedCalls(self.executable, arguments, constant)

        def replay(*args: Any, **kwargs: Any) -> Any:
            arguments = self._arguments(self.captured.flatten_inputs(args, kwargs))
            return self.captured.unflatten_outputs(recorded(*arguments), arguments)

        return replay

    def report(self) -> dict[str, Any]:
        """What was decided and made, as JSON data; compiles the kernels if NVRTC or LLVM is there."""
        usage: Mapping[str, Any] = {}
        note = None
        try:
            executable = self.executable
            usage = executable.usage if isinstance(executable, CudaProgram) else {}
        except MissingEnvironmentError as error:
            note = str(error)
        steps = {step.kernel: step for step in self.plan.launches}
        return {
            "target": self.target.name,
            "kernels": [
                {
                    "name": k.name,
                    "blocks": _as_data(steps[k.name].blocks),
                    "threads": steps[k.name].threads,
                    "launches": sum(step.kernel == k.name for step in self.plan.launches),
                    **({} if k.name not in usage else vars(usage[k.name])),
                }
                for k in self.plan.kernels
            ],
            "calls": [
                {
                    "operator": f.operator,
                    "count": len(f.where),
                    "where": list(f.where),
                    "reason": f.reason or None,
                }
                for f in self.fallbacks
            ],
            "arena_bytes": self.plan.arena_bytes,
            "decisions": [
                {"pass": d.pass_name, "kernel": d.kernel, "fired": d.fired, "reason": d.reason}
                for d in self.compilation.decisions
            ],
            "seconds": [{"step": n, "seconds": s} for n, s in self.compilation.seconds],
            "note": note,
        }


def _as_data(extent: Extent) -> int | str:
    """An extent as JSON data."""
    return extent if isinstance(extent, int) else str(extent)


def choose_target(target: str, captured: Captured) -> Target:
    """The target of that name; `auto` is the GPU that the inputs live on, else the CPU."""
    if target != "auto":
        return get_target(target)
    devices = {argument.device for argument in captured.arguments}
    if not any(device.type == "cuda" for device in devices):
        return get_target("cpu")
    if len(devices) > 1:
        listed = ", ".join(sorted(map(str, devices)))
        raise UsageError(f"the inputs and parameters are on several devices: {listed}")
    major, minor = torch.cuda.get_device_capability(devices.pop())
    for suffix in ("a", ""):
        if (name := f"sm_{major}{minor}{suffix}") in TARGETS:
            return get_target(name)
    raise UsageError(f"this GPU is sm_{major}{minor}; deplo compiles for {', '.join(TARGETS)}")


def compile(
    program: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "auto",
    fallback: Fallback = "error",
    dynamic_shapes: Any = None,
    numerics: str = "default",
    schedule: str | None = None,
    tune: str | None = None,
) -> Program:
    """Compile a module or function for inputs like `args` and `kwargs`, whose shapes become fixed.

    But the extents that `dynamic_shapes` names, as torch.export takes it, may change from call to call.

    `target` is cpu, sm_80, sm_90a, sm_100a, sm_120, or auto: the GPU the inputs live on, else the CPU. Code
    for a GPU is made without one, but runs only there. With `fallback="eager"`, what deplo does not model
    runs in PyTorch, between the kernels; a FallbackWarning says which operators do. `schedule` has choices
    that contractions are to make on a GPU, such as "BM=16,BN=16" (docs/schedules.md); None stands for those
    of the environment variable DEPLO_SCHEDULE. `tune` is a time such as "60s": for so long at most, schedules
    of the program's kernels are measured on this CPU first (docs/tuning.md).

    Raises UnsupportedOpError, which lists everything the program uses that deplo does not model;
    UsageError for an argument that is wrong; DeploError if the program cannot be captured.
    """
    if fallback not in ("error", "eager"):
        raise UsageError(f"fallback is 'error' or 'eager', not {fallback!r}")
    if numerics != "default":
        raise UsageError(f"numerics={numerics!r} is not available; there is only 'default'")
    if target != "auto":
        get_target(target)  # before the work of capturing
    if asked := asked_schedule(schedule):
        make_pipeline("loop-to-tile", DEFAULT_CUDA_TARGET, asked)
    with fewer_collections():
        captured = capture(program, args, kwargs, dynamic_shapes, fallback)
        if tune is not None:
            search(captured.module, choose_target(target, captured), seconds_of(tune), Settings())
        compiled = Program(captured, choose_target(target, captured), schedule)
    if (told := summary(compiled.fallbacks)) is not None:
        warnings.warn(told, FallbackWarning, stacklevel=2)
    return compiled
