"""`stage-transposes`: a GPU's block that reads an operand down its columns copies a tile of it first.

    tile.launch (%i = 1024 : thread, %j = 512 : thread) {
      %v = loop.load %x[%j, %i]                    loop.store %v, %y[%i, %j]
    }
becomes
    tile.launch (%i_block = 32 : block, %j_block = 16 : block, %i_thread = 8 : thread,
                 %j_thread = 32 : thread)
      schedule(#tile.schedule<threads = 256, serial = 4>) {
      %xs = tile.stage %x[%j_block * 32, %i_block * 32] : memref<512x1024xf32> -> memref<32x32xf32, "shared">
      loop.for %i_serial = 0 to 4 {
        %v = loop.load %xs[%j_thread, %i_serial * 8 + %i_thread]
        loop.store %v, %y[%i_block * 32 + %i_serial * 8 + %i_thread, %j_block * 32 + %j_thread]
      }
    }

The threads copy rows, and store rows; columns are read in shared memory, where `pad-smem` keeps lanes apart.
The tile, and which operands are staged, follow from the sectors that each access takes with it and without
it (`analysis/transposes.py`). All threads copy, those past the end of the result as well, so copies stand in
front of the condition that it ends there; what is outside of an operand is 0, and not read.

Declined are launches that are fast as they are, small ones, and those with loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from math import prod

from ...analysis.transposes import Tile, find_tile
from ...dialects.inside import ops_in
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import ceil_div, static_extent
from ...dialects.tile import CombineOp, LaunchOp, Level, PrefixOp, StageOp
from ..schedule.primitive import Primitive
from ..schedule.stage import StagePass
from ..schedule.stage_tiles import array_names, copy_tiles, loads_of
from .axis_splits import Split
from .blockify_launch import blockify
from .recipe import GpuRecipe, Taken


def stage(launch: LaunchOp, tile: Tile) -> list[Primitive] | None:
    """Give each block a tile of a launch, and let it copy what it reads down columns first.

    Gives the steps; None if an array that is staged is read in place as well, which no step says.
    """
    staged = [load in tile.staged for load in loads_of(launch)]
    extents = launch.extents(Level.THREAD)
    splits = [
        Split(extent, ceil_div(extent, size), threads, ceil_div(size, threads))
        for extent, size, threads in zip(extents, tile.sizes, tile.threads, strict=True)
    ]
    serial = prod(static_extent(split.serial) for split in splits)
    schedule = ScheduleAttr(threads=prod(tile.threads), serial=serial)
    steps = blockify(launch, splits, schedule)
    loads = loads_of(launch)
    chosen = list(compress(loads, staged))
    arrays = {load.memref for load in chosen}
    same = [load for load in loads if load.memref in arrays]
    names = tuple(name for array, name in array_names(launch).items() if array in arrays)
    reason = copy_tiles(chosen, launch)
    assert reason is None, reason
    return [*steps, StagePass(of=names, to="shared")] if same == chosen else None


def decline_reason(launch: LaunchOp) -> str | None:
    """Why the points of a launch stay where they are, whatever it reads."""
    if launch.is_partitioned:
        return "the launch is partitioned already"
    if launch.schedule is not None and launch.schedule.get("block_m") is not None:
        return "it is a contraction"
    if any(isinstance(op, CombineOp | PrefixOp | StageOp) for op in ops_in(launch)):
        return "its threads already work together"
    return None


@dataclass(frozen=True)
class StageTransposesPass(GpuRecipe):
    """Stage what launches of single elements read down its columns."""

    name = "stage-transposes"

    def take(self, launch: LaunchOp) -> Taken | str:
        found = decline_reason(launch) or find_tile(launch, self.machine)
        if isinstance(found, str):
            return found
        steps = stage(launch, found)
        shape = " by ".join(str(size) for size in found.sizes if size > 1)
        saved = f"{found.before:.0f} sectors for a warp's points become {found.after:.0f}"
        return Taken(f"tiles of {shape}: {saved}", steps)
