"""`stage-inputs`: what the threads of a block read in common of a chunk of K, they copy first.

    %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
      %a = loop.load %x[%i_block * 64 + %i, %k_block * 16 + %k] : memref<512x3584xf32>
becomes
    %xs = tile.stage %x[%i_block * 64, %k_block * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
    %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
      %a = loop.load %xs[%i, %k] : memref<64x16xf32, "shared">

It takes the step `stage{to=shared}` for each contraction whose schedule has a `block_k`, where the slabs
fit (`passes/schedule/stage_tiles.py` shows what becomes of it).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.tile import LaunchOp
from ..schedule.primitive import carry_out
from ..schedule.stage import StagePass
from ..schedule.stage_tiles import find_staging
from .recipe import GpuRecipe, Taken


@dataclass(frozen=True)
class StageInputsPass(GpuRecipe):
    """Stage the operands of each contraction whose schedule says how much of K a block shares."""

    name = "stage-inputs"

    def take(self, launch: LaunchOp) -> Taken | str:
        if launch.schedule is None or launch.schedule.get("block_k") is None:
            return "the schedule stages nothing"
        found = find_staging(launch)
        if isinstance(found, str):
            return found
        if (size := found.bytes) > (limit := self.machine.block_shared_bytes):
            return f"slabs of {size} bytes exceed the {limit} of a block"
        step = StagePass(to="shared")
        carry_out([step], launch)
        return Taken(f"slabs of {size} bytes", [step])
