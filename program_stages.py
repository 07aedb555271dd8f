"""What compiling Torch IR needs: the stages of each target, their passes, and the kept results.

Nothing here needs PyTorch: `program.py` compiles what `torch.export` captured, `lazy/` what lazy tensors say.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .analysis.fallbacks import Fallback, fallbacks
from .analysis.plan import build_plan
from .analysis.targets import Target
from .analysis.verify import verify_module
from .dialects import get_all_dialects
from .dialects.c_printer import c_source
from .dialects.cuda_printer import cuda_source, kernel_texts
from .errors import UsageError
from .garbage import fewer_collections
from .passes.decisions import Decision, recording
from .passes.llvm.translate import llvm_sources
from .passes.pipelines import make_pipeline
from .passes.tuned import tuned_by
from .program_cache import Compiled, find, is_used, keep, program_key
from .runtime.jit import assembly
from .tune.book import Book, open_book

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
    fallbacks: tuple[Fallback, ...] = ()
    """What is to run in PyTorch."""


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
    """The choices that contractions are asked to make: those given, else those of DEPLO_SCHEDULE."""
    return os.environ.get("DEPLO_SCHEDULE", "") if given is None else given


def passes_to(
    stage: str, target: Target, schedule: str = ""
) -> list[tuple[str, tuple[ModulePass, ...]]]:
    """The segments that take Torch IR to `stage`, each with its passes. Raises UsageError."""
    stages = stages_of(target)
    if not target.is_gpu and stage in OTHER_ENDS:
        end = make_pipeline(OTHER_ENDS[stage], target.name)
        return [*passes_to("tile", target, schedule), (stage, end)]
    if stage not in stages:
        stages = stages if target.is_gpu else {**stages, **OTHER_ENDS}
        raise UsageError(
            f"target {target.name} has no stage '{stage}'; its stages are {', '.join(stages)}"
        )
    segments: list[tuple[str, tuple[ModulePass, ...]]] = []
    for name, segment in stages.items():
        if segment is not None:
            segments.append((name, make_pipeline(segment, target.name, schedule)))
        if name == stage:
            break
    return segments


def text_of(stage: str, module: ModuleOp) -> str:
    """The text of a module at a stage: C, CUDA C++ and assembly have one of their own."""
    match stage:
        case "cuda":
            return cuda_source(module)
        case "c":
            return c_source(module)
        case "asm":
            return "".join(map(assembly, llvm_sources(module).values()))
        case _:
            return f"{module!s}\n"


def compile_module(
    module: ModuleOp, target: Target, schedule: str, compilation: Compilation
) -> Compiled:
    """Compile a module of Torch IR, or find what compiling it gave; `compilation` is told about it."""
    start = time.perf_counter()
    book = Book() if target.is_gpu else open_book()
    key = program_key(module, target, schedule, book.digest) if is_used() else None
    compiled = None if key is None else find(key)
    if compiled is None:
        with tuned_by(book.answer):
            compiled = _compile(module.clone(), target, schedule, compilation)
        if (
            key is not None and not compilation.fallbacks
        ):  # those name lines, which are not in the key
            keep(key, compiled)
    else:
        compilation.seconds.append(("cache", time.perf_counter() - start))
    compilation.decisions = list(compiled.decisions)
    return compiled


def _compile(module: ModuleOp, target: Target, schedule: str, compilation: Compilation) -> Compiled:
    """Run the passes."""
    context = make_context()
    last = list(stages_of(target))[-1]
    with fewer_collections(), recording() as decisions:
        for _, passes in passes_to(last, target, schedule):
            for each in passes:
                start = time.perf_counter()
                each.apply(context, module)
                compilation.seconds.append((each.name, time.perf_counter() - start))
            verify_module(module)
    compilation.fallbacks = fallbacks(module)
    start = time.perf_counter()
    sources = kernel_texts(module) if target.is_gpu else llvm_sources(module)
    plan = build_plan(module, target.name, sources)
    compilation.seconds.append(("translate", time.perf_counter() - start))
    return Compiled(plan, decisions)


def module_at(stage: str, module: ModuleOp, target: Target, schedule: str) -> ModuleOp:
    """The module that one of Torch IR becomes at a stage."""
    module = module.clone()
    context = make_context()
    with tuned_by(Book().answer if target.is_gpu else open_book().answer):
        for _, passes in passes_to(stage, target, schedule):
            for each in passes:
                each.apply(context, module)
    return module
