"""How many threads share a row, and how many rows a block has: the model of `cooperative-reduce`.

A warp waits once for memory, then each of its lanes runs its elements of each sweep, then the lanes
exchange what they reduced: by shuffles in a warp, through the scratchpad between warps. More lanes for a row
make the second part shorter and the third one longer, and there are more warps to run; what does not fit the
machine at once runs in waves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from ...analysis.targets import Target
from ...dialects.kernel import WARP
from ...dialects.tile import MAX_THREADS

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
        work = self.sweeps * elements * CYCLES_PER_ELEMENT + self.reductions * exchange
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
