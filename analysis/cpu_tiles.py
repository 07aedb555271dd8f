"""What a contraction on a CPU is to the model, how it may be tiled, and what its register tiles cost.

A register tile of f rows and g vectors loads f elements and g vectors for f * g multiply-adds in each
position of the reduced axis; its sums, the vectors of columns and one element must fit the registers. Of
those that do, the one is best whose tiles cover the result in the fewest cycles, rows that stand over and a
narrower tile for the last columns included, and of equals the one that fetches the fewest bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import gcd

from ..dialects import amx
from ..machine.cpus import Cpu

MAX_ROWS = 16
"""Rows of a register tile, at most: their loads have to be issued, too."""

MAX_VECTORS = 4
"""Vectors of columns of a register tile, at most."""

GOOD = 1.1
"""A register tile is looked at closer if it takes at most so many times the cycles of the best one."""

CHUNK_BYTES = 512
"""Of a row of an operand in one chunk of K: 128 of f32, between which sums go to memory and back."""

MATRIX_LOAD_COST = 0.2
"""Of the time of its loads, or of its products if these take less, that a step of matrix tiles adds."""

MIN_WORK = 1 << 19
"""Multiply-adds that are worth a block of their own: about 10 us."""

FETCH_CYCLES = 1
"""To get a vector that is read in place into the first-level cache."""


@dataclass(frozen=True)
class CpuTiling:
    """The parts that a contraction comes in; the fields are the choices of a schedule."""

    block_m: int
    block_n: int
    block_k: int
    thread_m: int
    thread_n: int
    dot: int = 0
    """1 if vectors lie along K, and nothing is packed; `thread_n` then counts columns."""
    in_place: int = 0
    """1 if rows are read where they lie, and only columns are packed."""
    turned: int = 0
    """1 if the rows of blocks and tiles are the columns of the result."""
    pairs: int = 0
    """1 if two positions of K are multiplied at once: pairs of bf16 of rows and of columns."""
    mma: int = 0
    """1 if matrix tiles multiply them, 32 positions at once."""
    ahead: int = 0
    """Positions of K before its turn that a line of what is not packed is asked for; 0 if none is."""

    @property
    def choices(self) -> dict[str, int]:
        """Every choice, those too that are 0."""
        return asdict(self)

    @property
    def written(self) -> dict[str, int]:
        """The choices of a schedule that say this; that it is turned, its `m` and `n` say."""
        left_out = {"turned"} if self.in_place or self.dot else {"turned", "ahead"}
        return {name: v for name, v in self.choices.items() if v and name not in left_out}


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
    row_sets: int = 1
    """Different sets of rows in the batch: images have the same weights."""
    column_sets: int = 1
    period: int = 1
    """Positions that inner sweeps have, such as 9 of a 3 by 3 window; a chunk of K has whole ones."""
    lines: int = 0
    """Positions of a chunk that is whole lines of an image, where a factor lies along these; else 0."""
    along: bool = False
    """Whether all factors are elements of arrays that lie along K."""
    rows_along: bool = False
    """Whether what rows are computed from are neighbours along K."""
    columns_along: bool = False
    """Whether what columns are computed from are, and not from one column to the next."""
    rows_plain: bool = True
    """Whether rows are elements of arrays: squares of them can be turned in registers."""
    columns_plain: bool = True
    """Whether columns are."""
    rows_stay: bool = False
    """Whether rows may be read where they lie."""
    columns_stay: bool = False
    """Whether columns might be, if they were rows."""
    rows_pitch: int = 0
    """Bytes from a row to the next one where rows stay; 0 if these vary."""
    columns_pitch: int = 0
    """The same of columns."""
    pairs: bool = False
    """Whether the factors are bf16, two neighbours along K a pair; only pairs may stay where they lie."""
    rows_even: bool = False
    """Whether rows lie at even distances, and K is whole steps of matrix tiles."""
    columns_even: bool = False
    """Whether columns lie so."""
    rows_across: bool = False
    """Whether rows are neighbours in an array: matrix tiles have squares of them turned."""
    columns_across: bool = False
    """Whether columns are."""
    mma: bool = False
    """Whether matrix tiles multiply; an element is a pair then."""

    def has_pairs(self, mma: bool) -> bool:
        """Whether rows can be read in pairs, in place or packed along K."""
        return self.pairs and (self.rows_stay or self.rows_along or (mma and self.rows_across))

    @property
    def of_pairs(self) -> CpuProblem:
        """The contraction whose elements are pairs, each as long as one of the result."""
        return replace(self, k=parts(self.k, 2), pairs=False)

    @property
    def of_matrices(self) -> CpuProblem:
        """The same for matrix tiles."""
        rows_stay = self.rows_stay and self.rows_even
        columns_stay = self.columns_stay and self.columns_even
        return replace(self.of_pairs, rows_stay=rows_stay, columns_stay=columns_stay, mma=True)

    @property
    def transposed(self) -> CpuProblem:
        """The contraction of the transposed result."""
        return replace(
            self,
            m=self.n,
            n=self.m,
            rows=self.columns,
            columns=self.rows,
            row_sets=self.column_sets,
            column_sets=self.row_sets,
            rows_along=self.columns_along,
            columns_along=self.rows_along,
            rows_plain=self.columns_plain,
            columns_plain=self.rows_plain,
            rows_stay=self.columns_stay,
            columns_stay=self.rows_stay,
            rows_pitch=self.columns_pitch,
            columns_pitch=self.rows_pitch,
            rows_even=self.columns_even,
            columns_even=self.rows_even,
            rows_across=self.columns_across,
            columns_across=self.rows_across,
        )


def parts(extent: int, size: int) -> int:
    """How many parts of a size make up an extent."""
    return -(-extent // size)


def even(extent: int, most: int, unit: int) -> int:
    """The size of equal parts of an extent, each a multiple of `unit` and at most `most` or one unit."""
    count = parts(extent, max(most // unit, 1) * unit)
    return parts(parts(extent, max(count, 1)), unit) * unit


def blocks_worth(problem: CpuProblem, most: int) -> int:
    """How many blocks there is work for, or cores, at most so many."""
    work = problem.batch * problem.m * problem.n * problem.k * problem.results
    return min(most, parts(work, MIN_WORK))


def register_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the registers.

    A tile needs one for an element; another one lets the next position's loads begin early, where there are
    many. The chunk of its columns stays in the L1 cache, as all rows of a block need it.
    """
    if problem.mma:
        return matrix_tiles(problem)
    left = 1 + cpu.registers // 16 if cpu.steps > 1 else 1
    chunk = problem.columns * cpu.lanes(problem.element_bytes) * CHUNK_BYTES
    most = max(cpu.l1_bytes * 3 // 4 // chunk, 1)
    return [
        (rows, vectors)
        for vectors in range(1, min(MAX_VECTORS, most) + 1)
        for rows in range(1, MAX_ROWS + 1)
        if problem.results * rows * vectors + problem.columns * vectors + left <= cpu.registers
    ]


def matrix_tiles(problem: CpuProblem) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the registers for matrices.

    A register has the sums of up to 16 rows and 16 columns, or those rows, or those columns.
    """
    return [
        (rows, vectors)
        for vectors in range(1, MAX_VECTORS + 1)
        for rows in range(1, 2 * amx.ROWS + 1)
        if rows % (across := parts(rows, amx.ROWS)) == 0
        and across * (problem.results * vectors + problem.rows) + problem.columns * vectors
        <= amx.REGISTERS
    ]


def step_cycles(problem: CpuProblem, rows: int, vectors: int, cpu: Cpu, in_place: int = 0) -> float:
    """Cycles of a position of K in a register tile of so many rows and vectors of columns."""
    if problem.mma:
        return matrix_cycles(problem, rows, vectors)
    sums = problem.results * rows * vectors
    loads = problem.rows * rows + problem.columns * vectors
    work = sums * (1 + cpu.line_cost * problem.rows * rows) + cpu.load_cost * loads + cpu.step_cost
    clash = cpu.clash_cycles * clashing_lines(problem, rows, cpu) if in_place else 0
    return at_least(work, loads, cpu) + clash


def clashing_lines(problem: CpuProblem, rows: int, cpu: Cpu) -> int:
    """The lines of rows in place that are more than the L1 cache keeps, since they fall on few places.

    Those of rows that lie 4 KiB apart, or a multiple of that, all fall on the same one; and so does one of
    the columns, at times.
    """
    way = cpu.l1_bytes // cpu.l1_ways
    places = way // gcd(problem.rows_pitch, way)
    kept = places * cpu.l1_ways - 1
    return max(problem.rows * rows - kept, 0) if problem.rows_pitch else 0


def matrix_cycles(problem: CpuProblem, rows: int, vectors: int) -> float:
    """The same of a pair of positions in matrix tiles: 16 pairs take a cycle for each row and vector.

    In the meantime, two rows of registers are loaded in a cycle.
    """
    multiplied = problem.results * rows * vectors
    loaded = (problem.rows * rows + problem.columns * vectors * amx.ROWS) / 2
    return (max(multiplied, loaded) + MATRIX_LOAD_COST * min(multiplied, loaded)) / amx.ROWS


def strip_tiles(columns: int, thread_n: int, lanes: int) -> list[tuple[int, int]]:
    """How many register tiles cover so many columns, and their vectors: wide ones, then a narrow one."""
    wide, left = divmod(columns, thread_n)
    return [(wide, thread_n // lanes)] * (wide > 0) + [(1, parts(left, lanes))] * (left > 0)


def at_least(work: float, loads: int, cpu: Cpu) -> float:
    """Cycles of so many multiply-adds, or of what takes as long, and loads."""
    # A multiply-add takes about four cycles, so that many sums must be on their way.
    return max(work / cpu.fmas, loads / cpu.loads, 4.0)


def good_register_tiles(problem: CpuProblem, cpu: Cpu, in_place: int = 0) -> list[tuple[int, int]]:
    """Rows and columns of the register tiles that cover the result in few cycles, the best one first.

    Where none fits the registers, there is one of one row and one vector, some of whose sums go to memory.
    """
    lanes = cpu.lanes(problem.element_bytes)

    def cost(tile: tuple[int, int]) -> tuple[float, float]:
        rows, vectors = tile
        cycles, fetched = 0.0, 0.0
        for count, width in strip_tiles(problem.n, vectors * lanes, lanes):
            cycles += count * step_cycles(problem, rows, width, cpu, in_place)
            fetched += count * problem.rows * rows * problem.element_bytes
            fetched += count * problem.columns * width * cpu.vector_bytes
        strips = parts(problem.m, rows)
        return strips * cycles, strips * fetched

    costs = {tile: cost(tile) for tile in register_tiles(problem, cpu) or [(1, 1)]}
    limit = min(costs.values())[0] * GOOD
    good = sorted((tile for tile in costs if costs[tile][0] <= limit), key=lambda tile: costs[tile])
    return [(rows, vectors * lanes) for rows, vectors in good]
