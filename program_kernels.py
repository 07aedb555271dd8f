"""A program's kernels are lowered for the CPU one by one; LLVM compiles each while the next is lowered.

func.func @k_exp(...)   func.func @k_sum(...)   func.func @main(...)

    k_exp: passes |--- LLVM ---|
    k_sum:        passes |--- LLVM ---|
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.passes import ModulePass

from .codegen.llvm_sources import llvm_sources
from .dialects.schedule import KERNEL_ATTRIBUTE
from .passes.decisions import Decision
from .program_stages import Compilation
from .runtime import jit


def lower_kernels(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    decisions: list[Decision],
    compilation: Compilation,
    *,
    is_run_here: bool,
) -> dict[str, str]:
    """Lower each kernel function of `module` to LLVM IR; returns the texts by symbol.

    `decisions` is in the order of the passes afterwards. With `is_run_here`, LLVM begins to compile each text
    for this CPU.
    """
    seconds = [0.0] * len(passes)
    translating = 0.0
    begin, order = len(decisions), list[int]()
    sources: dict[str, str] = {}
    for kernel in list(_kernels(module)):
        alone = _take(kernel)
        for number, each in enumerate(passes):
            start = time.perf_counter()
            each.apply(context, alone)
            seconds[number] += time.perf_counter() - start
            order += [number] * (len(decisions) - begin - len(order))
        start = time.perf_counter()
        found = llvm_sources(alone)
        sources |= found
        if is_run_here:
            compilation.begun += map(jit.begin, found.values())
        _put_back(alone, module)
        translating += time.perf_counter() - start
    by_pass = zip(order, decisions[begin:], strict=True)
    decisions[begin:] = [decision for _, decision in sorted(by_pass, key=lambda pair: pair[0])]
    compilation.seconds += zip([each.name for each in passes], seconds, strict=True)
    compilation.seconds.append(("translate", translating))
    return sources


def _kernels(module: ModuleOp) -> Iterator[Operation]:
    return (op for op in module.ops if KERNEL_ATTRIBUTE in op.attributes)


def _take(kernel: Operation) -> ModuleOp:
    """Take a kernel out of its module, into one of its own."""
    kernel.detach()
    return ModuleOp([kernel])


def _put_back(alone: ModuleOp, module: ModuleOp) -> None:
    """Declare what a kernel became behind the other functions of its module, for the plan to read."""
    for kernel in list(_kernels(alone)):
        kernel.detach()
        kernel.detach_region(0)
        kernel.add_region(Region())
        module.body.block.add_op(kernel)
