"""What compiling Torch IR needs: the stages of each target, their passes, and the kept results.

Nothing here needs PyTorch: `program.py` compiles what `torch.export` captured, `lazy/` what lazy tensors say.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .analysis.eager_calls import EagerCall
from .dialects import get_all_dialects
from .environment import environment_choices
from .errors import UsageError
from .machine.targets import Target
from .passes.decisions import Decision
from .passes.levels import count_of
from .passes.pipelines import make_pipeline
from .program_cache import Compiled, find, is_used, keep, program_key
from .tune.book import open_book

CUDA_STAGES = {
    "torch": None,
    "tensor": "torch-to-tensor",
    "loop": "tensor-to-loop",
    "tile": "loop-to-tile",
    "kernel": "tile-to-kernel",
    "cuda": "kernel-to-cuda",
}
"""Stage -> the pipeline segment that reaches it from the stage before."""

CPU_STAGES = {
    "torch": None,
    "tensor": "torch-to-tensor",
    "loop": "tensor-to-loop",
    "tile": "loop-to-tile",
    "llvm": "tile-to-llvm",
    "asm": None,
}
"""The same for the CPU. `asm` is the text of what LLVM makes of the kernels on this machine."""

OTHER_ENDS = {"mlir": "tile-to-mlir", "c": "tile-to-mlir"}
"""What the CPU's Tile IR becomes for other compilers, in place of `llvm`; both are one module."""


@dataclass
class Compilation:
    """What compiling gave besides the program: decisions and seconds by pass."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    fallbacks: tuple[EagerCall, ...] = ()
    """What is to run in PyTorch."""
    begun: list[object] = field(default_factory=list[object])
    """The machine code that LLVM makes meanwhile: without this, nobody would wait for it."""


def make_context() -> Context:
    """An xDSL context that knows every dialect, each loaded when it is first met."""
    context = Context()
    for name, factory in {**get_xdsl_dialects(), **get_all_dialects()}.items():
        context.register_dialect(name, factory)
    return context


def stages_of(target: Target) -> dict[str, str | None]:
    """The stages a program passes on its way to `target`, with the segment that reaches each."""
    return CUDA_STAGES if target.is_gpu else CPU_STAGES


def asked_schedule(given: str | None) -> str:
    """The choices that contractions are asked to make: those given, else those of the environment."""
    in_environment = environment_choices()
    return in_environment if given is None else given


def passes_to(
    stage: str, target: Target, schedule: str = "", since: str = "torch"
) -> list[tuple[str, tuple[ModulePass, ...]]]:
    """The segments that take a program from the stage `since` to `stage`, each with its passes.

    Raises UsageError for a stage that the target does not have.
    """
    stages = stages_of(target)
    if not target.is_gpu and stage in OTHER_ENDS:
        end = make_pipeline(OTHER_ENDS[stage], target.text)
        return [*passes_to("tile", target, schedule, since), (stage, end)]
    if stage not in stages:
        stages = stages if target.is_gpu else {**stages, **OTHER_ENDS}
        raise UsageError(
            f"target {target.name} has no stage '{stage}'; its stages are {', '.join(stages)}"
        )
    names = list(stages)
    between = names[names.index(since) + 1 : names.index(stage) + 1]
    return [
        (name, make_pipeline(segment, target.text, schedule))
        for name in between
        if (segment := stages[name]) is not None
    ]


def stage_of(module: ModuleOp) -> str:
    """The stage that a program is at: Torch IR, unless a person wrote it further down."""
    for level, stage in (("tile", "tile"), ("loop", "loop"), ("tensor_ir", "tensor")):
        if count_of(module, level):
            return stage
    return "torch"


def compile_module(
    module: ModuleOp, target: Target, schedule: str, compilation: Compilation
) -> Compiled:
    """Compile a module of Torch IR, or find what compiling it gave; `compilation` is told about it."""
    start = time.perf_counter()
    book = open_book(target, schedule)
    key = program_key(module, target, schedule, book.digest) if is_used() else None
    compiled = None if key is None else find(key)
    if compiled is None:
        copy = module.clone()
        compiled = compiler().run_passes(copy, target, schedule, book.lines, compilation)
        # Fallbacks name the user's lines, which are not in the key.
        if key is not None and not compilation.fallbacks:
            keep(key, compiled)
    else:
        compilation.seconds.append(("cache", time.perf_counter() - start))
    compilation.decisions = list(compiled.decisions)
    return compiled


def compiler() -> Any:
    """The module `program_passes`, which knows every IR: a program that is kept needs none."""
    return import_module(".program_passes", __package__)


def texts() -> Any:
    """The module `program_texts`, which knows every printer."""
    return import_module(".program_texts", __package__)
