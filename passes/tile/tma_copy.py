"""`tma-copy`: slabs are filled by the GPU's copy engine, which one thread tells what to copy.

    %xs = tile.stage %x[%i * 64, %k * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
becomes
    %xs = tile.stage %x[%i * 64, %k * 16] via tma : memref<512x3584xf32> -> memref<64x16xf32, "shared">

Where the schedule says `transport = tma`, the target has the engine, and the slab is a box that it can copy:
rows and strides of whole 16 bytes, at most 256 elements along an axis. What it cannot copy is left to
`async-copy`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.loop import KernelOp
from ...dialects.schedule import Transport
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import slabs_of, why_not
from .filled_slabs import record_filled
from .recipe import GpuRecipe


def decline_reason(stage: StageOp) -> str | None:
    """Why the copy engine does not fill a slab, or None if it can."""
    if stage.via is not None:
        return f"goes by {stage.via.data} already"
    if stage.pad is not None:
        return "its rows are padded, the engine leaves no room between them"
    return why_not(stage, via=Transport.TMA)


@dataclass(frozen=True)
class TmaCopyPass(GpuRecipe):
    """Let the copy engine fill each slab that is a box, where the schedule asks for it."""

    name = "tma-copy"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, target, stages = kernel.sym_name.data, self.machine, slabs_of(launch)
        asked = None if launch.schedule is None else launch.schedule.word("transport")
        if not stages or asked != Transport.TMA or not target.has_copy_engine:
            reason = f"{target.name} has no copy engine"
            if not stages:
                reason = "nothing is staged"
            elif asked != Transport.TMA:
                reason = "the schedule does not ask for it"
            record(self.name, name, False, reason, launch)
            return
        refused = {stage: decline_reason(stage) for stage in stages}
        said = {stage: why or "one copy for the block" for stage, why in refused.items()}
        filled = {stage: Transport.TMA.value for stage, why in refused.items() if why is None}
        record_filled(self.name, name, launch, "via", filled, said)
