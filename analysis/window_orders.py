"""In which order the sweeps of a convolution become one, and how far each of them then goes.

Three orders make boxes of what a block reads for a part of the sweep:

    by channels    for each place of a window, the channels: the image is moved by as much for each place
    channels last  the same, of a copy of the image in which channels are neighbours
    by columns     for each row of a window, for each channel, its columns, which lie as the image does:
                   windows that overlap share what they read

Tensor cores take 16 positions at once, so the innermost sweeps go on over some that there are not: of
many channels, few by channels; of three colors and windows 7 wide, most by channels, 1 of 8 columns and 1 of
4 channels by columns. Each position is a product whether it counts or not. What a product takes depends on
how its columns lie in shared memory: those along which it sums may be one load, or four; and a copy there
takes neighbours, or single elements. The order that takes the fewest cycles is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd, prod

from ..dialects.kernel import WARP
from ..dialects.kernel_async import COPY_BYTES
from ..machine.matrix_instructions import HALVES, MatrixInstruction
from ..machine.targets import Target
from .tiling_cost import COPY_ISSUE, LAUNCH_CYCLES, SCHEDULERS
from .tilings import WORD_BYTES
from .windows import padded_channels

WARPS = 4
"""Warps that share what they copy, about."""

WIDEST_COPY = max(COPY_BYTES)
"""Bytes that a thread copies at once of channels that are neighbours."""


class Innermost(Enum):
    """What the sweep of a convolution counts in the end."""

    CHANNELS = "channels"
    CHANNELS_LAST = "channels of a copy in which they are last"
    COLUMNS = "columns"


@dataclass(frozen=True)
class FlatOrder:
    """Sweeps from the outside in, by where they stood before, and how far each of them goes."""

    sweeps: tuple[int, ...]
    extents: tuple[int, ...]
    innermost: Innermost

    @property
    def positions(self) -> int:
        """How many products there are for each result."""
        return prod(self.extents)

    @property
    def neighbours(self) -> int:
        """How many of the innermost sweeps weights are neighbours along."""
        return min(2, len(self.sweeps)) if self.innermost is Innermost.COLUMNS else 1


@dataclass(frozen=True)
class WindowSums:
    """What there is to know of a convolution to choose an order."""

    extents: Sequence[int]
    """Of the sweeps: of channels first, if they are no axis of windows; of columns last."""
    results: int
    image_bytes: int
    instruction: MatrixInstruction | None
    """By which tensor cores are to multiply; None if threads do."""
    channels: bool
    """Whether the outermost sweep is one over channels."""
    columns: bool
    """Whether the innermost sweep goes along the image step by step."""
    movable: bool
    """Whether a copy of the image can have its channels last."""
    last: bool
    """Whether they are last as it is."""

    def orders(self) -> list[FlatOrder]:
        """Those that there are."""
        found: list[FlatOrder] = []
        depth = (self.instruction or HALVES).depth
        padded = padded_channels(self.extents[0], depth) if self.channels else None
        if padded is not None:
            order = (*range(1, len(self.extents)), 0), (*self.extents[1:], padded)
            found.append(FlatOrder(*order, Innermost.CHANNELS))
            if self.movable and self.instruction:
                found.append(FlatOrder(*order, Innermost.CHANNELS_LAST))
        return [*found, self._by_columns()] if self.columns else found

    def _by_columns(self) -> FlatOrder:
        last, width = len(self.extents) - 1, self.extents[-1]
        depth = self.instruction.depth if self.instruction else 1
        if self.instruction:
            width = 1 << (width - 1).bit_length()
        if not self.channels:
            extents = (*self.extents[:-1], max(width, depth))
            return FlatOrder(tuple(range(len(extents))), extents, Innermost.COLUMNS)
        unit = depth // gcd(depth, width)
        count = -(-self.extents[0] // unit) * unit
        extents = (*self.extents[1:-1], count, width)
        return FlatOrder((*range(1, last), 0, last), extents, Innermost.COLUMNS)

    def cycles(self, order: FlatOrder, target: Target) -> float:
        """What an order takes a multiprocessor, in cycles, with a copy of the image if it needs one."""
        if (row := self.instruction) is None:
            return self.results * order.positions / (target.processors * SCHEDULERS * WARP)
        product = (row.cost or 1) * row.work * SCHEDULERS / target.mma_per_cycle
        copied = row.shape[1] * row.depth / (WARP * WARPS)
        if order.innermost is Innermost.CHANNELS_LAST or (
            self.last and order.innermost is Innermost.CHANNELS
        ):
            loads, copies = 1.0, copied * row.element_bytes / WIDEST_COPY
        else:
            loads, copies = row.slots + (row.slots / 2 if row.element_bytes < WORD_BYTES else 0), copied
        if order.innermost is Innermost.COLUMNS:
            loads, copies = loads + 1, copies / order.extents[-1]
        products = self.results * order.positions / row.work
        each = product + loads + COPY_ISSUE * copies
        cycles = products * each / (target.processors * SCHEDULERS)
        if order.innermost is Innermost.CHANNELS_LAST:
            cycles += LAUNCH_CYCLES
            cycles += 2 * self.image_bytes * target.clock / target.dram_bytes_per_second
        return cycles

    def choose(self, target: Target) -> FlatOrder | None:
        """The order that takes the fewest cycles, or None if there is none."""
        return min(self.orders(), key=lambda order: self.cycles(order, target), default=None)
