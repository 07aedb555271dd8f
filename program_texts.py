"""A program at one of its stages, and the text of that."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from .codegen.c_printer import c_source
from .codegen.cuda_printer import cuda_source
from .codegen.llvm_sources import llvm_sources
from .machine.targets import Target
from .passes.tuned import tuned_by
from .program_stages import make_context, passes_to, stage_of
from .runtime.jit import assembly
from .tune.book import open_book


def module_at(stage: str, module: ModuleOp, target: Target, schedule: str) -> ModuleOp:
    """The module that one of Torch IR becomes at a stage."""
    module = module.clone()
    context = make_context()
    with tuned_by(open_book(target, schedule).lines):
        for _, passes in passes_to(stage, target, schedule, stage_of(module)):
            for each in passes:
                each.apply(context, module)
    return module


def text_of(stage: str, module: ModuleOp, target: Target) -> str:
    """The text of a module at a stage: C, CUDA C++ and assembly have one of their own."""
    match stage:
        case "cuda":
            return cuda_source(module)
        case "c":
            return c_source(module)
        case "asm":
            core = () if target.name == "cpu" or target.cpu is None else target.cpu.for_llvm
            return "".join(assembly(source, *core) for source in llvm_sources(module).values())
        case _:
            return f"{module!s}\n"
