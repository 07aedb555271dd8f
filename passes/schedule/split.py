"""`split`: an axis of a launch becomes two, the inner one of `by` points.

    tile.launch (%i = 64 : thread, %j = 1000 : thread) { ... %x[%i, %j] ... }
becomes, by `split{axis=j by=256 into=j_block,j_thread}`,
    tile.launch (%i = 64 : thread, %j_block = 4 : thread, %j_thread = 256 : thread) {
      %0 = loop.test[%j_block * 256 + %j_thread < 1000]
      scf.if %0 { ... %x[%i, %j_block * 256 + %j_thread] ... }
    }

If `by` does not divide the extent, the body runs under the condition that the point exists. Both axes run
where the old one did (see `bind`); without `into` they are called `j_outer` and `j_inner`. The pass declines
launches whose threads exchange values.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.sizes import Extent, extent_expr
from ...dialects.tile import AxisAttr, LaunchOp
from ...errors import UsageError
from ...index.affine import product
from .axes import check_names, find_axis, guard, insert_axis, remove_axis, replace_counter, taken
from .primitive import Primitive

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


@dataclass(frozen=True)
class SplitPass(Primitive):
    """Make two axes of one. Raises UsageError for a size below 1, and for names that are not two."""

    name = "split"

    axis: str = ""
    """The axis, by the name of its counter."""
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

    def change(self, launch: LaunchOp) -> str | None:
        """Split the axis; gives why not."""
        position = find_axis(launch, self.axis)
        if isinstance(position, str):
            return position
        if (reason := taken(launch, self.names, [self.axis])) is not None:
            return reason
        if (inside := split_axis(launch, position, self.by, self.names)) is not None:
            guard(launch, *inside)
        return None
