"""`split-inner-for-swizzle`: the copy engine exchanges what would meet in a bank.

    %xs = tile.stage %x[%i * 64, 0] via tma : memref<512x16xf32> -> memref<64x16xf32, "shared">
becomes
    %xs = tile.stage %x[%i * 64, 0] via tma swizzle 64 : memref<512x16xf32> -> memref<64x16xf32, "shared">

Rows that the engine copies lie close together, so padding cannot keep the lanes of a warp apart; exchanging
the 16-byte units of each row can. A swizzle is 32, 64 or 128 bytes wide. Longer rows are split into boxes of
that width, which lie one after the other. Of the widths that the engine can, the one is taken with which a
warp's loads take the fewest turns, the widest of equals; none, if that is as good.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.bank_conflicts import conflict_degree, loads_of, slab_shape
from ...dialects.loop import KernelOp
from ...dialects.schedule import SWIZZLE_BYTES, Transport
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import slabs_of, why_not
from .filled_slabs import record_filled
from .recipe import Recipe


def turns(stage: StageOp, launch: LaunchOp, swizzle: int) -> int:
    """Turns that a warp takes for one run of each load of a slab."""
    loads = loads_of(stage)
    return sum(conflict_degree(load, launch, slab_shape(load, 0), swizzle) for load in loads)


@dataclass(frozen=True)
class SplitInnerForSwizzlePass(Recipe):
    """Swizzle each slab of the copy engine whose reads then take fewer turns."""

    name = "split-inner-for-swizzle"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name = kernel.sym_name.data
        stages = [stage for stage in slabs_of(launch) if stage.transport is Transport.TMA]
        widths: dict[StageOp, int] = {}
        said: dict[StageOp, str] = {}
        if not stages:
            record(self.name, name, False, "the copy engine fills no slab", launch)
        for stage in stages:
            if stage.swizzle is not None:
                said[stage] = "it is swizzled already"
                continue
            refused = {width: why_not(stage, swizzle=width) for width in SWIZZLE_BYTES}
            possible = [width for width, reason in refused.items() if reason is None]
            if not possible:
                said[stage] = refused[SWIZZLE_BYTES[0]] or ""
                continue
            counts = {width: turns(stage, launch, width) for width in (0, *possible)}
            best = min(counts, key=lambda width: (counts[width], width != 0, -width))
            said[stage] = "no swizzle saves a turn"
            if best:
                widths[stage] = best
                turned = f"{counts[0]} turns of a warp become {counts[best]}"
                said[stage] = f"{best} bytes wide, {turned}"
        record_filled(self.name, name, launch, "swizzle", widths, said)
