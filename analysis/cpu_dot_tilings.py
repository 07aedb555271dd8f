"""Dot tiles: register tiles of vectors along K, for contractions of which nothing is packed.

Where both operands lie along K in memory, as those of a linear layer do, they need no packing: a tile of
f rows and c columns loads a vector along K of each, and its f * c sums are vectors, whose elements are added
up at the end, which takes `REDUCE_CYCLES` for each result.
"""

from __future__ import annotations

from ..machine.cpus import MIB, Cpu
from .cpu_tiles import (
    FETCH_CYCLES,
    MAX_ROWS,
    CpuProblem,
    CpuTiling,
    at_least,
    blocks_worth,
    even,
    parts,
)

MAX_DOT_COLUMNS = 8
"""Columns of a dot tile, at most: each is a place in memory to keep track of."""

DOT_LOAD_COST = 0.4
"""Of a multiply-add's time, that a load of a dot tile adds: it comes from a lower cache than a panel's."""

DOT_STEP_COST = 3
"""Of a multiply-add's time, that a vector of positions adds."""

DOT_BLOCKS = 2
"""Blocks that a core should have where nothing is packed, so that an early finisher helps the others."""

REDUCE_CYCLES = 8
"""To add up the elements of a vector."""

FAR_BYTES = 16 * MIB
"""An operand of so many bytes comes from memory: beside the others of a model no cache holds it."""

FAR_ROWS = 8
"""Rows with which that takes longer than register tiles that are not filled."""

FEW_ROWS = 32
"""Rows of which chunks stay in the first-level cache, about."""


def dot_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and columns of the dot tiles that fit the registers."""
    return [
        (rows, columns)
        for rows in range(1, MAX_ROWS + 1)
        for columns in range(1, MAX_DOT_COLUMNS + 1)
        if problem.results * rows * columns + problem.rows * rows + 1 <= cpu.registers
    ]


def dot_cycles(problem: CpuProblem, rows: int, columns: int, cpu: Cpu) -> float:
    """Cycles of a vector of positions of K in a dot tile of so many rows and columns."""
    loads = problem.rows * rows + problem.columns * columns
    work = problem.results * rows * columns + DOT_LOAD_COST * loads + DOT_STEP_COST
    return cpu.dot_cost * at_least(work, loads, cpu)


def choose_dot_tile(problem: CpuProblem, cpu: Cpu) -> tuple[int, int]:
    """Rows and columns of the dot tile that covers the result in the fewest cycles."""

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        rows, columns = tile
        tiles = parts(problem.m, rows) * parts(problem.n, columns)
        return tiles * dot_cycles(problem, rows, columns, cpu), rows

    return min(dot_tiles(problem, cpu), key=cost)


def may_dot(problem: CpuProblem, cpu: Cpu) -> bool:
    """Whether to look at dot tiles: they fit the registers, and what they read again and again is at hand."""
    fits = problem.along and bool(dot_tiles(problem, cpu))
    return fits and _rows_stay_cached(problem, cpu) and not _columns_are_far(problem)


def choose_dot_tiling(problem: CpuProblem, cpu: Cpu) -> CpuTiling:
    """The tiling of a contraction that is not packed."""
    rows, columns = choose_dot_tile(problem, cpu)
    lanes = cpu.lanes(problem.element_bytes)
    line = (problem.rows * rows + problem.columns * columns) * problem.element_bytes
    block_k = even(problem.k, cpu.l1_bytes // 2 // line, lanes)
    chunk = problem.rows * block_k * problem.element_bytes
    block_m = even(problem.m, cpu.l2_bytes // 2 // chunk, rows)
    sums = problem.results * block_m * problem.element_bytes
    wanted = blocks_worth(problem, cpu.cores * DOT_BLOCKS)
    strips = parts(wanted, problem.batch * parts(problem.m, block_m))
    most = min(cpu.l2_bytes // 4 // sums, parts(problem.n, strips) + columns - 1)
    block_n = even(problem.n, most, columns)
    return CpuTiling(block_m, block_n, block_k, rows, columns, dot=1)


def dot_tiling_cycles(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> float:
    """About how many cycles a position of K takes, that of the vectors' elements being added up included."""
    rows, columns = tiling.thread_m, tiling.thread_n
    height, width = min(tiling.block_m, problem.m), min(tiling.block_n, problem.n)
    lanes = cpu.lanes(problem.element_bytes)
    tiles = parts(height, rows) * parts(width, columns)
    multiplied = tiles * dot_cycles(problem, rows, columns, cpu) / lanes
    multiplied += problem.columns * width * FETCH_CYCLES / lanes
    reduced = problem.results * height * width * REDUCE_CYCLES / problem.k
    blocks = problem.batch * parts(problem.m, height) * parts(problem.n, width)
    return blocks / blocks_worth(problem, cpu.cores) * (multiplied + reduced)


def _rows_stay_cached(problem: CpuProblem, cpu: Cpu) -> bool:
    """Whether the rows stay in a cache: dot tiles read all of them for every few columns."""
    rows_bytes = problem.rows * problem.m * problem.k * problem.element_bytes
    return problem.m <= FEW_ROWS or rows_bytes <= cpu.l2_bytes * 5 // 8


def _columns_are_far(problem: CpuProblem) -> bool:
    """Whether columns that may stay in place come from memory: each is read by every few rows of a dot tile,
    and nothing comes while it is read again."""
    columns_bytes = problem.columns * problem.n * problem.k * problem.element_bytes
    return problem.columns_stay and problem.m >= FAR_ROWS and columns_bytes >= FAR_BYTES
