"""How the axes of a launch are cut for the blocks and threads that share them.

64 x 4096, 256 threads    ->    64 x 16 blocks of 256 threads
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import SSAValue

from ...analysis.cost import trips
from ...analysis.vectors import vector_width
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp
from ...dialects.loop_transpose import SQUARE
from ...dialects.sizes import Extent, Size, ceil_div
from ...dialects.tile import LaunchOp, Level


@dataclass(frozen=True)
class Split:
    """How one axis is shared out: `blocks * threads * serial * vector` covers `extent`."""

    extent: Extent
    blocks: Extent = 1
    threads: int = 1
    serial: Extent = 1
    vector: int = 1

    @property
    def ragged(self) -> bool:
        """Whether the parts cover more than the axis has."""
        return self.blocks * self.threads * self.serial * self.vector != self.extent

    @property
    def units(self) -> Extent:
        """Vectors of the axis, or elements if it is not shared out in vectors."""
        return self.extent if self.vector == 1 else ceil_div(self.extent, self.vector)

    @property
    def has_tail(self) -> bool:
        """Whether the axis is not known to be made of whole vectors."""
        if self.vector == 1:
            return False
        return isinstance(self.extent, Size) or self.extent % self.vector != 0


def _hinted(extent: Extent) -> int:
    """An extent; of a dynamic one, a power of two that covers its hint."""
    return 1 << (trips(extent) - 1).bit_length() if isinstance(extent, Size) else extent


def split_for_gpu(extents: Sequence[Extent], threads: int) -> list[Split]:
    """Share axes out between blocks and `threads` threads, innermost axes to threads first.

    Of a dynamic axis, a power of two that covers its hint; its blocks cover the rest.
    """
    splits: list[Split] = []
    left = threads
    for extent in reversed(extents):
        wanted = _hinted(extent)
        if extent == 0:
            splits.append(Split(extent, blocks=0))
        elif left == 1:
            splits.append(Split(extent, blocks=extent))
        else:
            size = min(wanted, left)
            splits.append(Split(extent, blocks=ceil_div(extent, size), threads=size))
            left //= size
    return splits[::-1]


def has_loops(launch: LaunchOp) -> bool:
    """Whether there are loops in the body of a launch."""
    return any(isinstance(op, ForOp) for op in launch.body.block.ops)


def choose_vector(launch: LaunchOp, threads: int) -> int | str:
    """The most neighbours that a thread can take at once if there are to be `threads` threads, or why one."""
    if not launch.axes or has_loops(launch):
        return "the body has loops" if launch.axes else "there is one element"
    body = launch.body.block
    width = vector_width(body.args[-1], body)
    if isinstance(width, str):
        return width
    points = prod(trips(extent) for extent in launch.extents(Level.THREAD))
    while width > 1 and points < threads * width:
        width //= 2
    return width if width > 1 else f"{points} elements are too few for {threads} threads"


def split_in_vectors(extents: Sequence[Extent], threads: int, vector: int) -> list[Split]:
    """Share axes out as `split_for_gpu` does, the innermost one in vectors."""
    if vector == 1:
        return split_for_gpu(extents, threads)
    *outer, inner = extents
    *splits, units = split_for_gpu([*outer, ceil_div(inner, vector)], threads)
    return [*splits, replace(units, extent=inner, vector=vector)]


TRANSPOSED_TILE = (32, 512)
"""Rows and columns of a CPU block that reads a transposed operand: two lines of the cache lie side by side in
what it reads down its columns, 32 in what it writes; `transpose-tiles` turns several parts of it."""


def transposed_axis(launch: LaunchOp) -> int | None:
    """An axis, not the innermost, whose neighbours are neighbours in memory for some load."""
    arguments: list[SSAValue] = list(launch.body.block.args)
    for load in ops_in(launch):
        if not isinstance(load, LoadOp) or not load.map.data.results:
            continue
        fastest = {load.indices[d] for d in load.map.data.results[-1].used_dims()}
        outer = [axis for axis, value in enumerate(arguments[:-1]) if value in fastest]
        if outer and arguments[-1] in load.indices and arguments[-1] not in fastest:
            return outer[-1]
    return None


def split_transposed(extents: Sequence[Extent], axis: int) -> list[Split]:
    """Give each block a rectangle of `axis` and the innermost axis, longer where that one is short."""
    splits = [Split(extent, blocks=extent) for extent in extents]
    rows, columns = TRANSPOSED_TILE
    splits[-1] = _squares(extents[-1], columns)
    splits[axis] = _squares(extents[axis], rows * max(columns // trips(splits[-1].serial), 1))
    return splits


def _squares(extent: Extent, most: int) -> Split:
    """Share an axis out in chunks of about `most` that are, as far as can be, whole squares.

    Chunks that divide the axis need no condition, which would keep squares from being turned whole.
    """
    if isinstance(extent, Size) or extent <= most:
        return _chunks(extent, most)
    sizes = [size for size in range(max(most // 2, SQUARE), 2 * most + 1) if extent % size == 0]
    if not sizes:
        return _chunks(extent, most)
    best = max(sizes, key=lambda size: (size // SQUARE * SQUARE / size, -abs(size - most)))
    return Split(extent, blocks=extent // best, serial=best)


def _chunks(extent: Extent, most: int, grain: int = 1) -> Split:
    """Share an axis out in chunks of about `most`, of one size if the extent is known and one divides it.

    A chunk is a multiple of `grain`, else the last one is shorter; without a grain none is above `most`. More
    blocks, or larger ones, are better than a condition in each, and the code for both cases.
    """
    if isinstance(extent, Size):
        size = -(-most // grain) * grain
        return Split(extent, blocks=ceil_div(extent, size), serial=size)
    parts = -(-extent // most) or 1
    size = -(-extent // parts)
    if size < extent:
        longest = size if grain == 1 else 3 * most // 2
        sizes = range(longest // grain * grain, size // 2, -grain)
        whole = [n for n in sizes if extent % n == 0]
        size = min(whole, key=lambda n: abs(n - size), default=-(-size // grain) * grain)
    return Split(extent, blocks=-(-extent // size), serial=size)


GRAIN = 64
"""A long part of the innermost axis is a multiple of so many elements, and so begins and ends with a line of
the cache."""

LONG = 256
"""How long a part is to be for that."""


def split_for_cpu(
    extents: Sequence[Extent], work: int, serial: int, *, rows: bool = False, side_by_side: int = 1
) -> list[Split]:
    """Give each block whole innermost axes until it has about `serial` units of work.

    `work` is what one point of the launch costs. Of a dynamic axis a block gets as much as its hint says, so
    that longer ones make more blocks; the innermost one is kept whole, for vectors have no use for a
    condition, unless `rows` says that each point is a loop of its own. Part of an axis is a multiple of the
    rows that are to come `side_by_side`.
    """
    splits: list[Split] = []
    left = max(serial // max(work, 1), 1)
    for extent in reversed(extents):
        cut = isinstance(extent, Size) and (rows or bool(splits))
        if trips(extent) <= left and not cut:
            splits.append(Split(extent, serial=extent))
            left //= max(trips(extent), 1)
        elif left > 1:
            size = min(_hinted(extent), left)
            grain = side_by_side if splits or rows or size < LONG else GRAIN
            splits.append(_chunks(extent, size, grain))
            left //= size
        else:
            splits.append(Split(extent, blocks=extent))
    return splits[::-1]
