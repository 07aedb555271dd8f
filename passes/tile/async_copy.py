"""`async-copy`: slabs are filled by copies that run while threads compute.

    %xs = tile.stage %x[%i * 64, %k * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
becomes
    %xs = tile.stage %x[%i * 64, %k * 16] via cp_async : memref<512x3584xf32> -> memref<64x16xf32, "shared">

Such a copy takes 16, 8 or 4 bytes from memory to the scratchpad and passes no register; it is as wide as
rows are proven to be aligned (`analysis/copies.py`). The schedule may say `transport = sync`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass

from ...analysis.copies import copy_elements
from ...analysis.launches import open_launches
from ...dialects.inside import ops_in
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import Transport, TransportAttr
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record


def decline_reason(stage: StageOp) -> str | None:
    """Why a slab is filled by its threads as it is, or None if asynchronous copies can fill it."""
    if stage.via is not None:
        return f"goes by {stage.via.data} already"
    if copy_elements(stage, stage.padding) is None:
        assert isinstance(stage.slab.type, MemRefType)
        size = storage_bytes(stage.slab.type.element_type)
        return f"rows are not proven to be whole numbers of 4 bytes, in elements of {size}"
    return None


@dataclass(frozen=True)
class AsyncCopyPass(ModulePass):
    """Fill each slab asynchronously whose rows are aligned."""

    name = "async-copy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in open_launches(op):
            self._apply(kernel.sym_name.data, launch)

    def _apply(self, name: str, launch: LaunchOp) -> None:
        stages = [o for o in ops_in(launch) if isinstance(o, StageOp)]
        asked = None if launch.schedule is None else launch.schedule.word("transport")
        if not stages or asked == Transport.SYNC:
            reason = "the schedule says that threads copy" if stages else "nothing is staged"
            record(self.name, name, False, reason, launch)
            return
        for stage in stages:
            hint = stage.slab.name_hint or "a slab"
            reason = decline_reason(stage)
            if reason is not None:
                record(self.name, name, False, f"{hint}: {reason}", stage)
                continue
            stage.via = TransportAttr(Transport.CP_ASYNC)
            elements = copy_elements(stage, stage.padding)
            told = f"{hint}: copies of up to {elements} elements"
            record(self.name, name, True, told, stage, steps=[self])
        if launch.schedule is not None:
            used = max((stage.transport for stage in stages), key=list(Transport).index)
            launch.schedule = launch.schedule.with_choices(transport=used.value)
