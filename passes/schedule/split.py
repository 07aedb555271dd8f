"""`split`: an axis of a launch becomes two, the inner one of `by` points.

    tile.launch (%i = 64 : thread, %j = 1000 : thread) { ... %x[%i, %j] ... }
becomes, by `split{axis=j by=256 into=j_block,j_thread}`,
    tile.launch (%i = 64 : thread, %j_block = 4 : thread, %j_thread = 256 : thread) {
      %0 = loop.test[%j_block * 256 + %j_thread < 1000]
      scf.if %0 { ... %x[%i, %j_block * 256 + %j_thread] ... }
    }

If `by` does not divide the extent, the body runs under the condition that the point exists. Both axes run
where the old one did (see `bind`); without `into` they are called `j_outer` and `j_inner`. Of launches whose
threads work together, axes of blocks are split in whole parts, and no others.

A sweep that reduces is split by the name of its counter: `split{axis=k by=16 into=k_block,k}` makes of

    %s = loop.for %k = 0 to 3584 reduce(add) -> f32 { ... %x[%i, %k] ... loop.yield %p : f32 }
chunks, each as long as a block can share,
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
        ... %x[%i, %k_block * 16 + %k] ... loop.yield %p : f32
      } attributes {chunk}
      loop.yield %c : f32
    }

Past the end of K a contribution is the identity of its combiner. The lowering of nested reductions goes on
with the outer sum in the inner loop, so the order in which it adds is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, YieldOp
from ...dialects.sizes import Extent, extent_expr
from ...dialects.tile import AxisAttr, LaunchOp
from ...errors import UsageError
from ...index.affine import product
from ..lower_loops import CHUNK
from ..tile.block_axes import split_blocks
from ..tile.masks import mask_contributions
from ..tile.named_axes import (
    check_names,
    find_axis,
    guard,
    insert_axis,
    name_axes,
    remove_axis,
    replace_counter,
    taken,
)
from ..tile.rewrite_indices import rewrite_index
from .primitive import Primitive, of_blocks, works_together

MOST = 2**31 - 1
"""Points of an axis: what an `int` of CUDA C++ holds."""

Inside = tuple[AffineExpr, list[SSAValue]]
"""An expression over counters that is at least zero where there is a point."""


def split_axis(
    launch: LaunchOp, position: int, by: Extent, names: tuple[str, str]
) -> Inside | None:
    """Split an axis; gives where its points are if there are more of the new ones than it has."""
    axis, old = launch.axes.data[position], launch.body.block.args[position]
    extent, level = axis.extent.data, axis.level.data
    parts = (extent + (by - 1)) // by
    insert_axis(launch, position, AxisAttr(parts, level), names[0])
    insert_axis(launch, position + 1, AxisAttr(by, level), names[1])
    counters: list[SSAValue] = [arg for arg in launch.body.block.args if arg is not old]
    outer, inner = AffineExpr.dimension(position), AffineExpr.dimension(position + 1)
    expr = product(outer, extent_expr(by)) + inner
    replace_counter(launch, {old: expr}, counters)
    remove_axis(launch, position + 2)
    if parts * by == extent:
        return None
    return expr * -1 + extent_expr(extent - 1), counters


def chunk(sweep: ForOp, size: int, names: tuple[str, str]) -> ForOp:
    """Split a reducing loop into chunks of `size`; gives the loop over one of them."""
    extent = sweep.extent.data
    chunks = (extent + (size - 1)) // size
    types = list(sweep.res.types)
    combiners = [c.data for c in sweep.combiners]
    inner = ForOp(size, sweep.detach_region(sweep.body), combiners=combiners, result_types=types)
    block = Block(arg_types=[IndexType()])
    outer = ForOp(chunks, Region(block), combiners=combiners, result_types=types)
    for loop in (inner, outer):
        loop.location = sweep.location
    inner.attributes[CHUNK] = UnitAttr()
    position = inner.induction_var
    number = outer.induction_var
    number.name_hint, position.name_hint = names
    if block.last_op is not None:
        block.last_op.detach()
    block.add_ops([inner, YieldOp(*inner.res)])
    assert sweep.parent is not None
    sweep.parent.insert_op_before(outer, sweep)
    whole = AffineExpr.dimension(0) * size + AffineExpr.dimension(1)
    for op in ops_in(inner.body):
        rewrite_index(op, {position: whole}, [number, position])
    if chunks * size != extent:
        mask_contributions(inner, [whole * -1 + extent_expr(extent - 1)], [number, position])
    for old, part, new in zip(sweep.res, inner.res, outer.res, strict=True):
        part.name_hint = f"{old.name_hint or 'value'}_chunk"
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    sweep.detach()
    sweep.erase()
    return inner


def sweeps_of(launch: LaunchOp, name: str) -> list[ForOp]:
    """The loops of a launch that reduce and whose counter has a name."""
    loops = [op for op in ops_in(launch) if isinstance(op, ForOp) and op.res]
    return [loop for loop in loops if loop.induction_var.name_hint == name]


@dataclass(frozen=True)
class SplitPass(Primitive):
    """Make two axes of one. Raises UsageError for a size below 1, and for names that are not two."""

    name = "split"
    keeps_copies = True

    axis: str = ""
    """The axis or the sweep, by the name of its counter."""
    by: int = 1
    """Points of the inner axis."""
    into: tuple[str, ...] = ()
    """The names of the outer and of the inner axis."""

    def __post_init__(self):
        if isinstance(self.by, bool) or not 1 <= self.by <= MOST:
            raise UsageError(f"by is a number of points, 1 to {MOST}, not {self.by}")
        if len(self.into) not in (0, 2):
            raise UsageError(f"into is two names, not {len(self.into)}")
        check_names(self.into)

    @property
    def done(self) -> str:
        """What became of the axis."""
        return f"{self.axis} is {' and '.join(self.names)}, of {self.by} points"

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two axes."""
        outer, inner = self.into or (f"{self.axis}_outer", f"{self.axis}_inner")
        return outer, inner

    def settled(self, launch: LaunchOp) -> str | None:
        """Why the axis is to stay as it is, or None."""
        if of_blocks(launch, [self.axis]) or sweeps_of(launch, self.axis):
            return None
        return super().settled(launch)

    def change(self, launch: LaunchOp) -> str | None:
        """Split the axis; gives why not."""
        position = find_axis(launch, self.axis)
        if isinstance(position, str):
            sweeps = sweeps_of(launch, self.axis)
            return self._split_sweeps(sweeps) if sweeps else position
        if (reason := taken(launch, self.names, [self.axis])) is not None:
            return reason
        if works_together(launch):
            return split_blocks(launch, position, self.by, self.names)
        if (inside := split_axis(launch, position, self.by, self.names)) is not None:
            guard(launch, *inside)
        return None

    def _split_sweeps(self, sweeps: list[ForOp]) -> str | None:
        """Split sweeps of one name; gives why not."""
        if any(isinstance(op, ForOp) for sweep in sweeps for op in ops_in(sweep.body)):
            return f"{self.axis} has loops of its own"
        if any(CHUNK in sweep.attributes for sweep in sweeps):
            return f"{self.axis} counts within chunks already"
        if any(sweep.limit is not None for sweep in sweeps):
            return f"{self.axis} ends at a limit of its own"
        for sweep in sweeps:
            chunk(sweep, self.by, self.names)
        return None


def in_parts(launch: LaunchOp, counter: BlockArgument, part: int) -> tuple[list[Primitive], str]:
    """The step that splits an axis in parts, none if there is but one, and the axis within a part."""
    name = name_axes(launch)[counter.index]
    if launch.axes.data[counter.index].extent.data == part:
        return [], name
    into = f"{name}_part", f"{name}_in"
    return [SplitPass(axis=name, by=part, into=into)], into[1]
