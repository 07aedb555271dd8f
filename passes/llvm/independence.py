"""LLVM is told which loops have independent iterations (`mark-independent`).

%a = load float, ptr %x, !llvm.access.group !7
br label %loop, !llvm.loop !8
!7 = distinct !{}
!8 = !{!8, !9}     !9 = !{!"llvm.loop.parallel_accesses", !7}
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import llvm

from ...dialects.inside import ops_in
from .kernel_loops import INDEPENDENT_ATTRIBUTE
from .loop_hints import innermost_loops, tell


def tell_independent(function: Any, kernel: llvm.FuncOp) -> None:
    """Tell of the loops of a function of llvmlite's, made of a kernel, that have marked accesses alone."""
    accessing = [op for op in ops_in(kernel) if isinstance(op, llvm.LoadOp | llvm.StoreOp)]
    if not any(INDEPENDENT_ATTRIBUTE in op.attributes for op in accessing):
        return
    made = [i for block in function.blocks for i in block.instructions if _accesses(i)]
    pairs = zip(accessing, made, strict=True)
    marked = {i for op, i in pairs if INDEPENDENT_ATTRIBUTE in op.attributes}
    group = _group(function.module)
    for blocks, jump in innermost_loops(function):
        accesses = [i for block in blocks for i in block.instructions if _accesses(i)]
        if accesses and marked.issuperset(accesses):
            for each in accesses:
                each.set_metadata("llvm.access.group", group)
            tell(jump, "parallel_accesses", group)


def _accesses(instruction: Any) -> bool:
    return instruction.opname in ("load", "store")


def _group(module: Any) -> Any:
    """A node like no other, which llvmlite has no word for."""
    from llvmlite import ir

    class Group(ir.MDValue):
        def descr(self, buf: list[str]) -> None:
            buf += ("distinct !{}", "\n")

    return Group(module, [], name=str(len(module.metadata)))
