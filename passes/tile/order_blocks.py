"""`order-blocks`: blocks that run at the same time share what they read.

    tile.launch (%i = 4 : block, %j = 74 : block, ...) {
      ...
        %xs = tile.stage %x[%i * 128, %k * 64] ...
        %ws = tile.stage %w[%j * 256, %k * 64] ...
becomes
    tile.launch (%j = 74 : block, %i = 4 : block, ...) { ... }

or, where neither of the two axes is short,

    tile.launch (%i_part = 4 : block, %j = 74 : block, %i_in = 8 : block, ...) {
      %i = loop.index[%i_part * 8 + %i_in]
      ...

Blocks start in the order of their numbers, of which the last axis counts fastest. As many as the machine has
multiprocessors read their slabs at about the same time: what all of them read together comes from memory, the
rest from the cache. Parts of the last but one axis are as long as makes that least. Where all that a kernel
stages stays in the cache, the order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.cost import size_bytes
from ...analysis.index import operand_ranges, simplify
from ...analysis.launches import launches_of
from ...analysis.targets import Target, get_target
from ...dialects.affine import replace_dims
from ...dialects.index import index_properties
from ...dialects.inside import ops_in
from ...dialects.loop import IndexOp
from ...dialects.tile import AxisAttr, LaunchOp, Level, StageOp
from ..decisions import record

GAIN = 1 / 8
"""The part of what blocks read together that another order must save."""


@dataclass(frozen=True)
class Grid:
    """The last two block axes of a launch, and the bytes of the slabs that depend on them."""

    outer: BlockArgument
    inner: BlockArgument
    rows: int
    columns: int
    slabs: tuple[tuple[int, bool, bool], ...]
    """Bytes of each slab, and whether they depend on the first and on the second axis."""

    def together(self, part: int, blocks: int) -> int:
        """Bytes of different slabs that so many blocks read, where parts of the first axis count fastest."""
        across = min(ceil(blocks / part), self.columns)
        down = min(part * ceil(blocks / (part * self.columns)), self.rows)
        return sum(
            size * (down if by_row else 1) * (across if by_column else 1)
            for size, by_row, by_column in self.slabs
        )

    def parts(self) -> Iterator[int]:
        """The lengths that parts of the first axis may have: 1 leaves the order as it is."""
        return (part for part in range(1, self.rows + 1) if self.rows % part == 0)


def find_grid(launch: LaunchOp, target: Target) -> Grid | str:
    """What another order of the blocks could change, or why there is nothing."""
    stages = [op for op in ops_in(launch) if isinstance(op, StageOp)]
    if not stages:
        return "nothing is staged"
    axes = [
        (argument, axis.extent.data)
        for argument, axis in zip(launch.body.block.args, launch.axes, strict=True)
        if axis.level.data is Level.BLOCK
    ]
    if len(axes) < 2:
        return "its blocks have one axis"
    (outer, rows), (inner, columns) = axes[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return "how many blocks there are is not known"
    sources = {stage.source: size_bytes(stage.source.type) for stage in stages}
    if sum(sources.values()) <= target.l2_bytes // 2:
        return "what it stages stays in the cache"
    slabs = tuple(
        (size_bytes(stage.slab.type), outer in stage.origin, inner in stage.origin)
        for stage in stages
    )
    return Grid(outer, inner, rows, columns, slabs)


def reorder(launch: LaunchOp, grid: Grid, part: int) -> None:
    """Let parts of the first axis count fastest."""
    body, axes = launch.body.block, list(launch.axes)
    at = grid.outer.index
    new = body.insert_arg(IndexType(), grid.inner.index + 1)
    axes.insert(new.index, AxisAttr(part, Level.BLOCK))
    name = grid.outer.name_hint or "i"
    if part == grid.rows:
        new.name_hint = name
        grid.outer.replace_all_uses_with(new)
        body.erase_arg(grid.outer)
        del axes[at]
    else:
        axes[at] = AxisAttr(grid.rows // part, Level.BLOCK)
        place = AffineExpr.dimension(0) * part + AffineExpr.dimension(1)
        stages = [op for op in ops_in(launch) if isinstance(op, StageOp)]
        for stage in stages:
            _begin_at(stage, grid.outer, place, [grid.outer, new])
        index = IndexOp(place, [grid.outer, new])
        grid.outer.replace_uses_with_if(
            index.result, lambda use: use.operation is not index and use.operation not in stages
        )
        Builder(InsertPoint.at_start(body)).insert(index)
        index.result.name_hint = name
        grid.outer.name_hint, new.name_hint = f"{name}_part", f"{name}_in"
        if launch.schedule is not None:  # it numbers the axes of threads
            moved = {axis: launch.schedule.get(axis) for axis in ("m", "n")}
            launch.schedule = launch.schedule.with_choices(
                **{axis: number + 1 for axis, number in moved.items() if number is not None}
            )
    launch.axes = ArrayAttr(axes)


def _begin_at(
    stage: StageOp, old: SSAValue, place: AffineExpr, counters: Sequence[SSAValue]
) -> None:
    """Let a slab begin where an expression over some counters stands for an old one."""
    space = [*counters, *(value for value in stage.origin if value not in counters)]
    dims = [
        place if value is old else AffineExpr.dimension(space.index(value))
        for value in stage.origin
    ]
    exprs = [simplify(replace_dims(e, dims), operand_ranges(space)) for e in stage.map.data.results]
    stage.map, origin = index_properties((exprs, space))
    stage.operands = [stage.source, *origin]


@dataclass(frozen=True)
class OrderBlocksPass(ModulePass):
    """Order the blocks of kernels that stage more than a GPU's cache holds."""

    name = "order-blocks"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        for kernel, launch in launches_of(op):
            name = kernel.sym_name.data
            grid = find_grid(launch, target) if target.is_gpu else "a CPU's blocks share no cache"
            if isinstance(grid, str):
                record(self.name, name, False, grid, launch)
                continue
            sizes = {part: grid.together(part, target.processors) for part in grid.parts()}
            best = min(sizes, key=lambda part: (sizes[part], part))
            if sizes[best] > (1 - GAIN) * sizes[1]:
                record(self.name, name, False, "another order saves too little", launch)
                continue
            reorder(launch, grid, best)
            said = f"{target.processors} blocks read slabs of {sizes[best]} bytes, not {sizes[1]}"
            record(self.name, name, True, f"{said}: {best} rows of them count fastest", launch)
