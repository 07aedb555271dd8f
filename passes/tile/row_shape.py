"""How many threads share a row, and how many rows a block has: the model of `cooperative-reduce`.

A warp waits once for memory, then each of its lanes runs its elements of each sweep, then the lanes
exchange what they reduced: by shuffles in a warp, through the scratchpad between warps. More lanes for a row
make the second part shorter and the third one longer, and there are more warps to run; what does not fit the
machine at once runs in waves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod

from ...analysis.cost import trips
from ...analysis.gpu_choices import RowShape
from ...analysis.row_neighbours import RowLimits
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import WARP
from ...dialects.loop import ForOp, LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import Extent, ceil_div
from ...dialects.tile import MAX_THREADS, LaunchOp
from ...machine.targets import Target
from ..schedule.partial_threads import checks, sweeps_of, widest_vector
from .axis_splits import Split

LATENCY = 600
"""Cycles until a load from global memory arrives."""
CYCLES_PER_ELEMENT = 4
CYCLES_PER_SHUFFLE = 30
CYCLES_PER_BARRIER = 60
CYCLES_PER_WARP_FOLDED = 8

REGISTER_FILE = 1 << 16
RESIDENT_THREADS = 2048
OTHER_REGISTERS = 32
"""What a thread needs besides its elements."""

MOST_ELEMENTS = 32
"""Elements of a row that a thread takes, as long as there are more threads."""

BLOCK = 128
"""Threads of a block of several rows."""

SECTOR_BYTES = 32


@dataclass(frozen=True)
class Rows:
    """What the model looks at: rows of a kernel, and the sweeps over each."""

    count: int
    length: int
    sweeps: int
    reductions: int
    vector: int
    element_bytes: int
    inner: int = 1
    """Elements that a thread reads at each position of a row, in loops of its own."""

    @property
    def units(self) -> int:
        """Vectors of a row."""
        return -(-self.length // self.vector)

    def per_thread(self, lanes: int) -> int:
        """Elements of a row that a thread takes."""
        return -(-self.units // lanes) * self.vector

    def cycles(self, lanes: int, target: Target) -> float:
        """What the model says the kernel takes if `lanes` threads share a row."""
        elements = self.per_thread(lanes)
        registers = OTHER_REGISTERS + min(elements, MOST_ELEMENTS)
        resident = min(RESIDENT_THREADS, REGISTER_FILE // registers)
        waves = max(self.count * lanes / (target.processors * resident), 1.0)
        exchange = CYCLES_PER_SHUFFLE * log2(min(lanes, WARP))
        if lanes > WARP:
            exchange += CYCLES_PER_BARRIER + CYCLES_PER_WARP_FOLDED * lanes // WARP
        work = self.sweeps * elements * self.inner * CYCLES_PER_ELEMENT + self.reductions * exchange
        return waves * (LATENCY + work)


def choose_lanes(rows: Rows, target: Target, least: int = 2) -> int:
    """The power of two of threads that share a row for which the model needs the fewest cycles."""
    sizes = [1 << n for n in range(1, MAX_THREADS.bit_length())]
    useful = [n for n in sizes if n >= least and n // 2 < max(rows.units, least)]
    wide = [n for n in useful if n * rows.vector * rows.element_bytes >= SECTOR_BYTES]
    short = [n for n in wide if rows.per_thread(n) <= MOST_ELEMENTS]
    candidates = short or useful[-1:]
    return min(candidates, key=lambda lanes: rows.cycles(lanes, target))


def rows_per_block(count: int, lanes: int, target: Target) -> int:
    """Rows of a block: whole warps, up to `BLOCK` threads as long as every processor has a block."""
    rows = max(WARP // lanes, 1)
    while rows * 2 * lanes <= BLOCK and count >= rows * 2 * target.processors:
        rows *= 2
    return rows


# --------------------------------------------------------------------------- launches


def covering(extent: Extent) -> int:
    """The least power of two that covers an extent, or its hint."""
    return 1 << (max(trips(extent), 1) - 1).bit_length()


def split_rows(extents: Sequence[Extent], rows: int) -> list[Split]:
    """Share axes out so that a block has `rows` points, a power of two along each, innermost first."""
    splits: list[Split] = []
    for extent in reversed(extents):
        size = min(covering(extent), rows)
        rows //= size
        splits.append(Split(extent, blocks=ceil_div(extent, size), threads=size))
    return splits[::-1]


def most_rows(launch: LaunchOp) -> int:
    """The most rows that a block can have, a power of two."""
    return 1 if checks(launch) else prod(covering(axis.extent.data) for axis in launch.axes)


def limits_of(launch: LaunchOp) -> RowLimits:
    """What a launch lets its shape be."""
    sweeps = sweeps_of(launch)
    length = max(trips(sweep.extent.data) for sweep in sweeps)
    return RowLimits(length, len(sweeps), most_rows(launch), widest_vector(launch))


def choose_shape(launch: LaunchOp, target: Target) -> RowShape:
    """What the model likes best."""
    sweeps, vector = sweeps_of(launch), widest_vector(launch)
    loads = [op for sweep in sweeps for op in ops_in(sweep) if isinstance(op, LoadOp)]
    lengths = [sweep.extent.data for sweep in sweeps]
    room = most_rows(launch)
    known = all(isinstance(length, int) for length in lengths)
    least = max(WARP // room, 2) if known else WARP
    while vector > 1 and max(map(trips, lengths)) < least * vector:
        vector //= 2
    nests = [ops_of(sweep, ForOp) for sweep in sweeps]
    work = sum(prod(trips(loop.extent.data) for loop in nest) for nest in nests)
    rows = Rows(
        count=prod(trips(axis.extent.data) for axis in launch.axes),
        length=max(map(trips, lengths)),
        sweeps=len(sweeps),
        reductions=sum(len(sweep.res) for sweep in sweeps),
        vector=vector,
        element_bytes=max((storage_bytes(load.result.type) for load in loads), default=4),
        inner=max(work // max(len(sweeps) * max(map(trips, lengths)), 1), 1),
    )
    lanes = choose_lanes(rows, target, least)
    return RowShape(lanes, min(rows_per_block(rows.count, lanes, target), room), vector)
