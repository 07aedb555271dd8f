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
stages stays in the cache, the order does not matter. What a block is here is a cluster where blocks form any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from xdsl.ir import BlockArgument

from ...analysis.cost import size_bytes
from ...dialects.inside import ops_of
from ...dialects.tile import LaunchOp, Level, StageOp
from ...machine.targets import Target
from ..schedule.primitive import carry_out
from ..schedule.reorder import ReorderPass
from ..schedule.split import in_parts
from .recipe import GpuRecipe, Taken

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
    stages = ops_of(launch, StageOp)
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
        (_bytes_of_cluster(launch, stage), outer in stage.origin, inner in stage.origin)
        for stage in stages
    )
    return Grid(outer, inner, rows, columns, slabs)


def _bytes_of_cluster(launch: LaunchOp, stage: StageOp) -> int:
    """Bytes of a slab, of all blocks of a cluster if each has its own."""
    axes = [launch.axis_of(value) for value in stage.origin]
    own = any(axis is not None and axis.level.data is Level.CLUSTER for axis in axes)
    return size_bytes(stage.slab.type) * (launch.cluster if own else 1)


@dataclass(frozen=True)
class OrderBlocksPass(GpuRecipe):
    """Order the blocks of kernels that stage more than a GPU's cache holds."""

    name = "order-blocks"

    def take(self, launch: LaunchOp) -> Taken | str:
        grid, processors = find_grid(launch, self.machine), self.machine.processors
        if isinstance(grid, str):
            return grid
        sizes = {part: grid.together(part, processors // launch.cluster) for part in grid.parts()}
        best = min(sizes, key=lambda part: (sizes[part], part))
        if sizes[best] > (1 - GAIN) * sizes[1]:
            return "another order saves too little"
        steps, within = in_parts(launch, grid.outer, best)
        steps.append(ReorderPass(axes=(grid.inner.name_hint or "", within)))
        carry_out(steps, launch)
        said = f"{processors} blocks read slabs of {sizes[best]} bytes, not {sizes[1]}"
        return Taken(f"{said}: {best} rows of them count fastest", steps)
