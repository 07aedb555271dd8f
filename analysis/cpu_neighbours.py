"""Which tilings a contraction on a CPU may have, and which are near one another.

A search starts from the model's choice (`cpu_tilings.py`) and goes from neighbour to neighbour; what is
measured decides, the model only says what to measure first.
"""

from __future__ import annotations

from dataclasses import replace

from ..dialects import amx
from ..machine.cpus import Cpu
from .cpu_dot_tilings import dot_tiles
from .cpu_tiles import CpuProblem, CpuTiling, matrix_tiles, parts, register_tiles
from .cpu_tilings import best_of_each_kind

KINDS = ("dot", "in_place", "turned", "pairs", "mma")
"""Choices that are no sizes, but 0 or 1."""

DISTANCES = (0, 128, 512)
"""Positions of K that what is not packed can be asked for early."""


def _tiles(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> list[tuple[int, int]]:
    """Rows of the tiles of this kind that fit the registers, and vectors or columns."""
    if tiling.dot:
        return dot_tiles(problem, cpu)
    return matrix_tiles(problem) if tiling.mma else register_tiles(problem, cpu)


def _up(size: int, unit: int) -> int:
    return max(parts(size, unit), 1) * unit


def _kind_misfit(problem: CpuProblem, tiling: CpuTiling) -> str | None:
    """Why a contraction can have no tiling of this kind; `problem` is the turned one if it is turned."""
    if tiling.dot and (tiling.turned or tiling.in_place):
        return "a dot tile is not turned, and reads all operands in place"
    if tiling.dot and not problem.along:
        return "a dot tile needs operands that are vectors along K"
    if tiling.in_place and (not problem.rows_stay or problem.pairs != tiling.pairs):
        return (
            "what is read in place must be elements of arrays, neighbours along K, or pairs of bf16"
        )
    if tiling.pairs and not problem.has_pairs(bool(tiling.mma)):
        return "rows of pairs are bf16, neighbours along K"
    if tiling.in_place and tiling.thread_m > problem.m:
        return f"{problem.m} rows in place are no register tile of {tiling.thread_m}"
    return None


def _matrix_misfit(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> str | None:
    """Why a contraction cannot be computed in matrix tiles; `problem` is the turned one if it is turned."""
    if not cpu.mma:
        return f"{cpu.name} here has no matrix tiles"
    if not tiling.pairs:
        return "matrix tiles multiply pairs"
    if tiling.in_place and not problem.rows_even:
        return f"rows of matrix tiles in place lie at even distances, {amx.DEPTH} positions at once"
    if tiling.ahead:
        return "matrix tiles ask for nothing ahead"
    if tiling.block_k % amx.DEPTH:
        return f"block_k = {tiling.block_k} is not a multiple of the {amx.DEPTH} of a matrix tile"
    return None


def _tile_misfit(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> str | None:
    """Why there is no such register tile, or none that blocks are made of."""
    lanes = cpu.lanes(problem.element_bytes)
    width = 1 if tiling.dot else lanes
    if tiling.thread_n % width:
        return f"thread_n = {tiling.thread_n} is not a multiple of the {lanes} elements of a vector"
    if (tiling.thread_m, tiling.thread_n // width) not in _tiles(problem, tiling, cpu):
        registers = amx.REGISTERS if tiling.mma else cpu.registers
        return (
            f"a tile of {tiling.thread_m} by {tiling.thread_n} does not fit {registers} registers"
        )
    if tiling.block_m % tiling.thread_m or tiling.block_n % tiling.thread_n:
        return (
            f"blocks of {tiling.block_m} by {tiling.block_n} are not made of register tiles of "
            f"{tiling.thread_m} by {tiling.thread_n}"
        )
    return None


def misfit(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> str | None:
    """Why a contraction cannot be tiled so; None if it can."""
    lanes = cpu.lanes(problem.element_bytes)
    if any(size < 1 for name, size in tiling.choices.items() if name not in (*KINDS, "ahead")):
        return "every size must be at least 1"
    if tiling.ahead < 0:
        return f"ahead = {tiling.ahead} lies behind"
    problem = problem.transposed if tiling.turned else problem
    if (reason := _kind_misfit(problem, tiling)) is not None:
        return reason
    if tiling.pairs and not cpu.pairs:
        return f"{cpu.name} here has no instruction for pairs of bf16"
    if tiling.mma and (reason := _matrix_misfit(problem, tiling, cpu)) is not None:
        return reason
    if (reason := _tile_misfit(problem, tiling, cpu)) is not None:
        return reason
    whole = problem.lines or problem.period
    if tiling.block_k % lanes and (whole == 1 or tiling.block_k % whole):
        windows = f" or the {whole} of whole windows" if whole > 1 else ""
        return f"block_k = {tiling.block_k} is not a multiple of the {lanes} elements of a vector{windows}"
    for name, extent in (("m", problem.m), ("n", problem.n), ("k", problem.k)):
        size = getattr(tiling, f"block_{name}")
        if size >= 2 * extent and size > lanes * 4:
            return f"block_{name} = {size} is twice the extent, {extent}, or more"
    if (taken := pack_bytes(problem, tiling)) > 2 * cpu.l2_bytes:
        return (
            f"the packs of a block take {taken} bytes, twice the L2 cache of {cpu.l2_bytes} or more"
        )
    return None


def pack_bytes(problem: CpuProblem, tiling: CpuTiling) -> int:
    """The bytes of a block's packed operands; where nothing is packed, of its sums."""
    if tiling.dot:
        return problem.results * tiling.block_m * tiling.block_n * problem.element_bytes
    rows = 0 if tiling.in_place else problem.rows * tiling.block_m
    operands = rows + problem.columns * tiling.block_n
    return operands * tiling.block_k * problem.element_bytes // (2 if tiling.pairs else 1)


def neighbours(problem: CpuProblem, tiling: CpuTiling, cpu: Cpu) -> list[CpuTiling]:
    """The legal tilings one step away: another register tile or kind, or a block of half or twice an axis."""
    whole = problem
    problem = problem.transposed if tiling.turned else problem
    lanes = cpu.lanes(problem.element_bytes)
    found: dict[CpuTiling, None] = {}
    width = 1 if tiling.dot else lanes
    for rows, vectors in _tiles(problem, tiling, cpu):
        near = abs(rows - tiling.thread_m) <= 4 and abs(vectors - tiling.thread_n // width) <= 1
        if not near or rows * vectors * 2 < tiling.thread_m * tiling.thread_n // width:
            continue
        thread_n = vectors * width
        blocks = (
            _up(min(tiling.block_m, problem.m), rows),
            _up(min(tiling.block_n, problem.n), thread_n),
        )
        found[
            replace(tiling, block_m=blocks[0], block_n=blocks[1], thread_m=rows, thread_n=thread_n)
        ] = None
    for _, best in best_of_each_kind(whole, cpu):
        if any(getattr(best, kind) != getattr(tiling, kind) for kind in KINDS):
            found[best] = None
    for axis, unit in (("m", tiling.thread_m), ("n", tiling.thread_n), ("k", lanes)):
        size, extent = getattr(tiling, f"block_{axis}"), getattr(problem, axis)
        for other in (size // 2, size * 2, extent):
            resized = min(_up(other, unit), _up(extent, unit))
            found[replace(tiling, **{f"block_{axis}": resized})] = None
    for ahead in DISTANCES if tiling.in_place or tiling.dot else ():
        found[replace(tiling, ahead=ahead)] = None
    found.pop(tiling, None)
    return [each for each in found if misfit(whole, each, cpu) is None]
