"""`pipeline-k-outer`: the loop over chunks starts to copy a later chunk before it computes one.

    %s = loop.for %k = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 64, %k * 16] buffers 3 via cp_async : ... -> memref<64x16xf32, "shared">
      ...
    }
becomes
    %s = loop.for %k = 0 to 224 reduce(add) -> f32 {
      ...
    } attributes {pipelined}

With n buffers the copies of n - 1 chunks are on their way while one is computed: those of the first stand in
front of the loop, and the last iterations start none. `materialize-tile` makes the code (`stage_copies.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.tile import PIPELINED, LaunchOp, StageOp
from ..decisions import record


def decline_reason(loop: ForOp) -> str | None:
    """Why a loop that fills slabs is not pipelined, or None if it is to be."""
    stages = [op for op in loop.body.ops if isinstance(op, StageOp)]
    if PIPELINED in loop.attributes:
        return "the loop is pipelined already"
    if any(stage.buffers is None for stage in stages):
        return "the loop fills one buffer; there is none for a later chunk"
    if not isinstance(loop.parent_op(), LaunchOp):
        return "the loop stands in another one or under a condition"
    if any(isinstance(op.next_op, StageOp) != (op is not stages[-1]) for op in stages):
        return "what the loop fills does not stand together"
    return None


@dataclass(frozen=True)
class PipelineKOuterPass(ModulePass):
    """Pipeline each loop whose slabs have buffers that take turns."""

    name = "pipeline-k-outer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in open_launches(op):
            self._apply(kernel.sym_name.data, launch)

    def _apply(self, name: str, launch: LaunchOp) -> None:
        fills = [o.parent_op() for o in ops_in(launch) if isinstance(o, StageOp)]
        loops = [loop for loop in dict.fromkeys(fills) if isinstance(loop, ForOp)]
        if not loops:
            record(self.name, name, False, "no loop fills a slab", launch)
        for loop in loops:
            reason = decline_reason(loop)
            if reason is not None:
                record(self.name, name, False, reason, loop)
                continue
            loop.attributes[PIPELINED] = UnitAttr()
            buffers = next(o.num_buffers for o in loop.body.ops if isinstance(o, StageOp))
            told = f"copies run {buffers - 1} chunks ahead"
            record(self.name, name, True, told, loop, steps=[self])
