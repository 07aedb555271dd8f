"""Which tiling a contraction gets: those that are considered, and the one that the model says is fastest.

Which are legal says `tilings.py`, what they cost `tiling_cost.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import lcm
from typing import Any

from ..dialects.kernel import WARP
from ..dialects.schedule import Transport
from ..dialects.wgmma import MIN_COLUMNS, ROW_BYTES, WARPGROUP
from ..machine.matrix_instructions import HALVES, WGMMA, MatrixInstruction
from ..machine.targets import Target, get_target
from .tiling_cost import cycles as cycles_of
from .tilings import HALF_BYTES, WARPGROUPS, Problem, Tiling

TILES = ((8, 8), (8, 4), (4, 8), (4, 4), (4, 2), (2, 4), (2, 2), (1, 4), (4, 1), (1, 2), (1, 1))
"""Rows and columns that one thread may compute."""

SHAPES = ((16, 16), (8, 32), (32, 8), (8, 16), (4, 32), (8, 8))
"""Rows and columns of threads in a block."""

BLOCK_K = 16
"""Positions of K in the scratchpad: with 128 rows and 128 columns, 16 KB of f32."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Parts of K that blocks may share."""

MOST_BLOCKS = {0: 16, 1: 16, WARPGROUPS: 4}
"""Blocks of a multiprocessor beyond which K is not split any further, by who multiplies."""

SPLIT_GAIN = 1 / 16
"""The part of the cycles that a split must save: the model is no better than that."""

ALIKE = 1 / 16
"""Tilings whose cycles differ by less the model cannot tell apart."""

BOX_DEPTHS = (16, 32)
"""The same where the copy engine fills it."""

BOX_STAGES = {0: (2,), 1: (2, 4)}
"""Buffers of each slab that the copy engine fills, by who multiplies."""

MMA_TILES = ((2, 4), (2, 8), (2, 16), (2, 32), (4, 4), (4, 8), (4, 16), (4, 32), (8, 8), (8, 16))
"""Rows and columns of one thread whose warp multiplies matrices."""

MMA_WARPS = (4, 8, 2, 1)
"""Warps of such a block, one below the other."""

MMA_ROW_BYTES = (64, 128)
"""Bytes of a row of its slabs. Rows of 16 tf32 need no padding, for two of them fill all banks; those of 32
wait for memory half as often."""

WGMMA_BLOCKS = (
    *((128, columns, 2) for columns in (256, 224, 192, 160, 128, 112)),
    *((256, 192, 4), (256, 128, 2), (192, 192, 3)),
    *((128, columns, 1) for columns in (128, 96, 64)),
    *((64, columns, 1) for columns in (256, 192, 128, 112, 96, 64, 32, 16, 8)),
)
"""Rows and columns of blocks whose warpgroups multiply slabs, and how many of these there are."""

WGMMA_HEIGHTS = dict.fromkeys((rows, groups) for rows, _, groups in WGMMA_BLOCKS)
"""Rows of such blocks, and their warpgroups, that also come with as many columns as fill the machine."""

ROUNDS = (1, 2, 3, 4)
"""Blocks that each multiprocessor then computes, one after the other."""

CLUSTERS = ("cluster_m", "cluster_n")
"""Along which axes such blocks may share slabs. That is asked for, or found to be faster by a tuner: on an
H200 few products that were measured gained by it, and most lost a percent."""

WGMMA_STAGES = (8, 4, 3)
"""Buffers of each of their slabs, as far as there is room: a product is seldom late for what lies there."""

ANY = Problem(1, 4096, 4096, 4096, 1, 2, 2, instruction=HALVES)
"""A problem that can have any tiling that one can have."""

MOST_LINES = 128
"""Columns, at most, of a block that has whole lines of an image."""


def candidates(asked: Mapping[str, Any], problem: Problem, target: Target) -> Iterable[Tiling]:
    """The tilings that the model chooses from, each with what is asked for; how to split K comes later.

    How many positions of K there are in the scratchpad is as near as can be to what is wanted.
    """
    if asked.get("mma") != WARPGROUPS:
        alone = {choice: asked[choice] for choice in CLUSTERS if choice in asked}
        for tiling in _without_warpgroups(asked, problem):
            yield replace(tiling, **alone) if alone else tiling
    by_engine = asked.get("transport", Transport.TMA) == Transport.TMA
    if asked.get("mma") in (None, WARPGROUPS) and by_engine:
        yield from _wgmma_candidates(asked, problem, target)


def _without_warpgroups(asked: Mapping[str, Any], problem: Problem) -> Iterable[Tiling]:
    """Those whose threads multiply, or whose warps do."""
    if not asked.get("mma"):
        yield from _filled(_fma_candidates(asked, problem.depth(BLOCK_K)), asked, BOX_DEPTHS)
    if asked.get("mma") != 0:
        row = problem.instruction or HALVES
        wanted = [max(size // row.element_bytes, row.depth) for size in MMA_ROW_BYTES]
        depths = dict.fromkeys(problem.depth(depth, row.depth) for depth in wanted)
        yield from _filled(_mma_candidates(asked, row, depths, problem.line), asked, ())


def _filled(
    tilings: Iterable[Tiling], asked: Mapping[str, Any], depths: Iterable[int]
) -> Iterable[Tiling]:
    """Tilings whose slabs threads fill, and those that the copy engine fills, with these depths too."""
    transport = asked.get("transport")
    for tiling in tilings:
        if transport != Transport.TMA:
            yield tiling
        if transport in (None, Transport.TMA):
            deeper = () if "block_k" in asked else depths
            for depth in dict.fromkeys([tiling.block_k, *deeper]):
                for stages in (asked["stages"],) if "stages" in asked else BOX_STAGES[tiling.mma]:
                    yield replace(tiling, block_k=depth, stages=stages)


def _fma_candidates(asked: Mapping[str, Any], depth: int) -> Iterable[Tiling]:
    """Those whose threads multiply."""
    tiles: Iterable[tuple[int, int]] = TILES
    if "thread_m" in asked or "thread_n" in asked:
        sizes = (8, 4, 2, 1)
        rows, columns = (
            (asked[each],) if each in asked else sizes for each in ("thread_m", "thread_n")
        )
        tiles = product(rows, columns)
    for tile in tiles:
        shapes: Iterable[tuple[int, int]] = SHAPES
        if "block_m" in asked or "block_n" in asked:
            counts = (32, 16, 8, 4, 2, 1)
            blocks = (asked.get("block_m"), asked.get("block_n"))
            rows, columns = (
                counts if block is None else (max(block // part, 1),)
                for block, part in zip(blocks, tile, strict=True)
            )
            shapes = product(rows, columns)
        for shape in shapes:
            yield Tiling(
                asked.get("block_m", shape[0] * tile[0]),
                asked.get("block_n", shape[1] * tile[1]),
                asked.get("block_k", depth),
                *tile,
            )


def _mma_candidates(
    asked: Mapping[str, Any], row: MatrixInstruction, depths: Iterable[int], line: int
) -> Iterable[Tiling]:
    """Those whose warps multiply matrices by an instruction."""
    lanes = row.lanes
    depths = (asked["block_k"],) if "block_k" in asked else depths
    whole = lcm(line, row.shape[1]) // lanes
    widths = {whole * n for n in (1, 2) if whole * n <= MOST_LINES // lanes}
    tiles = dict.fromkeys([*MMA_TILES, *product((2, 4, 8), sorted(widths) if line > 1 else ())])
    for (rows, columns), warps, depth in product(tiles, MMA_WARPS, depths):
        thread_m = asked.get("thread_m", rows)
        thread_n = asked.get("thread_n", max(asked.get("block_n", lanes * columns) // lanes, 1))
        yield Tiling(
            asked.get("block_m", warps * WARP // lanes * thread_m),
            asked.get("block_n", lanes * thread_n),
            depth,
            thread_m,
            thread_n,
            mma=1,
        )


def _wgmma_candidates(
    asked: Mapping[str, Any], problem: Problem, target: Target
) -> Iterable[Tiling]:
    """Those whose warpgroups multiply slabs."""
    filling = [
        (rows, columns, groups)
        for rows, groups in WGMMA_HEIGHTS
        for columns in _even_columns(problem, target, rows)
    ]
    for rows, columns, groups in dict.fromkeys([*WGMMA_BLOCKS, *filling]):
        threads = groups * WARPGROUP
        block_m, block_n = asked.get("block_m", rows), asked.get("block_n", columns)
        tiling = Tiling(
            block_m,
            block_n,
            asked.get("block_k", ROW_BYTES // HALF_BYTES),
            asked.get("thread_m", max(block_m * WGMMA.lanes // threads, 1)),
            asked.get("thread_n", max(block_n // WGMMA.lanes, 1)),
            mma=WARPGROUPS,
            **{choice: asked[choice] for choice in CLUSTERS if choice in asked},
        )
        for stages in (
            (asked["stages"],) if "stages" in asked else _buffers(tiling, problem, target)
        ):
            yield replace(tiling, stages=stages)


def _even_columns(problem: Problem, target: Target, rows: int) -> Iterable[int]:
    """Columns with which blocks of so many rows are about as many as there is room for in some rounds."""
    high = problem.batch * -(-problem.m // rows)
    for count in ROUNDS:
        if wide := count * target.processors // high:
            yield -(-problem.n // (wide * MIN_COLUMNS)) * MIN_COLUMNS


def _buffers(tiling: Tiling, problem: Problem, target: Target) -> Iterable[int]:
    """How many buffers slabs may have: the most that have room, and fewer that leave room to others."""
    room = target.block_shared_bytes // max(problem.slab_bytes(tiling), 1)
    return dict.fromkeys(max(min(count, room), 1) for count in WGMMA_STAGES)


def misfit(asked: Mapping[str, Any]) -> str | None:
    """Why no kernel at all can have what is asked for, or None."""
    reasons = [tiling.misfit(HALVES) for tiling in candidates(asked, ANY, get_target("sm_90a"))]
    return None if None in reasons else reasons[0]


def choose(problem: Problem, asked: Mapping[str, Any], target: Target) -> Tiling | str:
    """The legal tiling that takes the fewest cycles; of those alike, one that keeps more of the machine busy.

    Those that fill no multiprocessor's registers come first. K is split where that saves enough.
    Or why this contraction can have none with what is asked for.
    """
    if asked.get("transport") == Transport.TMA and not (problem.boxes and target.has_copy_engine):
        asked = {choice: value for choice, value in asked.items() if choice != "transport"}
    if "stages" in asked:
        problem = replace(problem, stages=asked["stages"])
    proposed = candidates(asked, problem, target)
    reasons = {tiling: problem.illegal(tiling, target) for tiling in proposed}
    legal = [tiling for tiling, reason in reasons.items() if reason is None]
    if not legal:
        return next(reason for reason in reasons.values() if reason is not None)
    roomy = [tiling for tiling in legal if not problem.is_crowded(tiling, target)]
    splits = dict.fromkeys(
        t for each in roomy or legal for t in _splits(each, problem, asked, target)
    )
    if not splits:
        return f"K of {problem.k} has no {asked['split_k']} parts that are alike, as those of windows must be"
    cycles = {tiling: cycles_of(problem, tiling, target) for tiling in splits}
    best = _busiest(problem, cycles, target)
    whole = {tiling: cost for tiling, cost in cycles.items() if tiling.split_k == 1}
    if best.split_k == 1 or not whole:
        return best
    unsplit = _busiest(problem, whole, target)
    return best if cycles[best] < (1 - SPLIT_GAIN) * cycles[unsplit] else unsplit


def _splits(
    tiling: Tiling, problem: Problem, asked: Mapping[str, Any], target: Target
) -> list[Tiling]:
    """A tiling with K in one part, and in as many as make no more blocks than have something to do."""
    if "split_k" in asked:
        return problem.splits(tiling, (asked["split_k"],))
    most = MOST_BLOCKS[tiling.mma] * target.processors // problem.blocks(tiling)
    return problem.splits(tiling, [n for n in SPLITS if n <= max(most, 1)])


def _busiest(problem: Problem, cycles: Mapping[Tiling, float], target: Target) -> Tiling:
    """Of the tilings with about the fewest cycles, the fastest that gives most multiprocessors a block."""
    most = (1 + ALIKE) * min(cycles.values())
    alike = [tiling for tiling, cost in cycles.items() if cost <= most]

    def busy(tiling: Tiling) -> int:
        blocks = min(problem.blocks(tiling), target.processors)
        enough = tiling.mma == WARPGROUPS and blocks >= (1 - ALIKE) * target.processors
        return target.processors if enough else blocks

    return max(alike, key=lambda t: (busy(t), -cycles[t]))
