"""`tensor-cores`: the warps of a block multiply matrices, where the schedule says so.

    %c = loop.for %k = 0 to 32 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
becomes
    %c:16 = loop.for %k = 0 to 2 reduce(add, ...) -> f32, ... {
      %a0 = loop.load %xs[%i, %k * 16 + %j * 4] ...
      %d0, %d1, %d2, %d3 = tile.mma (%a0, ...) by (%b0, ...) : bf16

It takes the step `tensorize{axes=i,j by=2,8 instr=m16n8k16}` (`warp_tiles.py` shows what becomes of it),
with the first row of `machine/matrix_instructions.py` that the target has and that fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.kernel import WARP
from ...dialects.sizes import static_extent
from ...dialects.tile import LaunchOp
from ...errors import counted
from ...machine.matrix_instructions import MMA
from ...machine.targets import has_instruction
from .recipe import Recipe, Taken
from .scheduled_tile import scheduled_tile


@dataclass(frozen=True)
class TensorCoresPass(Recipe):
    """Multiply matrices in warps where the schedule has `mma`."""

    name = "tensor-cores"

    target: str = "sm_90a"

    def take(self, launch: LaunchOp) -> Taken | str:
        instructions = [row for row in MMA if has_instruction(self.target, row)]
        schedule = launch.schedule
        if schedule is None or not schedule.get("mma"):
            return "the schedule says nothing of matrices"
        step = scheduled_tile(launch, instructions)
        if isinstance(step, str):
            return step
        if (reason := step.change(launch)) is not None:  # tiles that a person asks for
            return reason
        row = next(row for row in instructions if row.name == step.instr)
        threads, (rows, columns) = static_extent(launch.num_threads), step.by
        choices = {"strip_m": 1, "strip_n": row.thread_columns, "threads": threads}
        launch.schedule = schedule.with_choices(**choices)
        tile = f"{rows // row.thread_rows} by {columns // row.thread_columns}"
        warps = counted(threads // WARP, "warp")
        return Taken(f"{warps} of {tile} products of matrices for each {row.depth} of K", [step])
