"""What a tiling of a contraction costs, by a model that counts cycles of the busiest multiprocessor.

In one position of K a thread that computes f by g elements of r results loads f + g values for f * g * r
multiply-adds; a scheduler issues one instruction in a cycle, and shared memory serves one load of a warp.
What is copied for a chunk of K passes the L2 cache. A chunk that is asked for arrives some time later:
with several buffers the block computes those before it meanwhile, and the blocks that are resident
together hide from each other what is left, so how many there are room for, in registers and shared
memory, counts. All that takes as long as memory needs for what the kernel moves, if that is longer.
Splitting K makes more blocks of fewer chunks, and costs a second kernel and the traffic of the partial
sums. What multiplies matrices has rates of its own. The model was compared with the times of products on
an H200.
"""

from __future__ import annotations

from math import hypot

from ..dialects.kernel import WARP
from ..dialects.wgmma import MIN_COLUMNS
from ..machine.matrix_instructions import HALVES
from ..machine.targets import Target
from .tilings import WARPGROUPS, WORD_BYTES, Problem, Tiling, count_parts

SCHEDULERS = 4
"""Warps of a multiprocessor that issue an instruction in one cycle."""

L2_BYTES_PER_CYCLE = 64
"""What the cache gives one multiprocessor; one that is alone gets no more."""

WGMMA_BYTES_PER_CYCLE = 52
"""The same where the copy engine fetches for warpgroups, of all multiprocessors at once."""

WGMMA_SLOWDOWN = 1.13
"""How many times as long a cycle takes where tensor cores multiply: the chip has power for no more."""

CHUNK_LATENCY = 800
"""Cycles from asking for a chunk to having it in shared memory."""

BARRIER_CYCLES = 60
"""What the wait and the barrier of a chunk cost a block that is alone, where the chunk is there already."""

BULK_LATENCY = 2800
"""The same where the copy engine fetches for tensor cores, and all multiprocessors ask for chunks at once."""

BULK_ROWS, WGMMA_COLUMNS = 64, 40
"""Rows of a slab, and columns of a product, of which fewer take the copy engine and warpgroups as long."""

LONE = 1.7
"""How many times as long a chunk takes where a scheduler has one warp, and none to hide what it waits for."""

COPY_ISSUE, COPY_BYTES = 16, 8
"""Cycles of a scheduler for one copy of a warp's threads, and the bytes that each of these takes."""

HIDDEN = 7 / 8
"""The part of the shorter one of computing and waiting for memory that the longer one hides."""

HALF_SECTORS = 0.22
"""Cycles that an element takes longer to store where lanes cannot exchange columns (`exchange-stores`)."""

LAUNCH_CYCLES = 4000
"""What one more kernel costs: about 2 us."""

FOLD_BYTES_PER_CYCLE, WGMMA_FOLD_BYTES_PER_CYCLE = 32, 14
"""What the cache gives a multiprocessor of partial sums, which are written and read once; and of those of
warpgroups, which all write at once what they have computed at the same time."""


def cycles(problem: Problem, tiling: Tiling, target: Target) -> float:
    """What the model says the contraction takes, in cycles of a multiprocessor."""
    chunks = count_parts(count_parts(problem.k, tiling.block_k), tiling.split_k)
    buffers = problem.buffers(tiling, target)
    chunk = _chunk_cycles(problem, tiling, target)
    latency = BULK_LATENCY if tiling.mma and tiling.stages else CHUNK_LATENCY
    if buffers == 1:
        first, alone = 0.0, chunk + latency
    else:
        first = CHUNK_LATENCY
        lone = not tiling.mma and tiling.threads <= SCHEDULERS * WARP
        alone = max((LONE if lone else 1) * chunk + BARRIER_CYCLES, latency / (buffers - 1))

    def together(count: int) -> float:
        return first + chunks * max(count * chunk, alone) if count else 0.0

    resident = max(problem.resident_blocks(tiling, target), 1)
    rounds, rest = divmod(count_parts(problem.blocks(tiling), target.processors), resident)
    computing = rounds * together(resident) + together(rest)
    computing += _store_cycles(problem, tiling) * count_parts(
        problem.blocks(tiling), target.processors
    )
    memory = problem.traffic * target.clock / target.dram_bytes_per_second
    longer, shorter = max(computing, memory), min(computing, memory)
    return longer + (1 - HIDDEN) * shorter + _fold_cycles(problem, tiling, target)


def _store_cycles(problem: Problem, tiling: Tiling) -> float:
    """What warpgroups' stores of halves of sectors take a block longer than those of whole ones."""
    if tiling.mma != WARPGROUPS or tiling.split_k > 1:
        return 0.0
    is_ragged = problem.m % tiling.block_m or problem.n % tiling.block_n
    alone = tiling.block_n if is_ragged else tiling.block_n % (2 * MIN_COLUMNS)
    return HALF_SECTORS * tiling.block_m * alone


def _chunk_cycles(problem: Problem, tiling: Tiling, target: Target) -> float:
    """What a chunk takes a block that is alone once it is there, and what copying another one takes."""
    if tiling.mma == WARPGROUPS:
        return tiling.block_k * _wgmma_cycles(tiling, problem, target)
    warps = count_parts(tiling.threads, WARP)
    loads = tiling.thread_m + tiling.thread_n
    sums = tiling.thread_m * tiling.thread_n * problem.results
    rounded = loads if problem.short_bytes == WORD_BYTES else 0
    across = tiling.block_m * problem.row_bytes + tiling.block_n * problem.column_bytes
    copies = 0.0 if tiling.stages else across / COPY_BYTES / tiling.threads
    busy = count_parts(warps, SCHEDULERS) * (sums + loads + rounded + COPY_ISSUE * copies)
    computing: float = max(busy, warps * loads)
    if tiling.mma:
        computing = _mma_cycles(tiling, problem, target)
    return tiling.block_k * (computing + across / L2_BYTES_PER_CYCLE)


def _fold_cycles(problem: Problem, tiling: Tiling, target: Target) -> float:
    """What writing the partial sums and the second kernel, which reads them, cost."""
    if tiling.split_k == 1:
        return 0.0
    size = 4 * problem.results * problem.batch * problem.m * problem.n * tiling.split_k
    cached = size <= target.l2_bytes / 2
    memory = target.dram_bytes_per_second / target.clock
    each = WGMMA_FOLD_BYTES_PER_CYCLE if tiling.mma == WARPGROUPS else FOLD_BYTES_PER_CYCLE
    speed = each * target.processors if cached else memory
    return LAUNCH_CYCLES + 2 * size / speed


def _wgmma_cycles(tiling: Tiling, problem: Problem, target: Target) -> float:
    """What one position of K takes warpgroups: multiplying hides most of fetching, or is hidden by it."""
    products = tiling.block_m * max(tiling.block_n, WGMMA_COLUMNS) * problem.results
    rows, columns = (max(n, BULK_ROWS) for n in (tiling.block_m, tiling.block_n))
    fetched = rows * problem.row_bytes / (tiling.cluster_n or 1)
    fetched += columns * problem.column_bytes / (tiling.cluster_m or 1)
    computing = WGMMA_SLOWDOWN * products / target.wgmma_per_cycle
    return hypot(computing, fetched / WGMMA_BYTES_PER_CYCLE)


def _mma_cycles(tiling: Tiling, problem: Problem, target: Target) -> float:
    """What the warps of a block take for one position of K: to multiply, and to load what they multiply.

    A tf32 has to be rounded where it is loaded.
    """
    row = problem.instruction or HALVES
    warps = count_parts(tiling.threads, WARP)
    products = tiling.thread_m * tiling.thread_n // row.held[2] * problem.results
    loads = tiling.thread_m + tiling.thread_n // row.thread_columns * problem.results
    each = (row.cost or 1) * row.work * SCHEDULERS / target.mma_per_cycle
    rounded = row.slots if row.element_bytes == WORD_BYTES else 0
    busy = count_parts(warps, SCHEDULERS) * (products * each + loads * (1 + rounded))
    # a turn of a warp loads a word for each lane
    turns = row.slots * row.element_bytes / WORD_BYTES
    return max(busy, warps * loads * turns) / row.depth
