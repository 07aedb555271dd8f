"""`chunk-reduce`: the threads of a block share the sweeps over a few columns, each a chunk of every one.

    tile.launch (%j = 1024 : thread) {
      %s = loop.for %k = 0 to 512 reduce(add) -> f32 { ... %x[%k, %j] ... }
      loop.store %s, %out[%j]
    }
becomes
    tile.launch (%j_block = 32 : block, %lane = 16 : thread, %j_thread = 32 : thread) {
      %p = loop.for %k = 0 to 32 reduce(add) -> f32 { ... %x[%k * 16 + %lane, %j_block * 32 + %j_thread] ... }
      %s = tile.combine add %p over(%lane) : f32
      ...
    }

Neighbouring threads have neighbouring columns, so a warp reads 32 neighbours at a time, and the sums of its
chunks are exchanged through the scratchpad. A block gets more chunks until the machine is full of threads, or
chunks become too short. Where blocks of 32 columns would be too few for the machine, they get fewer, down to
what a sector of memory holds: a warp then reads sectors of several rows. What `cooperative-reduce` says of
tails and stores holds here too.

Declined are what is declined there, reductions that do not run over columns, and columns that are many or
short enough for a thread each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...analysis.coalescing import SECTOR
from ...analysis.cost import trips
from ...analysis.gpu_choices import RowShape
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import WARP
from ...dialects.loop import ForOp, LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.tile import MAX_THREADS, LaunchOp
from ...machine.targets import Target
from ..schedule.partial_threads import sweeps_of
from .cooperative_reduce import cooperate, lanes_share_columns, obstacle
from .recipe import GpuRecipe, Taken
from .row_shape import covering, most_rows

BUSY_THREADS = 512
"""Threads of a multiprocessor that hide what one waits for."""

SHORTEST_CHUNK = 4
"""Elements of a column that a thread takes at least."""


WORTH_DIVIDING = 1 << 13
"""Elements of a block below which two blocks are no faster."""

WORTH_WHOLE_LINES = 1 << 19
"""Elements of a block of `WARP` columns above which another kernel for the parts of a sum costs less than
reading lines of memory in pieces."""


def _longest(launch: LaunchOp) -> int:
    """Elements of the longest sweep over a column."""
    nests = [ops_of(sweep, ForOp) for sweep in sweeps_of(launch)]
    return max(prod(trips(loop.extent.data) for loop in nest) for nest in nests)


def block_columns(launch: LaunchOp, target: Target) -> int:
    """How many neighbouring columns a block has: a warp's, or fewer if that makes too few blocks.

    Not fewer than a sector of memory holds, so that no more sectors are moved.
    """
    if not launch.axes:
        return 1
    last = launch.axes.data[-1].extent.data
    columns = min(most_rows(launch), covering(last), WARP)
    sweeps = [op for sweep in sweeps_of(launch) for op in ops_in(sweep)]
    loads = [op for op in sweeps if isinstance(op, LoadOp)]
    sizes = [
        storage_bytes(op.result.type) for op in loads if launch.body.block.args[-1] in op.indices
    ]
    least = SECTOR // max(sizes, default=SECTOR)
    outer = prod(trips(axis.extent.data) for axis in launch.axes.data[:-1])
    length = _longest(launch)
    if length * columns > WORTH_WHOLE_LINES:
        return columns
    while (
        columns > least
        and outer * -(-trips(last) // columns) < target.processors
        and length * columns > WORTH_DIVIDING
    ):
        columns //= 2
    return columns


def choose_chunks(launch: LaunchOp, columns: int, target: Target) -> int | str:
    """How many threads share a column of a launch whose blocks have so many, or why one."""
    length = max(trips(sweep.extent.data) for sweep in sweeps_of(launch))
    points = prod(trips(axis.extent.data) for axis in launch.axes)
    chunks = 1
    while (
        points * chunks < target.processors * BUSY_THREADS
        and length >= chunks * 2 * SHORTEST_CHUNK
        and columns * chunks * 2 <= MAX_THREADS
    ):
        chunks *= 2
    if chunks > 1:
        return chunks
    if length < 2 * SHORTEST_CHUNK:
        return f"columns of {length} elements are too short to share"
    return f"{points} columns keep {target.processors} processors busy, a thread each"


@dataclass(frozen=True)
class ChunkReducePass(GpuRecipe):
    """Let the threads of a block share the sweeps over columns."""

    name = "chunk-reduce"

    def take(self, launch: LaunchOp) -> Taken | str:
        reason = obstacle(launch)
        if reason is None and not lanes_share_columns(launch):
            reason = "no reduction over columns"
        columns = 1 if reason else block_columns(launch, self.machine)
        asked = None if launch.schedule is None else launch.schedule.get("lanes")
        most = MAX_THREADS // max(columns, 1)
        chunks = reason or (min(asked, most) if asked else choose_chunks(launch, columns, self.machine))
        if isinstance(chunks, str):
            return chunks
        steps = cooperate(launch, RowShape(chunks, columns), columns=True)
        return Taken(f"{chunks} threads share each of {columns} columns of a block", steps)
