"""`tensor-cores`: the warps of a block multiply matrices, where the schedule says so.

It takes the step `tensorize{axes=i,j by=2,8 instr=mma}` (`warp_tiles.py` shows what becomes of it).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...dialects.kernel import WARP
from ...dialects.mma import DEPTH
from ...dialects.sizes import static_extent
from ...errors import counted
from ..decisions import record
from ..schedule.tensorize import scheduled_tile


@dataclass(frozen=True)
class TensorCoresPass(ModulePass):
    """Multiply matrices in warps where the schedule has `mma`."""

    name = "tensor-cores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in open_launches(op):
            name, schedule = kernel.sym_name.data, launch.schedule
            if schedule is None or not schedule.get("mma"):
                record(self.name, name, False, "the schedule says nothing of matrices", launch)
                continue
            step = scheduled_tile(launch, "mma")
            reason = step if isinstance(step, str) else step.change(launch)
            if isinstance(step, str) or reason is not None:
                record(self.name, name, False, reason or "", launch)
                continue
            threads = static_extent(launch.num_threads)
            launch.schedule = schedule.with_choices(strip_m=1, strip_n=2, threads=threads)
            rows, columns = step.by
            warps = counted(threads // WARP, "warp")
            told = f"{warps} of {rows // 2} by {columns // 2} products of matrices for each {DEPTH} of K"
            record(self.name, name, True, told, launch, steps=[step])
