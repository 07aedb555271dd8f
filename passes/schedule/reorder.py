"""`reorder`: the axes of a launch in another order.

    tile.launch (%i = 64 : thread, %j = 1000 : thread) { ... }
becomes, by `reorder{axes=j,i}`,
    tile.launch (%j = 1000 : thread, %i = 64 : thread) { ... }

Neighbouring threads of a block differ in the last axis, and neighbouring blocks in the last axis of blocks.
The axes that are named take the places that they had together; others stay where they are. The pass
declines axes that run in different places, and launches whose threads exchange values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr

from ...dialects.tile import LaunchOp
from ...errors import UsageError
from ..tile.named_axes import find_axis
from .primitive import Primitive, of_blocks


def reorder_axes(launch: LaunchOp, order: Sequence[int]) -> None:
    """Give position p of a launch the axis that was at `order[p]`."""
    counters, axes = launch.body.block.args, launch.axes.data
    uses = [list(counter.uses) for counter in counters]
    names = [counter.name_hint for counter in counters]
    for counter, source in zip(counters, order, strict=True):
        counter.name_hint = names[source]
        for use in uses[source]:
            use.operation.operands[use.index] = counter
    launch.axes = ArrayAttr([axes[source] for source in order])


@dataclass(frozen=True)
class ReorderPass(Primitive):
    """Order axes as they are listed. Raises UsageError for fewer than two, or one named twice."""

    name = "reorder"

    axes: tuple[str, ...] = ()
    """The axes in their new order."""

    def __post_init__(self):
        if len(self.axes) < 2 or len(set(self.axes)) < len(self.axes):
            raise UsageError(f"axes are two names or more, each once, not {', '.join(self.axes)}")

    @property
    def done(self) -> str:
        """The order."""
        return f"{', '.join(self.axes)} come in this order"

    def settled(self, launch: LaunchOp) -> str | None:
        """Why the order is to stay as it is, or None: blocks may be ordered at any time."""
        return None if of_blocks(launch, self.axes) else super().settled(launch)

    def change(self, launch: LaunchOp) -> str | None:
        """Order the axes; gives why not."""
        found: list[int] = []
        for name in self.axes:
            if isinstance(position := find_axis(launch, name), str):
                return position
            found.append(position)
        if len({launch.axes.data[n].level.data for n in found}) > 1:
            return f"{', '.join(self.axes)} run in different places"
        order = list(range(len(launch.axes)))
        for place, source in zip(sorted(found), found, strict=True):
            order[place] = source
        reorder_axes(launch, order)
        return None
