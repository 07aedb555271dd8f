"""`fuse`: neighbouring axes of a launch become one.

    tile.launch (%i = 64 : thread, %j = 1000 : thread) { ... %x[%i, %j] ... }
becomes, by `fuse{axes=i,j into=p}`,
    tile.launch (%p = 64000 : thread) { ... %x[%p floordiv 1000, %p mod 1000] ... }

Without `into` the axis has the name of the last one. The pass declines axes that are no neighbours, in this
order, or run in different places, and launches whose threads exchange values.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.sizes import extent_expr
from ...dialects.tile import AxisAttr, LaunchOp
from ...errors import UsageError
from ...index.affine import quotient, remainder
from ..tile.named_axes import (
    check_names,
    find_axis,
    insert_axis,
    remove_axis,
    replace_counter,
    taken,
)
from .primitive import Primitive


def fuse_axes(launch: LaunchOp, position: int, name: str | None) -> None:
    """Make one axis of the one at a position and the next."""
    first, second = launch.axes.data[position : position + 2]
    outer, inner = launch.body.block.args[position : position + 2]
    extent = AxisAttr(first.extent.data * second.extent.data, first.level.data)
    counter = insert_axis(launch, position, extent, name)
    place, size = AffineExpr.dimension(0), extent_expr(second.extent.data)
    old: dict[SSAValue, AffineExpr] = {outer: quotient(place, size), inner: remainder(place, size)}
    replace_counter(launch, old, [counter])
    for _ in old:
        remove_axis(launch, position + 1)


@dataclass(frozen=True)
class FusePass(Primitive):
    """Make one axis of several. Raises UsageError for fewer than two."""

    name = "fuse"

    axes: tuple[str, ...] = ()
    """The axes, the outermost one first."""
    into: str = ""
    """The name of the new axis."""

    def __post_init__(self):
        if len(self.axes) < 2:
            raise UsageError(f"axes are two names or more, not {len(self.axes)}")
        if self.into:
            check_names([self.into])

    @property
    def done(self) -> str:
        """What became of the axes."""
        return f"{' and '.join(self.axes)} are {self.into or self.axes[-1]}"

    def change(self, launch: LaunchOp) -> str | None:
        """Fuse the axes; gives why not."""
        positions: list[int] = []
        for name in self.axes:
            if isinstance(found := find_axis(launch, name), str):
                return found
            positions.append(found)
        first = positions[0]
        if positions != list(range(first, first + len(positions))):
            return f"{', '.join(self.axes)} are no neighbours in this order"
        if len({launch.axes.data[n].level.data for n in positions}) > 1:
            return f"{', '.join(self.axes)} run in different places"
        if any(launch.axes.data[n].extent.data == 0 for n in positions):
            return "one of them has no points"
        if (reason := taken(launch, [self.into or self.axes[-1]], self.axes)) is not None:
            return reason
        for _ in positions[1:]:
            fuse_axes(launch, first, self.into or self.axes[-1])
        return None
