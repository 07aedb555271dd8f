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

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...dialects.tile import LaunchOp
from ...machine.targets import get_gpu
from ..decisions import record
from ..schedule.primitive import carry_out
from ..schedule.stage import StagePass
from ..schedule.stage_tiles import find_staging


@dataclass(frozen=True)
class StageInputsPass(ModulePass):
    """Stage the operands of each contraction whose schedule says how much of K a block shares."""

    name = "stage-inputs"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = get_gpu(self.target).block_shared_bytes
        for kernel, launch in open_launches(op):
            self._apply(kernel.sym_name.data, launch, limit)

    def _apply(self, name: str, launch: LaunchOp, limit: int) -> None:
        if launch.schedule is None or launch.schedule.get("block_k") is None:
            record(self.name, name, False, "the schedule stages nothing", launch)
            return
        found = find_staging(launch)
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return
        if (size := found.bytes) > limit:
            reason = f"slabs of {size} bytes exceed the {limit} of a block"
            record(self.name, name, False, reason, launch)
            return
        step = StagePass(to="shared")
        carry_out([step], launch)
        record(self.name, name, True, f"slabs of {size} bytes", launch, steps=[step])
