"""How a contraction is shared out on a CPU: the register tile, and what of the operands fits the caches.

A register tile of f rows and g vectors loads f elements and g vectors for f * g multiply-adds in each
position of the reduced axis; its sums, the vectors of columns and one element must fit the registers. Of
those that do, the one is taken whose tiles cover the result in the fewest cycles, what stands over included,
and of equals the one that fetches the fewest bytes. The rows of a block fill half of the L2 cache, and so do
its columns, though not both stay there: the larger a block, the rarer an element is packed. Its sums each
chunk of K needs once, from wherever they are. Blocks are as large as that allows while there is one for each
core, and then somewhat smaller where fewer cores would idle in the last round. If then all of K fits half of
the cache, it is one chunk.

Where both operands lie along K in memory, as those of a linear layer do, they need no packing: a `dot` tile
of f rows and c columns loads a vector along K of each, and its f * c sums are vectors, whose elements are
added up at the end. That takes `REDUCE_CYCLES` for each result; packing takes `PACK_CYCLES` for each vector
of columns, once for each block of rows.

Rows that lie along K may also stay where they are: a register tile needs but one element of each at a time.
And a block may be turned: it computes the transpose of its part of the result, its rows are the columns of
the product, and what it found is turned at the end, which takes `TURN_CYCLES` for each vector. So only the
smaller operand of a linear layer is packed. Of all these the one of the fewest cycles is taken.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from math import lcm

from .cpus import Cpu

MAX_ROWS = 16
"""Rows of a register tile, at most: their loads have to be issued, too."""

MAX_VECTORS = 4
"""Vectors of columns of a register tile, at most."""

GOOD = 1.1
"""A register tile is looked at closer if it takes at most so many times the cycles of the best one."""

CHUNK_BYTES = 512
"""Of a row of an operand in one chunk of K: 128 of f32, between which sums go to memory and back."""

STREAM_BYTES = 2048
"""Of a row that is read in place, at once: shorter ones end before the CPU has guessed what comes next."""

TILE_CYCLES = 40
"""To begin and to end a register tile: its sums are loaded and stored, its loop is entered and left."""

DOT_BLOCKS = 2
"""Blocks that a core should have where nothing is packed, so that an early finisher helps the others."""

MORE_PARTS = 8
"""More blocks along an axis than there are at least, if these leave cores idle."""

MIN_WORK = 1 << 19
"""Multiply-adds that are worth a block of their own: about 10 us."""

DOT_LOAD_COST = 0.4
"""Of a multiply-add's time, that a load of a dot tile adds: it comes from a lower cache than a panel's."""

DOT_STEP_COST = 3
"""Of a multiply-add's time, that a vector of positions adds."""

REDUCE_CYCLES = 8
"""To add up the elements of a vector."""

PACK_CYCLES = 4
"""To pack a vector of an operand."""

CLASH_CYCLES = 16
"""The same where lines of the operand that are packed at once fall on the same places of the cache."""

CLASH_BYTES = 4096
"""Lines so many bytes apart do."""

FETCH_CYCLES = 1
"""To get a vector that is read in place into the first-level cache."""

TURN_CYCLES = 12
"""To turn a vector of sums: it is loaded, shuffled with others a few times, and stored."""

FEW_ROWS = 32
"""Rows of which chunks stay in the first-level cache, about."""

MAX_DOT_COLUMNS = 8
"""Columns of a dot tile, at most: each is a place in memory to keep track of."""


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

    @property
    def choices(self) -> dict[str, int]:
        """Every choice, those too that are 0."""
        return asdict(self)

    @property
    def written(self) -> dict[str, int]:
        """The choices of a schedule that say this; that it is turned, its `m` and `n` say."""
        return {name: value for name, value in self.choices.items() if value and name != "turned"}


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
    along: bool = False
    """Whether all factors are elements of arrays that lie along K."""
    rows_stay: bool = False
    """Whether rows may be read where they lie."""
    columns_stay: bool = False
    """Whether columns might be, if they were rows."""

    @property
    def transposed(self) -> CpuProblem:
        """The contraction of the transposed result."""
        return replace(
            self,
            m=self.n,
            n=self.m,
            rows=self.columns,
            columns=self.rows,
            rows_stay=self.columns_stay,
            columns_stay=self.rows_stay,
        )


def _parts(extent: int, size: int) -> int:
    return -(-extent // size)


def _even(extent: int, most: int, unit: int) -> int:
    """The size of equal parts of an extent, each a multiple of `unit` and at most `most` or one unit."""
    parts = _parts(extent, max(most // unit, 1) * unit)
    return _parts(_parts(extent, max(parts, 1)), unit) * unit


def register_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the registers.

    A tile needs one for an element; the others that are left let the next position's loads begin early. The
    chunk of its columns stays in the L1 cache, as all rows of a block need it.
    """
    left = 1 + cpu.registers // 16
    chunk = problem.columns * cpu.lanes(problem.element_bytes) * CHUNK_BYTES
    most = max(cpu.l1_bytes * 3 // 4 // chunk, 1)
    return [
        (rows, vectors)
        for vectors in range(1, min(MAX_VECTORS, most) + 1)
        for rows in range(1, MAX_ROWS + 1)
        if problem.results * rows * vectors + problem.columns * vectors + left <= cpu.registers
    ]


def dot_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and columns of the dot tiles that fit the registers."""
    return [
        (rows, columns)
        for rows in range(1, MAX_ROWS + 1)
        for columns in range(1, MAX_DOT_COLUMNS + 1)
        if problem.results * rows * columns + problem.rows * rows + 1 <= cpu.registers
    ]


def step_cycles(problem: CpuProblem, rows: int, vectors: int, cpu: Cpu) -> float:
    """Cycles of a position of K in a register tile of so many rows and vectors of columns."""
    sums = problem.results * rows * vectors
    loads = problem.rows * rows + problem.columns * vectors
    work = sums * (1 + cpu.line_cost * problem.rows * rows) + cpu.load_cost * loads + cpu.step_cost
    return _at_least(work, loads, cpu)


def dot_cycles(problem: CpuProblem, rows: int, columns: int, cpu: Cpu) -> float:
    """Cycles of a vector of positions of K in a dot tile of so many rows and columns."""
    loads = problem.rows * rows + problem.columns * columns
    work = problem.results * rows * columns + DOT_LOAD_COST * loads + DOT_STEP_COST
    return _at_least(work, loads, cpu)


def _at_least(work: float, loads: int, cpu: Cpu) -> float:
    # A multiply-add takes about four cycles, so that many sums must be on their way.
    return max(work / cpu.fmas, loads / cpu.loads, 4.0)


def choose_register_tile(problem: CpuProblem, cpu: Cpu) -> tuple[int, int]:
    """Rows and columns of the register tile that covers the result in the fewest cycles."""
    return good_register_tiles(problem, cpu)[0]


def good_register_tiles(problem: CpuProblem, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows and columns of the register tiles that cover the result in few cycles, the best one first."""
    lanes = cpu.lanes(problem.element_bytes)

    def cost(tile: tuple[int, int]) -> tuple[float, float]:
        rows, vectors = tile
        tiles = _parts(problem.m, rows) * _parts(problem.n, vectors * lanes)
        fetched = problem.rows * rows * problem.element_bytes
        fetched += problem.columns * vectors * cpu.vector_bytes
        return tiles * step_cycles(problem, rows, vectors, cpu), tiles * fetched

    costs = {tile: cost(tile) for tile in register_tiles(problem, cpu)}
    limit = min(costs.values())[0] * GOOD
    good = sorted((tile for tile in costs if costs[tile][0] <= limit), key=lambda tile: costs[tile])
    return [(rows, vectors * lanes) for rows, vectors in good]


def choose_dot_tile(problem: CpuProblem, cpu: Cpu) -> tuple[int, int]:
    """Rows and columns of the dot tile that covers the result in the fewest cycles."""

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        rows, columns = tile
        tiles = _parts(problem.m, rows) * _parts(problem.n, columns)
        return tiles * dot_cycles(problem, rows, columns, cpu), rows

    return min(dot_tiles(problem, cpu), key=cost)


def choose_cpu_tiling(problem: CpuProblem, cpu: Cpu) -> CpuTiling:
    """The tiling that the model takes for a contraction."""
    return min(best_of_each_kind(problem, cpu), key=lambda each: each[0])[1]


def best_of_each_kind(problem: CpuProblem, cpu: Cpu) -> list[tuple[float, CpuTiling]]:
    """A tiling of each kind that a contraction may have, and about how many cycles a position of K takes."""
    found = [_choose_blocks(problem, cpu)]
    if problem.rows_stay:
        found.append(_choose_blocks(problem, cpu, in_place=1))
    if problem.columns_stay:
        found.append(_choose_blocks(problem, cpu, in_place=1, turned=1))
    if problem.along and _rows_stay_cached(problem, cpu):
        tiling = choose_dot_tiling(problem, cpu)
        found.append((_dot_tiling_cycles(problem, tiling, cpu), tiling))
    return found


def _rows_stay_cached(problem: CpuProblem, cpu: Cpu) -> bool:
    """Whether the rows stay in a cache: dot tiles read all of them for every few columns."""
    rows_bytes = problem.rows * problem.m * problem.k * problem.element_bytes
    return problem.m <= FEW_ROWS or rows_bytes <= cpu.l2_bytes * 5 // 8


def _workers(problem: CpuProblem, cpu: Cpu) -> int:
    """The cores that there is work for."""
    work = problem.batch * problem.m * problem.n * problem.k * problem.results
    return min(cpu.cores, _parts(work, MIN_WORK))


def choose_dot_tiling(problem: CpuProblem, cpu: Cpu) -> CpuTiling:
    """The tiling of a contraction that is not packed."""
    rows, columns = choose_dot_tile(problem, cpu)
    lanes = cpu.lanes(problem.element_bytes)
    line = (problem.rows * rows + problem.columns * columns) * problem.element_bytes
    block_k = _even(problem.k, cpu.l1_bytes // 2 // line, lanes)
    chunk = problem.rows * block_k * problem.element_bytes
    block_m = _even(problem.m, cpu.l2_bytes // 2 // chunk, rows)
    sums = problem.results * block_m * problem.element_bytes
    work = problem.batch * problem.m * problem.n * problem.k * problem.results
    wanted = min(cpu.cores * DOT_BLOCKS, _parts(work, MIN_WORK))
    strips = _parts(wanted, problem.batch * _parts(problem.m, block_m))
    most = min(cpu.l2_bytes // 4 // sums, _parts(problem.n, strips) + columns - 1)
    block_n = _even(problem.n, most, columns)
    return CpuTiling(block_m, block_n, block_k, rows, columns, dot=1)


def _dot_tiling_cycles(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> float:
    """About how many cycles a position of K takes, that of the vectors' elements being added up included."""
    rows, columns = tiling.thread_m, tiling.thread_n
    height, width = min(tiling.block_m, problem.m), min(tiling.block_n, problem.n)
    lanes = cpu.lanes(problem.element_bytes)
    tiles = _parts(height, rows) * _parts(width, columns)
    multiplied = tiles * dot_cycles(problem, rows, columns, cpu) / lanes
    multiplied += problem.columns * width * FETCH_CYCLES / lanes
    reduced = problem.results * height * width * REDUCE_CYCLES / problem.k
    blocks = problem.batch * _parts(problem.m, height) * _parts(problem.n, width)
    return blocks / _workers(problem, cpu) * (multiplied + reduced)


def _choose_blocks(
    problem: CpuProblem, cpu: Cpu, in_place: int = 0, turned: int = 0
) -> tuple[float, CpuTiling]:
    """The best tiling with register tiles, and about how many cycles a position of K takes."""
    kind = {"in_place": in_place, "turned": turned}
    here = problem.transposed if turned else problem
    tiles = [tile for tile in good_register_tiles(here, cpu) if not in_place or tile[0] <= here.m]
    found = [
        _blocked(here, tile, cpu, kind) for tile in tiles or [(1, cpu.lanes(here.element_bytes))]
    ]
    return min(found, key=lambda each: each[0])


def _blocked(
    problem: CpuProblem, tile: tuple[int, int], cpu: Cpu, kind: dict[str, int]
) -> tuple[float, CpuTiling]:
    """The tiling of a register tile, and about how many cycles a position of K takes then."""
    thread_m, thread_n = tile
    unit, element = _chunk_unit(problem, cpu), problem.element_bytes
    if kind["in_place"]:
        block_n = _even(problem.n, cpu.l2_bytes // 4 // (problem.columns * STREAM_BYTES), thread_n)
        most = cpu.l2_bytes // 2 // (problem.results * block_n * element)
        block_m = _even(problem.m, most, thread_m)
    else:
        row_bytes = _even(problem.k, CHUNK_BYTES // element, unit) * element
        block_n = _even(problem.n, cpu.l2_bytes // 2 // (problem.columns * row_bytes), thread_n)
        block_m = _even(problem.m, cpu.l2_bytes // 2 // (problem.rows * row_bytes), thread_m)
    wanted = _workers(problem, cpu)
    while problem.batch * _parts(problem.m, block_m) * _parts(problem.n, block_n) < wanted:
        if block_n > thread_n and block_n >= block_m:
            block_n = _even(problem.n, block_n // 2, thread_n)
        elif block_m > thread_m:
            block_m = _even(problem.m, block_m // 2, thread_m)
        elif block_n > thread_n:
            block_n = _even(problem.n, block_n // 2, thread_n)
        else:
            break
    block_m, block_n, cycles = _balanced(problem, (block_m, block_n), tile, cpu, kind)
    block_k = _chunk(problem, block_n, cpu, kind)
    whole = _even(problem.k, problem.k, unit)
    operands = problem.rows * block_m + problem.columns * block_n
    if operands * whole * problem.element_bytes <= cpu.l2_bytes // 2:
        block_k = whole
    return cycles, CpuTiling(block_m, block_n, block_k, thread_m, thread_n, **kind)


def _chunk(problem: CpuProblem, columns: int, cpu: Cpu, kind: dict[str, int]) -> int:
    """Positions of a chunk of K, for blocks of so many columns."""
    size = CHUNK_BYTES
    if kind["in_place"]:
        size = min(cpu.l2_bytes // 4 // (problem.columns * columns), 2 * STREAM_BYTES)
    return _even(problem.k, size // problem.element_bytes, _chunk_unit(problem, cpu))


def _chunk_unit(problem: CpuProblem, cpu: Cpu) -> int:
    """What a chunk of K is a multiple of: whole inner sweeps, and whole vectors if these are short."""
    lanes = cpu.lanes(problem.element_bytes)
    both = lcm(problem.period, lanes)
    return (
        both if both <= min(problem.k, 2 * CHUNK_BYTES // problem.element_bytes) else problem.period
    )


def pack_cycles(problem: CpuProblem, extent: int, along: bool) -> int:
    """Cycles to pack a vector of an operand that has lines of so many elements, or those along K."""
    line = (problem.k if along else extent) * problem.element_bytes
    return PACK_CYCLES if line % CLASH_BYTES else CLASH_CYCLES


def _balanced(
    problem: CpuProblem,
    block: tuple[int, int],
    tile: tuple[int, int],
    cpu: Cpu,
    kind: dict[str, int],
) -> tuple[int, int, float]:
    """The block, no larger than this one, with which the cores are done first, and after how many cycles.

    In the last round some of them may be idle; smaller blocks pack more.
    """
    lanes = cpu.lanes(problem.element_bytes)
    step = step_cycles(problem, tile[0], tile[1] // lanes, cpu)
    cores = _workers(problem, cpu)
    fetch = FETCH_CYCLES if kind["in_place"] else pack_cycles(problem, problem.m, problem.rows_stay)
    pack = pack_cycles(problem, problem.n, problem.columns_stay)
    turn = problem.results * TURN_CYCLES / problem.k if kind["turned"] else 0

    def sizes(extent: int, most: int, unit: int) -> set[int]:
        fewest = _parts(extent, most)
        counts = range(fewest, fewest + min(fewest, MORE_PARTS) + 1)
        return {_parts(_parts(extent, n), unit) * unit for n in counts}

    def cost(block: tuple[int, int]) -> tuple[float, int]:
        rows, columns = block
        blocks = problem.batch * _parts(problem.m, rows) * _parts(problem.n, columns)
        overhead = TILE_CYCLES / _chunk(problem, columns, cpu, kind)
        multiplied = (rows // tile[0]) * (columns // tile[1]) * (step + overhead)
        packed = (problem.rows * rows * fetch + problem.columns * columns * pack) / lanes
        packed += rows * columns * turn / lanes
        return _parts(blocks, cores) * (multiplied + packed), -rows * columns

    heights, widths = (
        sizes(*each) for each in zip((problem.m, problem.n), block, tile, strict=True)
    )
    rows, columns = min(product(sorted(heights), sorted(widths)), key=cost)
    return rows, columns, cost((rows, columns))[0]
