"""`pad-smem`: rows of a scratchpad become longer than their content, so that a warp's lanes meet in no bank.

    %ws = tile.stage %w[%j * 64, %k * 16] : memref<512x64xf32> -> memref<64x16xf32, "shared">
becomes
    %ws = tile.stage %w[%j * 64, %k * 16] pad 1 : memref<512x64xf32> -> memref<64x16xf32, "shared">

Threads that read neighbouring rows of 16 elements want words of two banks only; of 17, of all. Each slab gets
the least padding that makes its reads take the fewest turns (`analysis/bank_conflicts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ...analysis.bank_conflicts import conflict_degree, slab_shape
from ...dialects.loop import KernelOp, LoadOp
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record

PADS = (0, 1, 2, 4, 8)
"""Elements that a row may be longer."""


def turns(stage: StageOp, launch: LaunchOp, pad: int) -> int:
    """Turns that a warp takes for one run of each load of a slab."""
    loads = [use.operation for use in stage.slab.uses if isinstance(use.operation, LoadOp)]
    return sum(conflict_degree(load, launch, slab_shape(load, pad)) for load in loads)


@dataclass(frozen=True)
class PadSmemPass(ModulePass):
    """Pad each slab whose reads then take fewer turns."""

    name = "pad-smem"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            for launch in [o for o in kernel.walk() if isinstance(o, LaunchOp)]:
                self._apply(kernel.sym_name.data, launch)

    def _apply(self, name: str, launch: LaunchOp) -> None:
        stages = [o for o in launch.walk() if isinstance(o, StageOp)]
        if not stages:
            record(self.name, name, False, "nothing is staged", launch)
        for stage in stages:
            hint = stage.slab.name_hint or "a slab"
            if stage.pad is not None:
                record(self.name, name, False, f"{hint} is padded already", stage)
                continue
            counts = {pad: turns(stage, launch, pad) for pad in PADS}
            best = min(PADS, key=lambda pad: (counts[pad], pad))
            if best == 0:
                record(self.name, name, False, f"{hint}: no padding saves a turn", stage)
                continue
            stage.pad = IntegerAttr(best, i64)
            reason = f"{hint}: {best} more, {counts[0]} turns of a warp become {counts[best]}"
            record(self.name, name, True, reason, stage)
