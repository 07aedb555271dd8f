"""`pad-smem`: rows of a scratchpad become longer than their content, so that a warp's lanes meet in no bank.

    %ws = tile.stage %w[%j * 64, %k * 16] : memref<512x64xf32> -> memref<64x16xf32, "shared">
becomes
    %ws = tile.stage %w[%j * 64, %k * 16] pad 1 : memref<512x64xf32> -> memref<64x16xf32, "shared">

Threads that read neighbouring rows of 16 elements want words of two banks only; of 17, of all. Each slab gets
the least padding that makes its reads take the fewest turns (`analysis/bank_conflicts.py`), those of
neighbours as vectors, where it leaves them aligned; of as many turns, those of fewer loads. Padding that is
no whole number of asynchronous copies makes them smaller, and so more; they count as turns of their own, most
where a loop fills the slab again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType

from ...analysis.bank_conflicts import conflict_degree, loads_of, slab_shape, vectors_of
from ...analysis.copies import copy_elements
from ...analysis.cost import trips
from ...dialects.loop import ForOp, KernelOp, LoadOp
from ...dialects.schedule import Transport
from ...dialects.sizes import static_extent, static_shape
from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import slabs_of, why_not
from .filled_slabs import record_filled
from .recipe import Recipe

PADS = (0, 1, 2, 4, 8, 16)
"""Elements that a row may be longer, up to `PADDING` of the model."""

COPY_TURNS = 4
"""Turns that one asynchronous copy of a warp counts as, with its address and its condition, if it stands in a
loop: its instructions take the place of products there. What is copied once waits for memory in any case."""


def turns(stage: StageOp, launch: LaunchOp, pad: int) -> int:
    """Turns that a warp takes for one run of each load of a slab."""
    return sum(turns for _, turns in _turns_of_loads(stage, launch, pad))


def _turns_of_loads(stage: StageOp, launch: LaunchOp, pad: int) -> list[tuple[LoadOp, int]]:
    """The loads of a slab, neighbours as one, and the turns of each."""
    return [
        (load, conflict_degree(load, launch, slab_shape(load, pad), width=width))
        for load, width in vectors_of(loads_of(stage), launch, pad)
    ]


def turns_of_a_chunk(stage: StageOp, launch: LaunchOp, pad: int) -> int | None:
    """Turns that a warp takes for all loads of a slab, and to fill it; None if it cannot be filled so."""
    run = 0
    for load, once in _turns_of_loads(stage, launch, pad):
        run += once * prod(trips(loop.extent.data) for loop in loops_between(load, stage))
    if stage.transport is not Transport.CP_ASYNC:
        return run
    elements = copy_elements(stage, pad)
    if elements is None:
        return None
    assert isinstance(stage.slab.type, MemRefType)
    copies = prod(static_shape(stage.slab.type)) // elements
    weight = COPY_TURNS if isinstance(stage.parent_op(), ForOp) else 1
    return run + weight * -(-copies // static_extent(launch.num_threads))


def loops_between(load: LoadOp, stage: StageOp) -> list[ForOp]:
    """The loops around a load that do not hold the copy."""
    loops: list[ForOp] = []
    parent = load.parent_op()
    while parent is not None and parent is not stage.parent_op():
        if isinstance(parent, ForOp):
            loops.append(parent)
        parent = parent.parent_op()
    return loops


@dataclass(frozen=True)
class PadSmemPass(Recipe):
    """Pad each slab whose reads then take fewer turns."""

    name = "pad-smem"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, stages = kernel.sym_name.data, slabs_of(launch)
        pads: dict[StageOp, int] = {}
        said: dict[StageOp, str] = {}
        if not stages:
            record(self.name, name, False, "nothing is staged", launch)
        for stage in stages:
            if stage.pad is not None or stage.transport is Transport.TMA:
                engine = "the copy engine fills it, which leaves no room between rows"
                said[stage] = engine if stage.pad is None else "it is padded already"
                continue
            costs = {pad: turns_of_a_chunk(stage, launch, pad) for pad in PADS}
            possible = {pad: cost for pad, cost in costs.items() if cost is not None}
            if not possible:
                said[stage] = why_not(stage) or "no padding lets its threads copy asynchronously"
                continue
            loads = {pad: len(_turns_of_loads(stage, launch, pad)) for pad in possible}
            best = min(possible, key=lambda pad: (possible[pad], loads[pad], pad))
            counts = {pad: turns(stage, launch, pad) for pad in (0, best)}
            said[stage] = "no padding saves a turn"
            if best:
                pads[stage] = best
                said[stage] = f"{best} more, {counts[0]} turns of a warp become {counts[best]}"
        record_filled(self.name, name, launch, "pad", pads, said)
