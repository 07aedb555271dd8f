"""How columns are shared out between the blocks of a CPU where each column is reduced.

A block gets a strip of columns, all rows of it: long enough that each row is some lines of the cache, short
enough that what is folded so far stays in the first-level cache (`interchange-columns`). Reductions of a few
steps are unrolled instead (`unroll-windows`).
"""

from __future__ import annotations

from math import prod

from ...analysis.columns import walks_columns
from ...analysis.cost import executions, trips
from ...analysis.windows import MOST_STEPS
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, LoadOp
from ...dialects.tile import CombineOp, LaunchOp, StageOp

SHORTEST, LONGEST = 64, 1024
"""Columns of a strip."""
LONG = 256
"""Columns of a strip that is long enough, if its block has work enough."""
ENOUGH = 4096
"""Loads of a block that are worth the hand-over."""
BLOCKS = 4
"""Blocks there are to be if there is work enough for them."""


def column_strip(launch: LaunchOp) -> int | None:
    """The columns of a block, if a launch reduces columns along its innermost axis; else None."""
    block = launch.body.block
    sweeps = [op for op in block.ops if isinstance(op, ForOp)]
    others = CombineOp | StageOp | CheckedIndexOp | AssertOp
    if not launch.axes or any(isinstance(op, others) for op in launch.walk()):
        return None
    if not any(sweep.res for sweep in sweeps):
        return None
    extents, column = [axis.extent.data for axis in launch.axes], block.args[-1]
    extent = extents[-1]
    loads = [op for sweep in sweeps for op in sweep.walk() if isinstance(op, LoadOp)]
    if not isinstance(extent, int) or not any(column in load.indices for load in loads):
        return None
    if not all(walks_columns(load, column) for load in loads):
        return None
    axes = [frozenset(a for a in block.args if a in load.indices) for load in loads]
    if len({read for read in axes if read}) > 1:
        return None  # like a product, whose operands a register tile reads less often
    outer = max(prod(map(trips, extents[:-1])), 1)
    work = sum(map(executions, loads)) // max(outer * extent, 1)
    return _strip(extent, outer, work) if work > MOST_STEPS else None


def _strip(extent: int, outer: int, work: int) -> int | None:
    """The length of a strip that divides `extent` columns with `work` loads each, `outer` times."""
    sizes = [n for n in range(SHORTEST, LONGEST + 1) if extent % n == 0]
    grain = next((g for g in (16, 8, 4, 2, 1) if any(n % g == 0 for n in sizes)), 1)
    sizes = [n for n in sizes if n % grain == 0]
    if not sizes:
        return None
    wanted = min(BLOCKS, outer * extent * work // ENOUGH)
    many = [n for n in sizes if outer * (extent // n) >= wanted] or sizes[:1]
    return next((n for n in many if n >= LONG and n * work >= ENOUGH), many[-1])
