"""Axes of blocks in two, where the threads of a block already work together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IndexType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.index import operand_ranges, simplify
from ...dialects.index import index_properties
from ...dialects.inside import ops_of
from ...dialects.loop import IndexOp
from ...dialects.tile import AxisAttr, LaunchOp, Level, StageOp
from ...index.affine import replace_dims


def split_blocks(launch: LaunchOp, position: int, part: int, names: tuple[str, str]) -> str | None:
    """Let parts of an axis of blocks, so many of them, count as an axis behind it; gives why not."""
    body, axes = launch.body.block, list(launch.axes)
    counter, count = body.args[position], axes[position].extent.data
    if not isinstance(count, int) or count % part:
        return f"{count} blocks are no whole parts of {part}"
    new = body.insert_arg(IndexType(), position + 1)
    axes[position] = AxisAttr(count // part, Level.BLOCK)
    axes.insert(position + 1, AxisAttr(part, Level.BLOCK))
    _count_in_parts(launch, counter, new, part)
    counter.name_hint, new.name_hint = names
    launch.axes = ArrayAttr(axes)
    if launch.schedule is not None:  # there is one more axis in front of those of threads
        numbers = {axis: launch.schedule.get(axis) for axis in ("m", "n")}
        moved = {axis: number + 1 for axis, number in numbers.items() if number is not None}
        launch.schedule = launch.schedule.with_choices(**moved)
    return None


def _count_in_parts(
    launch: LaunchOp, counter: BlockArgument, new: BlockArgument, part: int
) -> None:
    """Put parts and the place within one where a counter was read."""
    place = AffineExpr.dimension(0) * part + AffineExpr.dimension(1)
    stages = ops_of(launch, StageOp)
    for stage in stages:
        _begin_at(stage, counter, place, [counter, new])
    index = IndexOp(place, [counter, new])
    counter.replace_uses_with_if(
        index.result, lambda use: use.operation is not index and use.operation not in stages
    )
    if not index.result.uses:
        return
    Builder(InsertPoint.at_start(launch.body.block)).insert(index)
    index.result.name_hint = counter.name_hint


def _begin_at(
    stage: StageOp, old: SSAValue, place: AffineExpr, counters: Sequence[SSAValue]
) -> None:
    """Let a slab begin where an expression over some counters stands for an old one."""
    if old not in stage.origin:
        return
    space = [*counters, *(value for value in stage.origin if value not in counters)]
    dims = [
        place if value is old else AffineExpr.dimension(space.index(value))
        for value in stage.origin
    ]
    exprs = [simplify(replace_dims(e, dims), operand_ranges(space)) for e in stage.map.data.results]
    stage.map, origin = index_properties((exprs, space))
    stage.operands = [stage.source, *origin]
