"""`warpgroup-mma`: the warpgroups of a block multiply slabs, where the schedule says so.

    %c = loop.for %k = 0 to 64 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
becomes
    %c:32 = tile.wgmma %xs by %ws to 32 : ...

It takes the step `tensorize{axes=i,j by=2,16 instr=wgmma}` (`warpgroup_tiles.py` shows what becomes of it).
Where it cannot be, warps multiply (`tensor-cores`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.tilings import WARPGROUPS
from ...dialects.sizes import static_extent
from ...dialects.tile import LaunchOp
from ...dialects.wgmma import PAIR, WARPGROUP
from ...errors import counted
from ...machine.matrix_instructions import WGMMA
from .recipe import Recipe, Taken
from .scheduled_tile import scheduled_tile


@dataclass(frozen=True)
class WarpgroupMmaPass(Recipe):
    """Multiply slabs by warpgroups where the schedule has `mma` of 2."""

    name = "warpgroup-mma"

    def take(self, launch: LaunchOp) -> Taken | str:
        schedule = launch.schedule
        if schedule is None or schedule.get("mma") != WARPGROUPS:
            return "the schedule says nothing of warpgroups"
        if schedule.get("threads") is not None:
            return "the tiles are in registers already"
        step = scheduled_tile(launch, [WGMMA])
        reason = step if isinstance(step, str) else step.change(launch)
        if isinstance(step, str) or reason is not None:
            launch.schedule = schedule.with_choices(mma=1)
            return f"{reason}; warps may multiply"
        threads, (rows, columns) = static_extent(launch.num_threads), step.by
        launch.schedule = schedule.with_choices(pair_m=PAIR, strip_n=2, threads=threads)
        groups, sums = counted(threads // WARPGROUP, "warpgroup"), counted(rows * columns, "sum")
        return Taken(f"{groups}, {sums} of each thread", [step])
