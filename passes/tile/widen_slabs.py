"""`widen-slabs`: rows of slabs become whole numbers of wide copies.

    %xs = tile.stage %x[%i * 16, %j * 32 - 4] : memref<512x224xf32> -> memref<8x38xf32, "shared">
becomes
    %xs = tile.stage %x[%i * 16, %j * 32 - 4] : memref<512x224xf32> -> memref<8x40xf32, "shared">

What lies around an image, and what windows read past those of a block, is no whole number of 16 bytes. Where
the slab and the rows of its source begin at such, two elements more for each row make copies of four out of
copies of one (`async-copy`). Nothing reads them.

Declined are CPUs, slabs that the copy engine is to fill, or threads through registers, rows that are whole
numbers already, and slabs that begin or sources that end between such.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType

from ...analysis.copies import copy_elements, widest_copy
from ...dialects.loop import KernelOp
from ...dialects.schedule import Transport
from ...dialects.sizes import static_shape
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import slabs_of
from .filled_slabs import record_filled
from .recipe import Recipe


def widened(stage: StageOp) -> int | str:
    """The elements of rows that are whole numbers of the widest copies, or why a slab stays as it is."""
    assert isinstance(stage.slab.type, MemRefType)
    row = static_shape(stage.slab.type)[-1]
    if stage.via is not None or stage.pad is not None:
        return "it is decided how it is filled"
    elements = widest_copy(stage)
    if elements <= (copy_elements(stage, 0) or 1):
        return "no copies are wider where it begins and rows of its source do"
    return -(-row // elements) * elements


@dataclass(frozen=True)
class WidenSlabsPass(Recipe):
    """Make rows of each slab whole numbers of the widest copies that where it begins allows."""

    name = "widen-slabs"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name = kernel.sym_name.data
        if (obstacle := _obstacle(launch)) is not None:
            record(self.name, name, False, obstacle, launch)
            return
        rows: dict[StageOp, int] = {}
        said: dict[StageOp, str] = {}
        for stage in slabs_of(launch):
            if isinstance(row := widened(stage), str):
                said[stage] = row
                continue
            assert isinstance(stage.slab.type, MemRefType)
            rows[stage] = row
            become = f"rows of {static_shape(stage.slab.type)[-1]} become {row}"
            said[stage] = f"{become}, for copies of {widest_copy(stage)}"
        record_filled(self.name, name, launch, "row", rows, said)


def _obstacle(launch: LaunchOp) -> str | None:
    """Why no slab of a launch is filled by asynchronous copies, or None."""
    asked = None if launch.schedule is None else launch.schedule.word("transport")
    if not slabs_of(launch):
        return "nothing is staged"
    if asked == Transport.SYNC:
        return "the schedule says that threads copy through registers"
    return "the copy engine is to fill its slabs" if asked == Transport.TMA else None
