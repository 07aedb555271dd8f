"""What `stage{of=x to=shared}` does where no sweep reads rows: a block copies the tile that it reads.

    tile.launch (%i = 32 : block, %j = 16 : block, %it = 32 : thread, %jt = 32 : thread) {
      %v = loop.load %x[%j * 32 + %jt, %i * 32 + %it]
      loop.store %v, %y[%i * 32 + %it, %j * 32 + %jt]
    }
becomes
    tile.launch (%i = 32 : block, %j = 16 : block, %it = 32 : thread, %jt = 32 : thread) {
      %x_smem = tile.stage %x[%j * 32, %i * 32] : memref<512x1024xf32> -> memref<32x32xf32, "shared">
      %v = loop.load %x_smem[%jt, %it]
      loop.store %v, %y[%i * 32 + %it, %j * 32 + %jt]
    }

All threads copy, those past the end of the result as well, so copies stand in front of the condition that it
ends there; what is outside of an operand is 0, and not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...analysis.slabs import Slab, slab_of
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, KernelOp, LoadOp
from ...dialects.sizes import static_extent
from ...dialects.tile import LaunchOp, Level
from ..tile.stage_inputs import copy_first


def loads_of(launch: LaunchOp) -> list[LoadOp]:
    """The loads of a launch, in order."""
    return [op for op in ops_in(launch) if isinstance(op, LoadOp)]


def array_names(launch: LaunchOp) -> dict[SSAValue, str]:
    """The arrays of a launch's kernel by the names that they are printed with: a, a_1, b."""
    kernel, names, counts = launch.parent_op(), dict[SSAValue, str](), Counter[str]()
    assert isinstance(kernel, KernelOp)
    for array in kernel.body.block.args:
        name = array.name_hint or "array"
        names[array] = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
    return names


def copy_tiles(loads: Sequence[LoadOp], launch: LaunchOp) -> str | None:
    """Let the block copy what loads read of their arrays, and them read the copies; gives why not."""
    extents = [axis.extent.data for axis in launch.axes if axis.level.data is Level.THREAD]
    loops = [op for op in ops_in(launch) if isinstance(op, ForOp)]
    if not all(isinstance(each, int) for each in (*extents, *(loop.extent.data for loop in loops))):
        return "the points of a block are not known"
    local, reads = _local(launch, loops), list[tuple[LoadOp, Slab]]()
    for load in loads:
        slab = slab_of(load, local)
        origin = [] if slab is None else slab.origin
        used = {load.indices[d] for expr in origin for d in expr.used_dims()}
        if slab is None or not used <= set(launch.body.block.args):
            return f"a block reads no box of {array_names(launch)[load.memref]}"
        reads.append((load, slab.inside(load)))
    first = launch.body.block.first_op
    assert first is not None
    copy_first(reads, first)
    return None


def _local(launch: LaunchOp, loops: Sequence[ForOp]) -> dict[SSAValue, int]:
    """The counters that run inside a block, with their extents."""
    local: dict[SSAValue, int] = {
        counter: static_extent(axis.extent.data)
        for counter, axis in zip(launch.body.block.args, launch.axes, strict=True)
        if axis.level.data is Level.THREAD
    }
    return local | {loop.induction_var: static_extent(loop.extent.data) for loop in loops}
