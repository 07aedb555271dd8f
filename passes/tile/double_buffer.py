"""`double-buffer`: the chunks of a contraction fill several slabs in turn.

    %s = loop.for %k = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 64, %k * 16] via cp_async : memref<512x3584xf32> -> memref<64x16xf32, "shared">
      ...
becomes
    %s = loop.for %k = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 64, %k * 16] buffers 3 via cp_async : ... -> memref<64x16xf32, "shared">
      ...

`stages` of the schedule says how many; else there are as many, up to 3 of what is copied asynchronously and
2 of what threads copy, as let two blocks have the shared memory of a multiprocessor. What stands together
has the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType

from ...analysis.tilings import ASYNC_BUFFERS, BUFFERED_BLOCKS, SYNC_BUFFERS
from ...dialects.loop import KernelOp
from ...dialects.mbarriers import BARRIER_BYTES
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import Transport
from ...dialects.sizes import static_shape
from ...dialects.tile import MAX_BUFFERS, LaunchOp, StageOp
from ...machine.targets import BLOCK_RESERVE, Target
from ..decisions import record
from ..schedule.fill import why_not
from ..schedule.pipeline import filling_loops
from .filled_slabs import fill_slabs
from .recipe import GpuRecipe


def slab_bytes(stage: StageOp) -> int:
    """The shared memory of one buffer of a slab, padding included."""
    assert isinstance(stage.slab.type, MemRefType)
    *outer, row = static_shape(stage.slab.type)
    return prod(outer) * (row + stage.padding) * storage_bytes(stage.slab.type.element_type)


def choose_buffers(
    stages: list[StageOp], chunks: int | None, asked: int | None, target: Target
) -> int | str:
    """Buffers for slabs that are filled together in each of `chunks` iterations, or why there is but one.

    `chunks` is None if it is not known.
    """
    size = sum(map(slab_bytes, stages))
    if any(stage.transport is Transport.TMA for stage in stages):
        size += BARRIER_BYTES
    if any(stage.buffers is not None for stage in stages):
        return "they take turns already"
    if chunks is not None and chunks < 2:
        return "there is one chunk only"
    if asked is not None:
        if asked > MAX_BUFFERS:
            return f"the schedule says {asked} buffers, more than {MAX_BUFFERS}"
        if asked * size > target.block_shared_bytes:
            said = f"{asked} buffers of {size} bytes exceed the {target.block_shared_bytes}"
            return f"{said} that a block of {target.name} can have"
        return asked if asked > 1 else "the schedule says 1 buffer"
    is_async = any(stage.transport is not Transport.SYNC for stage in stages)
    most = ASYNC_BUFFERS if is_async else SYNC_BUFFERS
    share = target.shared_bytes // BUFFERED_BLOCKS - BLOCK_RESERVE
    count = min(most, share // size, most if chunks is None else chunks)
    if count > 1:
        return count
    return f"2 buffers of {size} bytes exceed the {share} of half a multiprocessor"


@dataclass(frozen=True)
class DoubleBufferPass(GpuRecipe):
    """Give the slabs that each chunk of a loop fills anew as many buffers as there is room for."""

    name = "double-buffer"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name = kernel.sym_name.data
        loops = {
            loop: [o for o in loop.body.ops if isinstance(o, StageOp)]
            for loop in filling_loops(launch)
        }
        filled = {
            loop: stages
            for loop, stages in loops.items()
            if any(loop.induction_var in stage.origin for stage in stages)
        }
        if not filled:
            record(self.name, name, False, "no loop fills a slab anew", launch)
        schedule = launch.schedule
        asked = None if schedule is None else schedule.get("stages")
        for loop, stages in filled.items():
            extent = loop.extent.data
            chunks = extent if isinstance(extent, int) else None
            buffers = choose_buffers(stages, chunks, asked, self.machine)
            if isinstance(buffers, int):
                obstacles = (why_not(stage, buffers=buffers) for stage in stages)
                buffers = next(filter(None, obstacles), buffers)
            if isinstance(buffers, str):
                record(self.name, name, False, buffers, loop)
                continue
            step = fill_slabs(launch, "buffers", dict.fromkeys(stages, buffers))
            size = buffers * sum(map(slab_bytes, stages))
            reason = f"{buffers} buffers of each slab, {size} bytes in all"
            record(self.name, name, True, reason, loop, steps=[step])
        if schedule is not None and filled:
            realised = max(stage.num_buffers for stages in filled.values() for stage in stages)
            launch.schedule = schedule.with_choices(stages=realised)
