"""In which order the sweeps of a convolution become one, and how far each of them then goes.

Two orders make boxes of what a block reads for a part of the sweep:

    by channels    for each place of a window, the channels: the image is moved by as much for each place
    by columns     for each row of a window, for each channel, its columns, which lie as the image does:
                   windows that overlap share what they read

Tensor cores take `DEPTH` positions at once, so the innermost sweeps go on over some that there are not: of
many channels, few by channels; of three colors and windows 7 wide, most by channels, 1 of 8 columns and 1 of
4 channels by columns. Each position is a product whether it counts or not, so the order with fewer is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ..dialects.mma import DEPTH
from .windows import padded_channels


@dataclass(frozen=True)
class FlatOrder:
    """Sweeps from the outside in, by where they stood before, and how far each of them goes."""

    sweeps: tuple[int, ...]
    extents: tuple[int, ...]
    columns: bool
    """Whether the columns of windows come innermost."""

    @property
    def positions(self) -> int:
        """How many products there are for each result."""
        return prod(self.extents)

    @property
    def neighbours(self) -> int:
        """How many of the innermost sweeps weights are neighbours along."""
        return min(2, len(self.sweeps)) if self.columns else 1


def choose_order(
    extents: Sequence[int], *, channels: bool, columns: bool, matrices: bool
) -> FlatOrder | None:
    """The order that makes the fewest products, or None if there is none.

    `extents` are those of the sweeps: of channels first, if `channels` says that these are no axis of windows;
    last of columns, which `columns` says whether the image can be read along. `matrices` says whether tensor
    cores are to multiply.
    """
    orders = [_by_columns(extents, channels, matrices)] if columns else []
    padded = padded_channels(extents[0]) if channels else None
    if padded is not None:
        places = tuple(range(1, len(extents)))
        orders.insert(0, FlatOrder((*places, 0), (*extents[1:], padded), False))
    return min(orders, key=lambda order: order.positions, default=None)


def _by_columns(extents: Sequence[int], channels: bool, matrices: bool) -> FlatOrder:
    last, width = len(extents) - 1, extents[-1]
    if matrices:
        width = 1 << (width - 1).bit_length()
    if not channels:
        width = max(width, DEPTH) if matrices else width
        return FlatOrder(tuple(range(len(extents))), (*extents[:-1], width), True)
    unit = DEPTH // gcd(DEPTH, width) if matrices else 1
    count = -(-extents[0] // unit) * unit
    return FlatOrder((*range(1, last), 0, last), (*extents[1:-1], count, width), True)
