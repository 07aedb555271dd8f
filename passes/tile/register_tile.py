"""`register-tile`: one thread computes a small block of a matrix product, so that operands are reused.

    tile.launch (%i = 8 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 { ... %a[%i, %k] * %b[%j, %k] ... }
      loop.store %s, %c[%i, %j]
    }
becomes, with a tile of 2 by 2,
    tile.launch (%i = 4 : thread, %j = 32 : thread) {
      %s00, %s01, %s10, %s11 = loop.for %k = 0 to 256 reduce(add, add, add, add) -> f32, f32, f32, f32 {
        ...                                  // 2 elements of %a and 2 of %b for 4 products
      }
      loop.store %s00, %c[%i * 2, %j * 2]
      ...
    }

A reduction over columns is tiled along its columns in the same way, so that whole vectors are loaded, unless
a block gets a strip of columns (`column_strips.py`), with all rows if these are few. Windows of few elements
get no tile: they are unrolled.

The body is copied for each element of the tile, the copies' reductions join one sweep, and what they load
in common is loaded once. Tiled are the axes that one operand depends on and the other does not. The tile
is the largest that divides the extents, up to `MAX_TILE` each way: with 16 sums, vectors along the reduced
axis fit the registers of AVX-512 and AVX2 machines. Along an axis whose neighbours are neighbours in memory
the tile is whole vectors instead. Declined on GPUs, whose operands must be staged first.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...analysis.windows import window_elements
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp
from ...dialects.sizes import static_extent
from ...dialects.tile import AxisAttr, CombineOp, LaunchOp, PrefixOp, StageOp
from ...errors import counted
from ...machine.targets import Target, get_target
from ..decisions import record
from ..loop.dedup_loads import dedup_kernel
from ..loop.share_sweeps import share_in_block
from .column_strips import find_strips
from .cooperative_reduce import axes_read
from .rewrite_indices import rewrite_index

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


def scheduled_tiles(launch: LaunchOp) -> dict[int, int] | None:
    """The tile along each axis that the schedule of a staged launch says; None if it says nothing."""
    schedule = launch.schedule
    if schedule is None or not any(isinstance(op, StageOp) for op in ops_in(launch)):
        return None
    if schedule.get("threads") is not None:
        return None
    sizes = {
        schedule.get("m"): schedule.get("thread_m"),
        schedule.get("n"): schedule.get("thread_n"),
    }
    known = ((axis, size) for axis, size in sizes.items() if axis is not None and size is not None)
    return {axis: size for axis, size in known if size > 1}


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


def scheduled_strips(launch: LaunchOp) -> dict[int, int]:
    """How many neighbours a thread's tile has along an axis, where the schedule says it."""
    schedule = launch.schedule
    if schedule is None:
        return {}
    strips = {schedule.get(key): schedule.get(f"strip_{key}") for key in ("m", "n")}
    return {a: size for a, size in strips.items() if a is not None and size is not None}


def register_tile(launch: LaunchOp, tiles: dict[int, int]) -> None:
    """Make each point of a launch compute a block of `tiles[axis]` elements along each axis.

    They are neighbours, or strips of neighbours that are as far apart as all threads' strips are long; or
    pairs with other threads' in between.
    """
    axes = list(launch.axes.data)
    strips = scheduled_strips(launch)
    pair = None if launch.schedule is None else launch.schedule.get("pair_m")
    paired = {} if pair is None or launch.schedule is None else {launch.schedule.get("m"): pair}
    for axis, size in tiles.items():
        axes[axis] = AxisAttr(axes[axis].extent.data // size, axes[axis].level.data)
    launch.axes = ArrayAttr(axes)
    block = launch.body.block
    original = list(block.ops)
    arguments: list[SSAValue] = list(block.args)
    elements = [
        {
            arguments[axis]: (
                _paired(axis, offsets[axis], axes[axis], paired[axis])
                if axis in paired
                else _element(axis, offsets[axis], axes[axis], strips.get(axis, size))
            )
            for axis, size in tiles.items()
        }
        for offsets in _offsets(tiles)
    ]
    copied: list[dict[SSAValue, SSAValue]] = [{} for _ in elements]
    # All copies of an operation come before the next one, what sweeps need before the first sweep.
    for op in original:
        for old, values in zip(elements, copied, strict=True):
            copy = op.clone(value_mapper=values)
            block.add_op(copy)
            for inner in ops_in(copy):
                _retarget(inner, old, arguments, values)
    for op in reversed(original):
        op.detach()
        op.erase()


def _retarget(
    op: Operation,
    old: dict[SSAValue, AffineExpr],
    counters: list[SSAValue],
    values: dict[SSAValue, SSAValue],
) -> None:
    """Move the index of a copied operation to its element of the tile."""
    before = op.prev_op, op.parent
    results = list(op.results)
    rewrite_index(op, old, counters)
    if op.parent is None and results:  # replaced: later copies must read the new results
        previous, block = before
        assert block is not None
        new = block.first_op if previous is None else previous.next_op
        assert new is not None
        replaced: dict[SSAValue, SSAValue] = dict(zip(results, new.results, strict=True))
        for key, value in values.items():
            values[key] = replaced.get(value, value)


def _element(axis: int, number: int, threads: AxisAttr, strip: int) -> AffineExpr:
    """Where an element of a thread's tile stands along an axis of that many threads."""
    start = number % strip
    if number >= strip:
        start += number // strip * static_extent(threads.extent.data) * strip
    return AffineExpr.dimension(axis) * strip + start


def _paired(axis: int, number: int, threads: AxisAttr, pair: int) -> AffineExpr:
    """Where an element of a thread's tile stands whose elements come in pairs that are so far apart."""
    thread = AffineExpr.dimension(axis)
    start = number % 2 * pair + number // 2 * 2 * static_extent(threads.extent.data)
    return thread // pair * (2 * pair) + thread % pair + start


def _offsets(tiles: dict[int, int]) -> list[dict[int, int]]:
    """Every position within the tile, row by row."""
    positions: list[dict[int, int]] = [{}]
    for axis, size in tiles.items():
        positions = [{**position, axis: i} for position in positions for i in range(size)]
    return positions


@dataclass(frozen=True)
class RegisterTilePass(ModulePass):
    """Give each thread of a matrix product a block of the result."""

    name = "register-tile"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        for kernel, launch in open_launches(op):
            name = kernel.sym_name.data
            tiles = scheduled_tiles(launch)
            reason = decline_reason(launch, target) if tiles is None else None
            if reason is not None:
                record(self.name, name, False, reason, launch)
                continue
            if tiles is None:
                tiles = choose_tiles(launch)
            if tiles:
                register_tile(launch, tiles)
            while share_in_block(launch.body.block):
                dedup_kernel(kernel)
            if launch.schedule is not None:
                threads = static_extent(launch.num_threads)
                launch.schedule = launch.schedule.with_choices(threads=threads)
            listed = " by ".join(str(size) for size in tiles.values()) or "single"
            record(self.name, name, True, f"each thread computes {listed} elements", launch)
