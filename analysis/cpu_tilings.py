"""How a contraction is shared out on a CPU: what of the operands fits the caches, and what is packed.

With the register tile (`cpu_tiles.py`) goes the block of the result. The rows of a block fill half of the L2
cache, and so do its columns, though not both stay there: the larger a block, the rarer an element is packed.
Its sums each chunk of K needs once, from wherever they are. Blocks are as large as that allows while there is
one for each core, and then somewhat smaller where fewer cores would idle in the last round. If then all of K
fits half of the cache, it is one chunk.

Rows that lie along K may also stay where they are: a register tile needs but one element of each at a time.
Then packed columns fill a quarter of the cache, and sums a half; what does not fit the core's own cache is
asked for early, since no core guesses where the next tile's rows lie. And a block may be turned: it
computes the transpose of its part of the result, its rows are the columns of the product, and what it found
is turned at the end, which takes `TURN_CYCLES` for each vector. So only the smaller operand of a linear
layer is packed.

Or nothing is, and dot tiles add up vectors along K (`cpu_dot_tilings.py`). Packing takes `PACK_CYCLES` for
each vector of an operand, once for each block, or `CLASH_CYCLES`. Of all these the tiling of the fewest
cycles is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import lcm

from ..dialects import amx
from ..machine.cpus import Cpu
from .cpu_dot_tilings import choose_dot_tiling, dot_tiling_cycles, may_dot
from .cpu_tiles import (
    CHUNK_BYTES,
    FETCH_CYCLES,
    CpuProblem,
    CpuTiling,
    blocks_worth,
    even,
    good_register_tiles,
    matrix_tiles,
    parts,
    step_cycles,
    strip_tiles,
)

MATRIX_CHUNK = 512
"""Positions of K that are one chunk for matrix tiles, if there are no more."""

LINE_POSITIONS = 128
"""Of a chunk of K that is lines of images, at most, if a line is no longer."""

SIMD = 16
"""Elements of the longest vectors of f32."""

TILE_CYCLES = 40
"""To begin and to end a register tile: its sums are loaded and stored, its loop is entered and left."""

MORE_PARTS = 8
"""More blocks along an axis than there are at least, if these leave cores idle."""

PACK_CYCLES = 4
"""To pack a vector of an operand."""

CLASH_CYCLES = 16
"""The same where lines of the operand that are packed at once fall on the same places of the cache."""

TURN_ONE_BY_ONE_CYCLES = 24
"""The same of windows that lie along K: squares of them are written to a buffer, to be turned there."""

CLASH_BYTES = 4096
"""Lines so many bytes apart do."""

TURN_CYCLES = 12
"""To turn a vector of sums: it is loaded, shuffled with others a few times, and stored."""

ASKING_TILES = 2
"""Register tiles side by side, at most, that ask for the rows they have in common: of linear layers with 8 to
512 rows, those with more tiles take 4 to 10 % less time if they do not, with weights from memory, too."""


def choose_cpu_tiling(problem: CpuProblem, cpu: Cpu) -> CpuTiling:
    """The tiling that the model takes for a contraction."""
    return min(best_of_each_kind(problem, cpu), key=lambda each: each[0])[1]


def best_of_each_kind(problem: CpuProblem, cpu: Cpu) -> list[tuple[float, CpuTiling]]:
    """A tiling of each kind that a contraction may have, and about how many cycles a position of K takes."""
    if problem.pairs and cpu.pairs:
        found = _of_pairs(problem, problem.of_matrices, cpu) if cpu.mma else []
        found += _of_pairs(problem, problem.of_pairs, cpu)
        if found:
            return found
    if problem.pairs:
        problem = replace(problem, rows_stay=False, columns_stay=False)
    found = [_choose_blocks(problem, cpu)]
    if problem.rows_stay:
        found.append(_choose_blocks(problem, cpu, in_place=1))
    if problem.columns_along or (problem.mma and problem.columns_across):
        found.append(_choose_blocks(problem, cpu, in_place=int(problem.columns_stay), turned=1))
    if may_dot(problem, cpu):
        tiling = choose_dot_tiling(problem, cpu)
        found.append((dot_tiling_cycles(problem, tiling, cpu), tiling))
    return [(cycles, _asking_ahead(problem, tiling, cpu)) for cycles, tiling in found]


def _of_pairs(problem: CpuProblem, pairs: CpuProblem, cpu: Cpu) -> list[tuple[float, CpuTiling]]:
    """A tiling of each kind whose elements are pairs, or matrices of them."""
    stays = pairs.rows_stay or pairs.columns_stay
    found: list[tuple[float, CpuTiling]] = []
    for cycles, each in best_of_each_kind(pairs, cpu):
        tiling = replace(each, block_k=each.block_k * 2, ahead=each.ahead * 2, pairs=1)
        if pairs.mma:
            tiling = replace(tiling, block_k=_whole_matrices(pairs, tiling.block_k), mma=1)
        fits = not pairs.mma or _are_matrices(pairs, tiling, cpu)
        here = problem.transposed if each.turned else problem
        packs = here.has_pairs(pairs.mma) and not each.dot
        if fits and (each.in_place if stays else packs):
            found.append((cycles / 2, tiling))
    return found


def _are_matrices(pairs: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> bool:
    """Whether chunks are whole steps of matrix tiles, and there are registers enough for all factors."""
    tile = tiling.thread_m, tiling.thread_n // cpu.lanes(pairs.element_bytes)
    whole = tiling.block_k % amx.DEPTH == 0
    return whole and tile in matrix_tiles(pairs.transposed if tiling.turned else pairs)


def _whole_matrices(pairs: CpuProblem, block_k: int) -> int:
    """The positions of a chunk of K in whole steps of matrix tiles, if it may have so many.

    A chunk has whole inner sweeps, or all of K.
    """
    all_of_k = parts(2 * pairs.k, amx.DEPTH) * amx.DEPTH
    if all_of_k <= MATRIX_CHUNK:
        return all_of_k
    if pairs.period == 1 and not pairs.lines:
        return parts(block_k, amx.DEPTH) * amx.DEPTH
    return block_k


def _asking_ahead(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> CpuTiling:
    """The tiling that asks for rows in place early, if they are more than a core's own cache holds.

    Where many tiles go through the same rows, these are at hand for all but the first, and asking costs each.
    """
    problem = problem.transposed if tiling.turned else problem
    held = problem.row_sets * problem.rows * problem.m * problem.k * problem.element_bytes
    few = problem.n <= ASKING_TILES * tiling.thread_n
    far = tiling.in_place and few and held > cpu.l2_bytes
    asks = far and (cpu.asks_when_busy or not _loads_are_most(problem, tiling, cpu))
    return replace(tiling, ahead=min(cpu.rows_ahead, tiling.block_k)) if asks else tiling


def _loads_are_most(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> bool:
    """Whether the loads of a register tile take longer than its multiply-adds."""
    rows, vectors = tiling.thread_m, tiling.thread_n // cpu.lanes(problem.element_bytes)
    loads = problem.rows * rows + problem.columns * vectors
    return loads / cpu.loads > problem.results * rows * vectors / cpu.fmas


def _choose_blocks(
    problem: CpuProblem, cpu: Cpu, in_place: int = 0, turned: int = 0
) -> tuple[float, CpuTiling]:
    """The best tiling with register tiles, and about how many cycles a position of K takes."""
    kind = {"in_place": in_place, "turned": turned}
    here = problem.transposed if turned else problem
    tiles = good_register_tiles(here, cpu, in_place)
    tiles = [tile for tile in tiles if not in_place or tile[0] <= here.m]
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
        # Short rows are no stream; to write results of many columns goes along memory.
        line = min(cpu.stream_bytes, problem.k * element) if problem.mma else cpu.stream_bytes
        block_n = even(problem.n, cpu.l2_bytes // 4 // (problem.columns * line), thread_n)
        most = cpu.l2_bytes // 2 // (problem.results * block_n * element)
        block_m = even(problem.m, most, thread_m)
    else:
        row_bytes = even(problem.k, _chunk_bytes(problem) // element, unit) * element
        block_n = even(problem.n, cpu.l2_bytes // 2 // (problem.columns * row_bytes), thread_n)
        block_m = even(problem.m, cpu.l2_bytes // 2 // (problem.rows * row_bytes), thread_m)
    wanted = blocks_worth(problem, cpu.cores)
    while problem.batch * parts(problem.m, block_m) * parts(problem.n, block_n) < wanted:
        if block_n > thread_n and block_n >= block_m:
            block_n = _half(problem.n, block_n, thread_n)
        elif block_m > thread_m:
            block_m = _half(problem.m, block_m, thread_m)
        elif block_n > thread_n:
            block_n = _half(problem.n, block_n, thread_n)
        else:
            break
    block_m, block_n, cycles = _balanced(problem, (block_m, block_n), tile, cpu, kind)
    block_k = _chunk(problem, block_n, cpu, kind)
    whole = even(problem.k, problem.k, unit)
    operands = (problem.rows * block_m + problem.columns * block_n) * whole
    # To keep more sums than packed operands at hand is worth a cache that overflows.
    sums = problem.results * block_m * block_n
    more = kind["in_place"] or sums >= operands
    short = whole * element <= cpu.whole_bytes and more
    fits = operands * element <= (cpu.l2_bytes if short else cpu.l2_bytes // 2)
    if fits and not problem.lines:
        block_k = whole
    return cycles, CpuTiling(block_m, block_n, block_k, thread_m, thread_n, **kind)


def _half(extent: int, size: int, unit: int) -> int:
    """The size of equal parts of an extent, about half of `size`, in whole units."""
    return even(extent, size // 2 + unit - 1, unit)


def _chunk(problem: CpuProblem, columns: int, cpu: Cpu, kind: dict[str, int]) -> int:
    """Positions of a chunk of K, for blocks of so many columns."""
    if problem.lines:
        return problem.lines
    size = _chunk_bytes(problem)
    if kind["in_place"]:
        size = min(cpu.l2_bytes // 4 // (problem.columns * columns), 2 * cpu.stream_bytes)
        size *= cpu.chunks if problem.period == 1 else 1
    return even(problem.k, size // problem.element_bytes, _chunk_unit(problem, cpu))


def _chunk_bytes(problem: CpuProblem) -> int:
    """Of a row of an operand in one chunk of K: matrix tiles read all sums, and write them, in between."""
    return CHUNK_BYTES * (2 if problem.mma else 1)


def _chunk_unit(problem: CpuProblem, cpu: Cpu) -> int:
    """What a chunk of K is a multiple of: whole inner sweeps, and whole vectors if these are short."""
    if problem.lines:
        return problem.lines
    lanes = cpu.lanes(problem.element_bytes)
    both = lcm(problem.period, lanes)
    return (
        both if both <= min(problem.k, 2 * CHUNK_BYTES // problem.element_bytes) else problem.period
    )


def whole_lines(sweeps: Sequence[int]) -> int:
    """Positions of a chunk along the lines that sweeps go through, which no chunk leaves for another image.

    Several lines of an image, or a part of one, vectors if that can be.
    """
    *outer, line = sweeps
    lines = outer[-1] if outer else 1
    found = [n for n in range(1, line + 1) if line % n == 0]
    found += [line * n for n in range(2, lines + 1) if lines % n == 0]
    fit = [n for n in found if n <= LINE_POSITIONS and (n >= line or n % SIMD == 0)]
    return max(fit or [line], key=lambda n: (n % SIMD == 0, n))


def _fetch_cycles(problem: CpuProblem, in_place: int, cpu: Cpu) -> float:
    """Cycles to have a vector of rows where register tiles read it."""
    if in_place:
        return FETCH_CYCLES
    return _along_cycles(problem, cpu) if problem.rows_along else _copy_cycles(problem, problem.m)


def _along_cycles(problem: CpuProblem, cpu: Cpu) -> float:
    """Cycles to pack a vector of an operand that lies along K: squares are turned, pairs copied."""
    return PACK_CYCLES if problem.mma else cpu.along_cycles


def _pack_cycles(problem: CpuProblem, cpu: Cpu) -> float:
    """Cycles to pack a vector of columns."""
    if problem.lines and not problem.columns_plain:
        return TURN_ONE_BY_ONE_CYCLES
    if not problem.columns_along:
        return _copy_cycles(problem, problem.n)
    return max(_copy_cycles(problem, problem.k), _along_cycles(problem, cpu))


def _copy_cycles(problem: CpuProblem, length: int) -> int:
    """Cycles to pack a vector from several lines of an operand that have so many elements each."""
    return PACK_CYCLES if length * problem.element_bytes % CLASH_BYTES else CLASH_CYCLES


def tiling_cycles(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> float:
    """About how many cycles a position of K takes with a tiling that the contraction may have."""
    if tiling.pairs:
        alone = replace(tiling, block_k=tiling.block_k // 2, pairs=0, mma=0)
        pairs = problem.of_matrices if tiling.mma else problem.of_pairs
        return tiling_cycles(pairs, alone, cpu) / 2
    if tiling.dot:
        return dot_tiling_cycles(problem, tiling, cpu)
    return _cycles(problem.transposed if tiling.turned else problem, tiling, cpu)


def _cycles(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> float:
    """The same with register tiles; of a turned tiling, `problem` is the transposed one."""
    lanes = cpu.lanes(problem.element_bytes)
    rows, across = tiling.block_m, parts(problem.n, tiling.block_n)
    lines, cores = problem.batch * parts(problem.m, rows), blocks_worth(problem, cpu.cores)
    # Where lines of blocks end in a narrow one, that helps if each core has some of these.
    last = problem.n - (across - 1) * tiling.block_n
    last = parts(last, lanes) * lanes if across == 1 or lines >= cores else tiling.block_n
    widths = [*[tiling.block_n] * (across - 1), last]
    columns = sum(widths) / across
    returning = cpu.sums_cycles * tiling.thread_m if tiling.block_k < problem.k else 0

    def tile(vectors: int) -> float:
        begin_and_end = (TILE_CYCLES + returning * vectors) / tiling.block_k
        return begin_and_end + step_cycles(problem, tiling.thread_m, vectors, cpu, tiling.in_place)

    tiles = (strip_tiles(width, tiling.thread_n, lanes) for width in widths)
    strips = sum(count * tile(vectors) for strip in tiles for count, vectors in strip)
    multiplied = (rows // tiling.thread_m / across) * strips
    fetch, pack = _fetch_cycles(problem, tiling.in_place, cpu), _pack_cycles(problem, cpu)
    panels = sum(parts(width, tiling.thread_n) for width in widths) / across
    packed = problem.rows * rows * fetch + problem.columns * panels * tiling.thread_n * pack
    packed /= lanes
    if tiling.turned:
        packed += problem.results * rows * columns * TURN_CYCLES / problem.k / lanes
    return parts(lines * across, cores) * (multiplied + packed)


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

    def sizes(extent: int, most: int, unit: int) -> set[int]:
        fewest = parts(extent, most)
        counts = range(fewest, fewest + min(fewest, MORE_PARTS) + 1)
        return {parts(parts(extent, n), unit) * unit for n in counts}

    def cost(block: tuple[int, int]) -> tuple[float, int]:
        rows, columns = block
        chunk = _chunk(problem, columns, cpu, kind)
        return _cycles(
            problem, CpuTiling(rows, columns, chunk, *tile, **kind), cpu
        ), -rows * columns

    heights, widths = (
        sizes(*each) for each in zip((problem.m, problem.n), block, tile, strict=True)
    )
    rows, columns = min(product(sorted(heights), sorted(widths)), key=cost)
    return rows, columns, cost((rows, columns))[0]
