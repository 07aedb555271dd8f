"""LLVM is told which loops have independent iterations (`mark-independent`).

%a = load float, ptr %x, !llvm.access.group !0
br label %loop, !llvm.loop !2
!0 = distinct !{}
!1 = !{!"llvm.loop.parallel_accesses", !0}     !2 = distinct !{!2, !1}
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import Operation

from ..dialects.schedule import INDEPENDENT_ATTRIBUTE
from .llvm_loop_hints import innermost_loops
from .llvm_printer import GROUP, loop_option


def independent_accesses(
    kernel: llvm.FuncOp, options: dict[Operation, list[str]]
) -> set[Operation]:
    """The accesses of loops that have marked ones alone; says so in the `options` of these."""
    found: set[Operation] = set()
    for loop in innermost_loops(kernel):
        inside = (op for block in loop.blocks for op in block.ops)
        accesses = [op for op in inside if isinstance(op, llvm.LoadOp | llvm.StoreOp)]
        if accesses and all(INDEPENDENT_ATTRIBUTE in op.attributes for op in accesses):
            found.update(accesses)
            options.setdefault(loop.jump, []).append(loop_option("parallel_accesses", GROUP))
    return found
