"""`pipeline-k-outer`: the loop over chunks starts to copy a later chunk before it computes one.

    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 64, %k_block * 16] buffers 3 via cp_async : ... -> memref<64x16xf32, "shared">
      ...
    }
becomes
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 { ... } attributes {pipelined}

It takes the step `pipeline{axis=k_block}` for each loop whose slabs have buffers that take turns
(`passes/schedule/pipeline.py` shows what becomes of it).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.loop import ForOp, KernelOp
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.pipeline import PipelinePass, filling_loops, obstacle
from .recipe import Recipe


@dataclass(frozen=True)
class PipelineKOuterPass(Recipe):
    """Pipeline each loop whose slabs have buffers that take turns."""

    name = "pipeline-k-outer"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, loops = kernel.sym_name.data, filling_loops(launch)
        if not loops:
            record(self.name, name, False, "no loop fills a slab", launch)
        for loop in loops:
            self._apply(name, launch, loop)

    def _apply(self, name: str, launch: LaunchOp, loop: ForOp) -> None:
        step = PipelinePass(axis=loop.induction_var.name_hint or "")
        reason = obstacle(loop) or step.change(launch)
        if reason is not None:
            record(self.name, name, False, reason, loop)
            return
        buffers = next(o.num_buffers for o in loop.body.ops if isinstance(o, StageOp))
        told = f"copies run {buffers - 1} chunks ahead"
        record(self.name, name, True, told, loop, steps=[step])
