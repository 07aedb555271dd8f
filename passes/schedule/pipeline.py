"""`pipeline`: a loop starts to copy the slabs of later iterations before it computes its own.

    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 64, %k_block * 16] buffers 3 via cp_async : ... -> memref<64x16xf32, "shared">
      ...
    }
becomes, by `pipeline{axis=k_block}`,
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      ...
    } attributes {pipelined}

With n buffers the copies of n - 1 iterations are on their way while one is computed: those of the first stand
in front of the loop, and the last iterations start none. `materialize-tile` makes the code
(`stage_copies.py`). The pass declines loops whose slabs have one buffer (`fill`), or do not stand together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr

from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.tile import PIPELINED, LaunchOp, StageOp
from .primitive import Primitive


def filling_loops(launch: LaunchOp) -> list[ForOp]:
    """The loops of a launch that fill slabs, in order."""
    around = [op.parent_op() for op in ops_in(launch) if isinstance(op, StageOp)]
    return [loop for loop in dict.fromkeys(around) if isinstance(loop, ForOp)]


def obstacle(loop: ForOp) -> str | None:
    """Why a loop that fills slabs cannot copy ahead, or None."""
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
class PipelinePass(Primitive):
    """Copy ahead."""

    name = "pipeline"
    rewrites_axes: ClassVar[bool] = False

    axis: str = ""
    """The loop, by the name of its counter."""

    @property
    def done(self) -> str:
        """The loop that copies ahead."""
        return f"{self.axis} copies ahead"

    def change(self, launch: LaunchOp) -> str | None:
        """Let the loop copy ahead; gives why not."""
        loops = filling_loops(launch)
        if not loops:
            return "no loop fills a slab"
        names = [loop.induction_var.name_hint or "" for loop in loops]
        named = [loop for name, loop in zip(names, loops, strict=True) if name == self.axis]
        if not named:
            return f"no loop named {self.axis or 'nothing'} fills a slab; {' and '.join(names)} do"
        for loop in named:
            if (reason := obstacle(loop)) is not None:
                return reason
        for loop in named:
            loop.attributes[PIPELINED] = UnitAttr()
        return None
