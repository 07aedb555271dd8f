"""`deplo.compile`: from a PyTorch module or function to a program that runs.

program = deplo.compile(nn.RMSNorm(2048), (torch.randn(1, 32, 2048),))
program(x)                      # as the original: same pytree, dtypes and shapes
program.ir("loop")              # the text of any stage
program.kernels[0].source       # CUDA C++ or LLVM IR
program.report()                # decisions, kernels, times
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from .analysis.eager_calls import EagerCall, summary
from .errors import FallbackWarning, UsageError
from .execution import Code, ExecutionPlan, Kernel
from .frontend.capture import Captured, capture
from .frontend.complex_graphs import as_complex, as_pairs
from .frontend.importer import Fallback
from .frontend.overlaps import check_apart
from .frontend.precision import with_asked_precision
from .garbage import fewer_collections
from .machine.host_cpu import find_target, host_cpu
from .machine.targets import TARGETS, Target
from .passes.pipelines import DEFAULT_CUDA_TARGET, make_pipeline
from .program_stages import asked_schedule
from .runtime.cuda_graphs import GraphedCalls
from .tune.settings import Settings, seconds_of

__all__ = ["Kernel", "Program", "choose_target", "compile", "module_for"]


class Program(ExecutionPlan):
    """A compiled program; call it like what it was compiled from."""

    def __init__(self, captured: Captured, target: Target, schedule: str | None = None):
        """Compile a captured program for a target, with the choices of `asked_schedule(schedule)`."""
        super().__init__(
            Code(module_for(captured, target), target, schedule, "torch", bucketed=True)
        )
        self.captured = captured
        _ = self.plan  # what is not supported is said now
        self.fallbacks: tuple[EagerCall, ...] = self.compilation.fallbacks

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Raises UsageError if the inputs do not fit what it was compiled for."""
        if not kwargs and self._again is not None and (results := self._again(args)) is not None:
            return results[self._only_result or 0]
        flat = self.captured.flatten_inputs(args, kwargs)
        if self.captured.updates:
            names = [argument.name for argument in self.captured.arguments]
            changed = {each.argument for each in self.captured.updates if each.owner is None}
            check_apart(names, self._arguments(flat), changed)
        return self.run_flat(flat)

    def run_flat(self, flat: Sequence[Any]) -> Any:
        """Run the program on flattened inputs that are known to be organized as when compiled."""
        arguments = self._arguments(flat)
        results = self._as_returned(self.code.run(self._on_device(arguments)))
        if self._only_result is not None:
            return results[self._only_result]
        return self.captured.unflatten_outputs(results, arguments)

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The tensors of all arguments of `@main` in a call with these inputs."""
        return self._arguments(self.captured.flatten_inputs(args, kwargs))

    def _arguments(self, flat: Sequence[Any]) -> Sequence[Any]:
        """The tensors of all arguments of `@main`."""
        if self._takes_inputs:
            return flat
        arguments = self._tensors.copy()
        for position, index in self._inputs:
            arguments[position] = flat[index]
        for update in self.captured.updates:
            if update.owner is not None:
                arguments[update.argument] = getattr(*update.owner)
        return arguments

    def _on_device(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The arguments as kernels get them: complex ones as pairs, all of them on its GPU."""
        if not self._brought and not self.captured.complex_arguments:
            return arguments
        placed = list(arguments)
        for place in self.captured.complex_arguments:
            placed[place] = as_pairs(arguments[place], self.captured.arguments[place])
        for place, constant in self._brought.items():
            value = placed[place]
            if constant is None and torch.is_tensor(value) and not value.is_cpu:
                name = self.captured.arguments[place].name
                raise UsageError(
                    f"argument '{name}': expected device cpu, got {value.device}; where results are depends "
                    "on it, compile the program again for tensors of other devices"
                )
            if torch.is_tensor(value):
                placed[place] = (
                    value.detach().to(self.captured.device) if constant is None else constant
                )
        return placed

    def _as_returned(self, results: Sequence[Any]) -> Sequence[Any]:
        """The results of kernels as `@main` has them in PyTorch: pairs as complex numbers."""
        pairs = self.captured.complex_results
        if not pairs:
            return results
        return [as_complex(r) if i in pairs else r for i, r in enumerate(results)]

    @cached_property
    def _brought(self) -> dict[int, torch.Tensor | None]:
        """The places of arguments that are on the CPU beside the program's GPU; constants are there now."""
        device = self.captured.device
        if not self.target.is_gpu or device.type != "cuda":
            return {}
        return {
            place: self.captured.tensors[argument.name].to(device)
            if argument.source == "constant"
            else None
            for place, argument in enumerate(self.captured.arguments)
            if argument.device.type == "cpu"
        }

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
    def _again(self) -> Callable[[Sequence[Any]], tuple[Any, ...] | None] | None:
        """What tries to run a call like an earlier one, if inputs and result are `@main`'s as they are."""
        as_they_are = (
            self._takes_inputs and self.captured.takes_any_tensors and self._only_result is not None
        )
        if not as_they_are or self._brought:
            return None
        if self.captured.complex_arguments or self.captured.complex_results:
            return None
        return self.code.again if self.plan.sizes else self.executable.again

    @cached_property
    def _only_result(self) -> int | None:
        """The result of `@main` that is what the program returns, if it is one as it is."""
        captured, spec = self.captured, self.captured.out_spec
        outputs = captured.outputs
        if len(outputs) != 1 or not spec.is_leaf() or spec.type is torch.Size:
            return None
        if captured.away or captured.updates:
            return None
        (output,) = outputs
        whole = output.source == "result" and output.view is None and output.layout is None
        return output.index if whole else None

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        private_key: bytes | None = None,
        ir: bool = False,
    ) -> None:
        """Write the program to a file that `deplo.runtime.load` runs without PyTorch and without a compiler.

        It holds plans and machine code for `target`, of a program with dynamic sizes for the sizes that it
        was compiled for so far, and the parameters; with `ir`, its text at each stage, too. With a
        `private_key`, the 32 bytes of an Ed25519 key, it is signed. Raises UsageError, which lists what a
        file cannot say, such as calls of PyTorch; MissingEnvironmentError without a linker, or NVRTC.
        """
        write = import_module(".saving.program_file", __package__).save
        write([self], path, Path(path).stem, private_key, ir=ir)

    def save_c_library(self, directory: str | os.PathLike[str], name: str) -> None:
        """Write `libNAME.so`, which has the parameters, `NAME.h`, and `example.c` into a directory.

        Raises UsageError, which lists what C cannot say; MissingEnvironmentError without a C compiler.
        """
        write = import_module(".saving.c_library", __package__).save_c_library
        write(self, Path(directory), name)

    def graphed(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Record a call as a CUDA graph; gives a function that replays it on inputs of the same shapes.

        Its results are new tensors each time. Raises UsageError for a program that is not on a GPU, or whose
        sizes change from call to call, or that has PyTorch run a part of it.
        """
        if not self.target.is_gpu:
            raise UsageError(f"CUDA graphs need a GPU; the program is for {self.target.name}")
        if self.plan.sizes or self.plan.calls or self.captured.updates:
            raise UsageError(
                "only a program of fixed sizes and kernels alone, which changes no argument, can be recorded"
            )
        constant = [
            i
            for i, argument in enumerate(self.captured.arguments)
            if argument.flat_index is None and self._brought.get(i, argument) is not None
        ]
        arguments = self.arguments(args, kwargs)
        recorded = GraphedCalls(self.executable, self._on_device(arguments), constant)

        def replay(*args: Any, **kwargs: Any) -> Any:
            arguments = self.arguments(args, kwargs)
            results = recorded(*self._on_device(arguments))
            return self.captured.unflatten_outputs(self._as_returned(results), arguments)

        return replay


def module_for(captured: Captured, target: Target) -> ModuleOp:
    """What was captured as Torch IR for a target, as precise as PyTorch's settings ask for."""
    cpu = target.cpu or host_cpu()
    return with_asked_precision(
        captured.module, on_gpu=target.is_gpu, multiplies_bf16=cpu.pairs or cpu.mma
    )


def choose_target(target: str, captured: Captured) -> Target:
    """The target of that name; `auto` is the GPU that the program computes on in PyTorch, else the CPU."""
    if target != "auto":
        return find_target(target)
    if captured.device.type != "cuda":
        return find_target("cpu")
    major, minor = torch.cuda.get_device_capability(captured.device)
    for suffix in ("a", ""):
        if (name := f"sm_{major}{minor}{suffix}") in TARGETS:
            return find_target(name)
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
    for a GPU is made without one, but runs only there. Tensors without axes may be on the CPU beside a GPU,
    and results are where they are in PyTorch. With `fallback="eager"`, what deplo does not model runs in
    PyTorch, between the kernels; a FallbackWarning says which operators do. `schedule` has schedules of
    kernels, a line each, "k: tileify,bind{axis=i to=block}", and choices that contractions are to make on a
    GPU, such as "BM=16,BN=16" (docs/schedules.md); None stands for those of DEPLO_SCHEDULE. `tune` is a time
    such as "60s": for so long at most, schedules of the program's kernels are measured on this CPU or GPU
    first (docs/tuning.md).

    Raises UnsupportedOpError, which lists everything the program uses that deplo does not model, or says why
    the program cannot be captured; UsageError for an argument that is wrong.
    """
    if fallback not in ("error", "eager"):
        raise UsageError(f"fallback is 'error' or 'eager', not {fallback!r}")
    if numerics != "default":
        raise UsageError(f"numerics={numerics!r} is not available; there is only 'default'")
    if target != "auto":
        find_target(target)  # before the work of capturing
    if asked := asked_schedule(schedule):
        make_pipeline("loop-to-tile", DEFAULT_CUDA_TARGET, asked)
    with fewer_collections():
        captured = capture(program, args, kwargs, dynamic_shapes, fallback)
        if tune is not None:
            search = import_module(".tune.session", __package__).tune
            chosen = choose_target(target, captured)
            search(module_for(captured, chosen), chosen, seconds_of(tune), Settings())
        compiled = Program(captured, choose_target(target, captured), schedule)
    if (told := summary(compiled.fallbacks)) is not None:
        warnings.warn(told, FallbackWarning, stacklevel=2)
    return compiled
