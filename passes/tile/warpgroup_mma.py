"""`warpgroup-mma`: the warpgroups of a block multiply slabs, where the schedule says so.

    %c = loop.for %k = 0 to 64 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
becomes
    %c:32 = tile.wgmma %xs by %ws to 32 : ...

It takes the step `tensorize{axes=i,j by=2,16 instr=wgmma}` (`warpgroup_tiles.py` shows what becomes of it).
Where it cannot be, warps multiply (`tensor-cores`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...analysis.tilings import WARPGROUPS
from ...dialects.sizes import static_extent
from ...dialects.wgmma import PAIR, WARPGROUP
from ...errors import counted
from ...machine.matrix_instructions import WGMMA
from ..decisions import record
from .scheduled_tile import scheduled_tile


@dataclass(frozen=True)
class WarpgroupMmaPass(ModulePass):
    """Multiply slabs by warpgroups where the schedule has `mma` of 2."""

    name = "warpgroup-mma"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in open_launches(op):
            name, schedule = kernel.sym_name.data, launch.schedule
            if schedule is None or schedule.get("mma") != WARPGROUPS:
                record(self.name, name, False, "the schedule says nothing of warpgroups", launch)
                continue
            if schedule.get("threads") is not None:
                record(self.name, name, False, "the tiles are in registers already", launch)
                continue
            step = scheduled_tile(launch, [WGMMA])
            reason = step if isinstance(step, str) else step.change(launch)
            if isinstance(step, str) or reason is not None:
                launch.schedule = schedule.with_choices(mma=1)
                record(self.name, name, False, f"{reason}; warps may multiply", launch)
                continue
            threads, (rows, columns) = static_extent(launch.num_threads), step.by
            launch.schedule = schedule.with_choices(pair_m=PAIR, strip_n=2, threads=threads)
            groups, sums = counted(threads // WARPGROUP, "warpgroup"), counted(rows * columns, "sum")
            record(self.name, name, True, f"{groups}, {sums} of each thread", launch, steps=[step])
