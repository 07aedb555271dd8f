"""`async-copy`: slabs are filled by copies that run while threads compute.

    %xs = tile.stage %x[%i * 64, %k * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
becomes
    %xs = tile.stage %x[%i * 64, %k * 16] via cp_async : memref<512x3584xf32> -> memref<64x16xf32, "shared">

Such a copy takes 16, 8 or 4 bytes from memory to the scratchpad and passes no register; it is as wide as
rows are proven to be aligned (`analysis/copies.py`). The schedule may say `transport = sync`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.copies import copy_elements
from ...dialects.loop import KernelOp
from ...dialects.schedule import Transport
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import slabs_of, why_not
from .filled_slabs import record_filled
from .recipe import Recipe


def decline_reason(stage: StageOp) -> str | None:
    """Why a slab is filled by its threads as it is, or None if asynchronous copies can fill it."""
    if stage.via is not None:
        return f"goes by {stage.via.data} already"
    return why_not(stage, via=Transport.CP_ASYNC)


@dataclass(frozen=True)
class AsyncCopyPass(Recipe):
    """Fill each slab asynchronously whose rows are aligned."""

    name = "async-copy"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, stages = kernel.sym_name.data, slabs_of(launch)
        asked = None if launch.schedule is None else launch.schedule.word("transport")
        if not stages or asked == Transport.SYNC:
            reason = "the schedule says that threads copy" if stages else "nothing is staged"
            record(self.name, name, False, reason, launch)
            return
        refused = {stage: decline_reason(stage) for stage in stages}
        said = {
            stage: why or f"copies of up to {copy_elements(stage, stage.padding)} elements"
            for stage, why in refused.items()
        }
        filled = {stage: Transport.CP_ASYNC.value for stage, why in refused.items() if why is None}
        record_filled(self.name, name, launch, "via", filled, said)
        if launch.schedule is not None:
            used = max((stage.transport for stage in stages), key=list(Transport).index)
            launch.schedule = launch.schedule.with_choices(transport=used.value)
