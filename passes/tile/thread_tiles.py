"""Threads compute small blocks of a launch's points, so that operands are reused in registers.

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

The body is copied for each element of the tile; that the copies' reductions join one sweep, and load once
what they load in common, is left to `share_sweeps` and `dedup_loads`.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_in
from ...dialects.sizes import static_extent
from ...dialects.tile import AxisAttr, LaunchOp
from .rewrite_indices import rewrite_index


def tile_registers(
    launch: LaunchOp,
    tiles: Mapping[int, int],
    strips: Mapping[int, int] | None = None,
    paired: Mapping[int, int] | None = None,
) -> None:
    """Make each point of a launch compute a block of `tiles[axis]` elements along each axis.

    They are neighbours, or `strips[axis]` neighbours that are as far apart as all threads' strips are long;
    or pairs that are `paired[axis]` apart.
    """
    strips, paired, axes = strips or {}, paired or {}, list(launch.axes.data)
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


def _offsets(tiles: Mapping[int, int]) -> list[dict[int, int]]:
    """Every position within the tile, row by row."""
    positions: list[dict[int, int]] = [{}]
    for axis, size in tiles.items():
        positions = [{**position, axis: i} for position in positions for i in range(size)]
    return positions
