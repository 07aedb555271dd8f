"""`mark-unroll`: short innermost loops are to be unrolled.

    loop.for %k = 0 to 16 reduce(add) -> f32 { ... }
becomes
    loop.for %k = 0 to 16 reduce(add) -> f32 { ... } attributes {unroll}

CUDA gets `#pragma unroll` for it. Marked are loops that hold no other and fill no slab, of at most `trips`
iterations, on a GPU; LLVM decides for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from ...analysis.launches import open_kernels
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.tile import StageOp
from ...errors import counted
from ..decisions import record

UNROLL = "unroll"
"""The attribute of a loop that is to be unrolled."""


def is_short(loop: ForOp, trips: int) -> bool:
    """Whether a loop is innermost, fills no slab, and has at most `trips` iterations."""
    extent = loop.extent.data
    innermost = not any(isinstance(op, ForOp | StageOp) for op in ops_in(loop.body))
    return innermost and isinstance(extent, int) and 1 < extent <= trips


@dataclass(frozen=True)
class MarkUnrollPass(ModulePass):
    """Mark the short innermost loops of each kernel for a GPU."""

    name = "mark-unroll"

    trips: int = 64
    """Iterations of a loop that is unrolled, at most."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            name = kernel.sym_name.data
            short = [o for o in ops_in(kernel) if isinstance(o, ForOp) and is_short(o, self.trips)]
            loops = [loop for loop in short if UNROLL not in loop.attributes]
            if not loops:
                reason = f"no innermost loop has 2 to {self.trips} iterations"
                reason = "its short loops are marked already" if short else reason
                record(self.name, name, False, reason, kernel)
                continue
            for loop in loops:
                loop.attributes[UNROLL] = UnitAttr()
            record(self.name, name, True, counted(len(loops), "loop"), kernel, steps=[self])
