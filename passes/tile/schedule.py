"""`schedule`: decides how each kernel is to run, and writes it on its launch.

    tile.launch (%i = 512 : thread, %j = 3584 : thread) { ... a matrix product ... }
becomes
    tile.launch (%i = 512 : thread, %j = 3584 : thread)
        schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 128, block_k = 16,
                                thread_m = 4, thread_n = 8>) { ... }

The passes after it carry the schedule out. What it leaves open they decide by themselves: a launch that is no
contraction gets no schedule here, and neither does one on a CPU. Any choice may be given as an option:
`schedule{target=sm_80 block_m=16}`.

The model: a multiprocessor does 128 multiply-adds in a cycle, and one load of a warp from shared memory. A
thread that computes f by g elements loads f + g for f * g multiply-adds. The candidate whose waves of blocks
take the fewest cycles is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.contraction import Contraction, find_contraction, operands_are_boxes
from ...analysis.cost import hints_of, trips
from ...analysis.targets import Target, get_target
from ...dialects.loop import KernelOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import LaunchOp
from ..decisions import record

TILES = ((8, 8), (8, 4), (4, 8), (4, 4), (4, 2), (2, 4), (2, 2), (1, 4), (4, 1), (1, 2), (1, 1))
"""Rows and columns that one thread may compute; more than 64 sums spill."""

SHAPES = ((16, 16), (8, 32), (32, 8), (8, 16), (4, 32), (8, 8))
"""Rows and columns of threads in a block."""

BLOCK_K = 16
"""Positions of K in the scratchpad: with 128 rows and 128 columns, 16 KB of f32."""

FMA_PER_CYCLE = 128
LANES_PER_CYCLE = 32
MIN_PRODUCT = 1 << 15
"""Multiply-adds below which nothing is worth staging."""


@dataclass(frozen=True)
class Candidate:
    """A block's threads and what each computes."""

    threads: tuple[int, int]
    tile: tuple[int, int]

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of the result that a block computes."""
        return self.threads[0] * self.tile[0], self.threads[1] * self.tile[1]

    def cycles(self, batch: int, m: int, n: int, k: int, target: Target) -> float:
        """What the model says the contraction takes, in cycles of a multiprocessor."""
        rows, columns = self.block
        blocks = batch * -(-m // rows) * -(-n // columns)
        count, (f, g) = prod(self.threads), self.tile
        per_k = max(count * f * g / FMA_PER_CYCLE, count * (f + g) / LANES_PER_CYCLE)
        copies = (rows + columns) / LANES_PER_CYCLE
        waves = -(-blocks // target.processors)
        return waves * k * (per_k + copies)


def choose(contraction: Contraction, launch: LaunchOp, target: Target) -> Candidate:
    """The candidate that the model likes best; of equals the one with the larger tile."""
    extents = [trips(axis.extent.data) for axis in launch.axes]
    m, n = extents[contraction.m], extents[contraction.n]
    batch = prod(e for i, e in enumerate(extents) if i not in (contraction.m, contraction.n))
    k = trips(contraction.sweep.extent.data)
    candidates = [Candidate(threads, tile) for tile in TILES for threads in SHAPES]
    return min(candidates, key=lambda c: c.cycles(batch, m, n, k, target))


def decline_reason(launch: LaunchOp, target: Target) -> str | Contraction:
    """Why nothing is decided for a launch, or the contraction that it is."""
    if not target.is_gpu:
        return "a CPU's schedule is decided by the passes that carry it out"
    if launch.schedule is not None or launch.is_partitioned:
        return "it has a schedule already"
    found = find_contraction(launch)
    if isinstance(found, Contraction):
        work = prod(trips(axis.extent.data) for axis in launch.axes)
        work *= trips(found.sweep.extent.data)
        if work < MIN_PRODUCT:
            return f"{work} multiply-adds are too few to share operands for"
    return found


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Write a schedule on each launch of a contraction; options override what the model chooses."""

    name = "schedule"

    target: str = "sm_90a"
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        with hints_of(op):
            for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
                for launch in [o for o in kernel.walk() if isinstance(o, LaunchOp)]:
                    self._apply(kernel.sym_name.data, launch, target)

    def _apply(self, name: str, launch: LaunchOp, target: Target) -> None:
        found = decline_reason(launch, target)
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return
        best = choose(found, launch, target)
        thread_m, thread_n = self.thread_m or best.tile[0], self.thread_n or best.tile[1]
        block_m = self.block_m or best.threads[0] * thread_m
        block_n = self.block_n or best.threads[1] * thread_n
        block_k = self.block_k or BLOCK_K
        if not operands_are_boxes(found, launch, (block_m, block_n, block_k)):
            reason = "an operand is not read position by position"
            record(self.name, name, False, reason, launch)
            return
        launch.schedule = ScheduleAttr(
            m=found.m,
            n=found.n,
            block_m=block_m,
            block_n=block_n,
            block_k=block_k,
            thread_m=thread_m,
            thread_n=thread_n,
        )
        reason = f"blocks of {block_m} by {block_n}, threads of {thread_m} by {thread_n}"
        record(self.name, name, True, reason, launch)
