"""`register-tile`: one thread computes a small block of a matrix product, so that operands are reused.

It takes the step `tensorize{axes=i,j by=2,2}` (`thread_tiles.py` shows what becomes of it), on a GPU where
the schedule of a staged contraction says so.

A reduction over columns is tiled along its columns in the same way, so that whole vectors are loaded, unless
a block gets a strip of columns (`column_strips.py`), with all rows if these are few. Windows of few elements
get no tile: they are unrolled.

Tiled are the axes that one operand depends on and the other does not. The tile
is the largest that divides the extents, up to `MAX_TILE` each way: with 16 sums, vectors along the reduced
axis fit the registers of AVX-512 and AVX2 machines. Along an axis whose neighbours are neighbours in memory
the tile is whole vectors instead. Declined on GPUs, whose operands must be staged first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.windows import window_elements
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp
from ...dialects.sizes import static_extent
from ...dialects.tile import CombineOp, LaunchOp, PrefixOp, StageOp
from ...errors import counted
from ...machine.targets import Target
from ..schedule.tensorize import TensorizePass
from .column_strips import find_strips
from .cooperative_reduce import axes_read
from .named_axes import name_axes
from .recipe import MachineRecipe, Taken
from .scheduled_tile import scheduled_tile

MAX_TILE = 4
"""Elements of a tile along one axis."""

VECTOR_TILES = (16, 8)
"""Elements along an axis whose neighbours are neighbours in memory, best first: whole vectors."""


def tile_axes(launch: LaunchOp) -> list[int]:
    """The axes worth a tile: those that some operands of the reductions depend on and others do not.

    For a reduction over columns, the axis along which the columns are neighbours in memory.
    """
    sweeps = [op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res]
    loads = [op for sweep in sweeps for op in ops_in(sweep) if isinstance(op, LoadOp)]
    reads = {axes for load in loads if (axes := axes_read(load, launch))}
    if len(reads) > 1:
        return sorted(frozenset[int]().union(*reads) - frozenset.intersection(*reads))[-2:]
    columns = [axis for axis in range(len(launch.axes)) if is_vector_axis(launch, axis)]
    return columns[-1:]


def is_vector_axis(launch: LaunchOp, axis: int) -> bool:
    """Whether neighbouring points of an axis read neighbouring elements of an operand."""
    argument = launch.body.block.args[axis]
    for load in ops_in(launch):
        if isinstance(load, LoadOp) and isinstance(load.parent_op(), ForOp):
            fastest = load.map.data.results[-1:]
            if any(load.indices[d] is argument for e in fastest for d in e.used_dims()):
                return True
    return False


def tile_extent(launch: LaunchOp, axis: int) -> int:
    """The largest tile of an axis that divides its extent."""
    extent = launch.axes.data[axis].extent.data
    sizes = [size for size in range(MAX_TILE, 0, -1) if extent % size == 0]
    if is_vector_axis(launch, axis):
        sizes = [size for size in VECTOR_TILES if extent % size == 0] + sizes
    return sizes[0]


def choose_tiles(launch: LaunchOp) -> dict[int, int]:
    """The tile along each axis that gets one; of two vectors the first becomes a small tile.

    Where a tile has all rows, columns stay as they are if a block could get a strip of them.
    """
    axes = tile_axes(launch)
    tiles = {axis: tile_extent(launch, axis) for axis in axes}
    rows = axes[0]
    if len(axes) == 2 and tiles[rows] == launch.axes.data[rows].extent.data:
        if find_strips(launch, together=rows) is not None:
            tiles = {rows: tiles[rows]}
    if len(axes) == 2 and all(size > MAX_TILE for size in tiles.values()):
        tiles[axes[0]] = MAX_TILE
    return {axis: size for axis, size in tiles.items() if size > 1}


def decline_reason(launch: LaunchOp, target: Target) -> str | None:
    """Why a launch is not tiled, or None if it is."""
    if target.is_gpu:
        if launch.schedule is None or launch.schedule.get("thread_m") is None:
            return "the schedule gives threads no tiles"
        if launch.schedule.get("threads") is not None:
            return "the tiles are in registers already"
        return "on a GPU the operands must be staged first"
    if launch.settled is not None:
        return launch.settled
    if any(isinstance(op, CombineOp | PrefixOp | StageOp) for op in ops_in(launch)):
        return "its threads already work together"
    if any(isinstance(op, ForOp) and not op.res for op in launch.body.block.ops):
        return "the body has a sweep that stores"
    if find_strips(launch) is not None:
        return "a block sweeps its columns row by row"
    if (elements := window_elements(launch)) is not None:
        return f"windows of {counted(elements, 'element')} are unrolled"
    axes = tile_axes(launch)
    if not axes:
        return "no reduce of a matrix product or of columns in the body"
    if all(tile_extent(launch, axis) == 1 for axis in axes):
        listed = ", ".join(str(launch.axes.data[axis].extent.data) for axis in axes)
        return f"no tile of 2 to {MAX_TILE} divides the extents {listed}"
    return None


@dataclass(frozen=True)
class RegisterTilePass(MachineRecipe):
    """Give each thread of a matrix product a block of the result."""

    name = "register-tile"

    def take(self, launch: LaunchOp) -> Taken | str:
        step = find_step(launch, self.machine)
        if isinstance(step, str):
            return step
        if (reason := step.change(launch)) is not None:  # tiles that a person asks for
            return reason
        if launch.schedule is not None:
            threads = static_extent(launch.num_threads)
            launch.schedule = launch.schedule.with_choices(threads=threads)
        listed = " by ".join(str(size) for size in step.by if size > 1) or "single"
        return Taken(f"each thread computes {listed} elements", [step])


def find_step(launch: LaunchOp, target: Target) -> TensorizePass | str:
    """The step that gives threads tiles, as the schedule says or the largest; or why there is none."""
    staged = any(isinstance(op, StageOp) for op in ops_in(launch))
    if staged and not isinstance(step := scheduled_tile(launch), str):
        return step
    if (reason := decline_reason(launch, target)) is not None:
        return reason
    names, tiles = name_axes(launch), choose_tiles(launch)
    if not tiles:
        return "a block could get a strip of its columns"
    return TensorizePass(axes=tuple(names[axis] for axis in tiles), by=tuple(tiles.values()))
