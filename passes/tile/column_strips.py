"""How columns are shared out between the blocks of a CPU where each column is reduced.

A block gets a strip of columns, all rows of it: long enough that each row is some lines of the cache, short
enough that what is folded so far stays in the first-level cache (`interchange-columns`). Reductions of a few
steps are unrolled instead (`unroll-windows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...analysis.columns import walks_columns
from ...analysis.cost import executions, trips
from ...analysis.windows import MOST_STEPS, window_elements
from ...dialects.inside import ops_in
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, LoadOp
from ...dialects.sizes import Extent
from ...dialects.tile import CombineOp, LaunchOp, PrefixOp, StageOp

SHORTEST, LONGEST = 16, 1024
"""Columns of a strip, unless there are fewer."""
FEWEST = 8
"""Columns of a strip where there are fewer."""
SHORT = 64
"""Columns of a strip that is shorter only where there are fewer blocks than threads else."""
LONG = 256
"""Columns of a strip that is long enough, if its block has work enough."""
ENOUGH = 4096
"""Loads of a block that are worth the hand-over."""
BLOCKS, FEW_BLOCKS = 4, 2
"""Blocks there are to be if there is work enough for them; and where strips are short then."""


@dataclass(frozen=True)
class Strips:
    """How columns may be shared out: `extent` of them, `outer` times, with `work` loads each."""

    extent: Extent
    outer: int
    work: int

    @property
    def sizes(self) -> list[int]:
        """The lengths that a strip may have: all strips are of one length, and as even as can be.

        If no length divides the columns, or nobody knows how many they are, the last strip is shorter.
        """
        if isinstance(self.extent, int):
            shortest = FEWEST if self.extent < SHORTEST else SHORTEST
            sizes = [n for n in range(shortest, LONGEST + 1) if self.extent % n == 0]
            if sizes or self.extent < FEWEST:
                grain = next((g for g in (16, 8, 4, 2, 1) if any(n % g == 0 for n in sizes)), 1)
                return [n for n in sizes if n % grain == 0]
        powers = [1 << n for n in range(SHORTEST.bit_length() - 1, LONGEST.bit_length())]
        return [n for n in powers if n < 2 * trips(self.extent)] or powers[:1]

    @property
    def size(self) -> int:
        """The length that the model takes."""
        columns = trips(self.extent)
        worth = self.outer * columns * self.work // ENOUGH
        for blocks, shortest in ((BLOCKS, SHORT), (FEW_BLOCKS, 1)):
            wanted = min(blocks, worth)
            many = [n for n in self.sizes if self.outer * -(-columns // n) >= wanted]
            if long := [n for n in many if n >= shortest]:
                return next((n for n in long if n >= LONG and n * self.work >= ENOUGH), long[-1])
        return self.sizes[0]


def find_strips(launch: LaunchOp, together: int | None = None) -> Strips | None:
    """How columns may be shared out, if a launch reduces columns along its innermost axis.

    All points along another axis may be `together`, in one thread.
    """
    block = launch.body.block
    sweeps = [op for op in block.ops if isinstance(op, ForOp)]
    others = CombineOp | PrefixOp | StageOp | CheckedIndexOp | AssertOp
    if not launch.axes or any(isinstance(op, others) for op in ops_in(launch)):
        return None
    if not any(sweep.res for sweep in sweeps):
        return None
    extents, column = [axis.extent.data for axis in launch.axes], block.args[-1]
    extent = extents[-1]
    loads = [op for sweep in sweeps for op in ops_in(sweep) if isinstance(op, LoadOp)]
    if not any(column in load.indices for load in loads):
        return None
    if not all(walks_columns(load, column) for load in loads):
        return None
    apart = [argument for axis, argument in enumerate(block.args) if axis != together]
    axes = {frozenset(a for a in apart if a in load.indices) for load in loads}
    if any(column in read and not other <= read for read in axes for other in axes):
        return None  # like a product, whose operands a register tile reads less often
    if window_elements(launch) is not None:
        return None
    outer = max(prod(map(trips, extents[:-1])), 1)
    work = sum(map(executions, loads)) // max(outer * trips(extent), 1)
    strips = Strips(extent, outer, work)
    return strips if work > MOST_STEPS and strips.sizes else None
