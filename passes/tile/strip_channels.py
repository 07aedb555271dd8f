"""`strip-channels`: where channels come last, windows slide over an image for a few channels at a time.

    tile.launch (%p = 3136 : thread, %c = 128 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 { ... %x[%p floordiv 56 + %n, %p mod 56 + %m, %c] ... }
      loop.store %s, %y[%p, %c]
    }
becomes
    tile.launch (%c_part = 8 : thread, %p_part = 56 : thread, %p = 56 : thread, %c = 16 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 { ... %x[%p_part + %n, %p + %m, %c_part * 16 + %c] ... }
      loop.store %s, %y[%p_part * 56 + %p, %c_part * 16 + %c]
    }

So what a vector reads and writes lies side by side, and a block has all of an image: `split-loops` tells
apart where its windows reach over the border. A strip is a line of the cache. Declined are GPUs, and windows
of other neighbours (`order-windows`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType

from ...analysis.windows import stride_along
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...dialects.tile import LaunchOp
from ..schedule.primitive import Primitive
from .order_windows import has_windows, index_sums, move_last, sliding_axes
from .recipe import Recipe, Taken
from .split_axes import quotients, split, trial

LINE = 64
"""Bytes of a line of the cache."""

LEAST = 8
"""Channels of a strip, for them to be a vector."""


def _lanes(launch: LaunchOp) -> int | None:
    """The channels of a strip, if the last axis is made of strips."""
    channels = launch.axes.data[-1].extent.data
    types = [op.memref.type for op in ops_in(launch) if isinstance(op, StoreOp)]
    widths = [storage_bytes(type.element_type) for type in types if isinstance(type, MemRefType)]
    if not isinstance(channels, int) or not widths:
        return None
    lanes = LINE // max(widths)
    while lanes >= LEAST and channels % lanes:
        lanes //= 2
    return lanes if lanes >= LEAST else None


def _walk_along_channels(launch: LaunchOp) -> bool:
    """Whether neighbours along the last axis are neighbours in memory, and windows slide along others."""
    column = launch.body.block.args[-1]
    accesses = ops_of(launch, LoadOp, StoreOp)
    along = [op for op in accesses if column in op.indices]
    if any(stride_along(op, column) != 1 for op in along) or None in index_sums(launch):
        return False
    axes = sliding_axes(launch)
    known = all(isinstance(launch.axes.data[axis].extent.data, int) for axis in axes)
    return known and bool(axes) and len(launch.axes) - 1 not in axes


def _arrange(launch: LaunchOp) -> list[Primitive] | str:
    """Split and order the axes of a launch; gives the steps, or why not."""
    if launch.settled is not None:
        return launch.settled
    if not launch.axes or not has_windows(launch):
        return "it has no windows"
    lanes = _lanes(launch)
    if lanes is None:
        return "its last axis has no strips"
    for parts in (None, *dict.fromkeys(quotients(launch))):
        with trial(launch) as copy:
            if parts is not None:
                split(copy, *parts)
            if not _walk_along_channels(copy):
                continue
        steps = [] if parts is None else split(launch, *parts)
        last = len(launch.axes) - 1
        if launch.axes.data[last].extent.data != lanes:
            steps += split(launch, last, lanes)
            last += 1
        return [*steps, *move_last(launch, [*sliding_axes(launch), last])]
    return "channels do not come last in all that its windows read"


@dataclass(frozen=True)
class StripChannelsPass(Recipe):
    """Have windows over images with channels last slide along images, a strip of channels at a time."""

    name = "strip-channels"

    def take(self, launch: LaunchOp) -> Taken | str:
        steps = _arrange(launch)
        told = "its windows slide over an image for a strip of channels at a time"
        return steps if isinstance(steps, str) else Taken(told, steps)
