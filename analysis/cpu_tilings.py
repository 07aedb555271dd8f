"""How a contraction is shared out on a CPU: the register tile, and what of the operands fits the caches.

A register tile of f rows and g vectors loads f elements and g vectors for f * g multiply-adds in each
position of the reduced axis; its sums, the vectors of columns and one element must fit the registers. Of
those that do, the one is taken whose tiles cover the result in the fewest cycles, what stands over included,
and of equals the one that fetches the fewest bytes. The rows of a block, its columns and its sums fill a
quarter of the L2 cache each; the larger a block, the rarer an element is packed. Blocks are as large as that
allows while there are enough of them for all cores. If then all of K fits half of the cache, it is one
chunk.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .cpus import Cpu

MAX_ROWS = 16
"""Rows of a register tile, at most: their loads have to be issued, too."""

MAX_VECTORS = 4
"""Vectors of columns of a register tile, at most."""

CHUNK_BYTES = 1024
"""Of a row of an operand in one chunk of K: 256 of f32, between which sums go to memory and back."""

BLOCKS_PER_CORE = 4
"""Blocks that a core should have, so that an early finisher helps the others."""

MIN_WORK = 1 << 19
"""Multiply-adds that are worth a block of their own: about 10 us."""


@dataclass(frozen=True)
class CpuTiling:
    """The parts that a contraction comes in; the fields are the choices of a schedule."""

    block_m: int
    block_n: int
    block_k: int
    thread_m: int
    thread_n: int

    @property
    def choices(self) -> dict[str, int]:
        """The choices of a schedule that say this."""
        return asdict(self)


@dataclass(frozen=True)
class CpuProblem:
    """What the model knows of a contraction."""

    batch: int
    m: int
    n: int
    k: int
    results: int
    rows: int
    """Different factors that depend on the rows."""
    columns: int
    """Different factors that depend on the columns."""
    element_bytes: int
    period: int = 1
    """Positions that inner sweeps have, such as 9 of a 3 by 3 window; a chunk of K has whole ones."""


def _parts(extent: int, size: int) -> int:
    return -(-extent // size)


def _even(extent: int, most: int, unit: int) -> int:
    """The size of equal parts of an extent, each a multiple of `unit` and at most `most` or one unit."""
    parts = _parts(extent, max(most // unit, 1) * unit)
    return _parts(_parts(extent, max(parts, 1)), unit) * unit


def register_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the registers."""
    return [
        (rows, vectors)
        for vectors in range(1, MAX_VECTORS + 1)
        for rows in range(1, MAX_ROWS + 1)
        if problem.results * rows * vectors + problem.columns * vectors + 1 <= cpu.registers
    ]


def choose_register_tile(problem: CpuProblem, cpu: Cpu) -> tuple[int, int]:
    """Rows and columns of the register tile that covers the result in the fewest cycles."""
    lanes = cpu.lanes(problem.element_bytes)

    def cost(tile: tuple[int, int]) -> tuple[float, float]:
        rows, vectors = tile
        tiles = _parts(problem.m, rows) * _parts(problem.n, vectors * lanes)
        sums = problem.results * rows * vectors
        loads = problem.rows * rows + problem.columns * vectors
        # A multiply-add takes about four cycles, so that many sums must be on their way.
        issue = max(sums, 4 * cpu.fmas) / cpu.fmas
        fetched = problem.rows * rows * problem.element_bytes
        fetched += problem.columns * vectors * cpu.vector_bytes
        return tiles * max(issue, loads / cpu.loads), tiles * fetched

    rows, vectors = min(register_tiles(problem, cpu), key=cost)
    return rows, vectors * lanes


def choose_cpu_tiling(problem: CpuProblem, cpu: Cpu) -> CpuTiling:
    """The tiling that the model takes for a contraction."""
    thread_m, thread_n = choose_register_tile(problem, cpu)
    lanes = cpu.lanes(problem.element_bytes)
    unit = lanes if problem.period == 1 else problem.period
    block_k = _even(problem.k, CHUNK_BYTES // problem.element_bytes, unit)
    slab = cpu.l2_bytes // 4 // (block_k * problem.element_bytes)
    block_n = _even(problem.n, slab // problem.columns, thread_n)
    block_m = _even(problem.m, slab // problem.rows, thread_m)
    work = problem.batch * problem.m * problem.n * problem.k * problem.results
    wanted = min(cpu.cores * BLOCKS_PER_CORE, _parts(work, MIN_WORK))
    while problem.batch * _parts(problem.m, block_m) * _parts(problem.n, block_n) < wanted:
        if block_n > thread_n and block_n >= block_m:
            block_n = _even(problem.n, block_n // 2, thread_n)
        elif block_m > thread_m:
            block_m = _even(problem.m, block_m // 2, thread_m)
        elif block_n > thread_n:
            block_n = _even(problem.n, block_n // 2, thread_n)
        else:
            break
    whole = _even(problem.k, problem.k, unit)
    operands = problem.rows * block_m + problem.columns * block_n
    if operands * whole * problem.element_bytes <= cpu.l2_bytes // 2:
        block_k = whole
    return CpuTiling(block_m, block_n, block_k, thread_m, thread_n)
