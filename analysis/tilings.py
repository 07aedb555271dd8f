"""How a contraction can be shared out between blocks and threads: which ways are legal, what each costs.

The model: a multiprocessor does 128 multiply-adds in a cycle, and one load of a warp from shared memory. A
thread that computes f by g elements loads f + g for f * g multiply-adds. The tiling whose waves of blocks
take the fewest cycles is the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from math import prod

from ..dialects.kernel import MAX_STATIC_SHARED_BYTES
from ..dialects.loop import LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.tile import MAX_THREADS, LaunchOp
from .contraction import Contraction, axes_of
from .cost import trips
from .targets import Target

TILES = ((8, 8), (8, 4), (4, 8), (4, 4), (4, 2), (2, 4), (2, 2), (1, 4), (4, 1), (1, 2), (1, 1))
"""Rows and columns that one thread may compute; more than 64 sums spill."""

SHAPES = ((16, 16), (8, 32), (32, 8), (8, 16), (4, 32), (8, 8))
"""Rows and columns of threads in a block."""

BLOCK_K = 16
"""Positions of K in the scratchpad: with 128 rows and 128 columns, 16 KB of f32."""

FMA_PER_CYCLE = 128
LANES_PER_CYCLE = 32


@dataclass(frozen=True)
class Tiling:
    """The parts that a contraction comes in; the fields are the choices of a schedule."""

    block_m: int
    block_n: int
    block_k: int
    thread_m: int
    thread_n: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block_m // self.thread_m * (self.block_n // self.thread_n)

    @property
    def choices(self) -> dict[str, int]:
        """The choices of a schedule that say this."""
        return asdict(self)

    def neighbours(self) -> list[Tiling]:
        """The tilings with one choice halved or doubled; not all of them fit."""
        changes = [(key, v // 2) for key, v in self.choices.items() if v % 2 == 0]
        changes += [(key, v * 2) for key, v in self.choices.items()]
        return [Tiling(**self.choices | {key: value}) for key, value in changes]

    def misfit(self) -> str | None:
        """Why no kernel can have this tiling, or None."""
        for block, thread in (("block_m", "thread_m"), ("block_n", "thread_n")):
            whole, part = self.choices[block], self.choices[thread]
            if whole % part:
                return f"{thread} = {part} does not divide {block} = {whole}"
        if self.threads > MAX_THREADS:
            return (
                f"blocks of {self.block_m} by {self.block_n} with threads of {self.thread_m} by "
                f"{self.thread_n} have {self.threads} threads; a block has at most {MAX_THREADS}"
            )
        return None


@dataclass(frozen=True)
class Problem:
    """What the model knows of a contraction."""

    batch: int
    m: int
    n: int
    k: int
    row_bytes: int
    """Bytes that one row of a slab has for each position of K, of all operands that depend on M."""
    column_bytes: int
    """The same of the operands that depend on N."""

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.batch * self.m * self.n * self.k

    def slab_bytes(self, tiling: Tiling) -> int:
        """Shared memory of a block."""
        across = tiling.block_m * self.row_bytes + tiling.block_n * self.column_bytes
        return across * tiling.block_k

    def illegal(self, tiling: Tiling) -> str | None:
        """Why this contraction cannot have a tiling, or None."""
        if (misfit := tiling.misfit()) is not None:
            return misfit
        size = self.slab_bytes(tiling)
        if size > MAX_STATIC_SHARED_BYTES:
            return f"slabs of {size} bytes exceed the {MAX_STATIC_SHARED_BYTES} of a block"
        return None

    def cycles(self, tiling: Tiling, target: Target) -> float:
        """What the model says the contraction takes, in cycles of a multiprocessor."""
        rows, columns = tiling.block_m, tiling.block_n
        blocks = self.batch * -(-self.m // rows) * -(-self.n // columns)
        count, f, g = tiling.threads, tiling.thread_m, tiling.thread_n
        per_k = max(count * f * g / FMA_PER_CYCLE, count * (f + g) / LANES_PER_CYCLE)
        copies = (rows + columns) / LANES_PER_CYCLE
        waves = -(-blocks // target.processors)
        return waves * self.k * (per_k + copies)


def problem_of(contraction: Contraction, launch: LaunchOp) -> Problem:
    """The sizes of a contraction; dynamic ones are what they are hinted to be."""
    extents = [trips(axis.extent.data) for axis in launch.axes]
    batch = prod(e for i, e in enumerate(extents) if i not in (contraction.m, contraction.n))
    operands = {
        (load.memref, load.map, tuple(load.indices)): load
        for load in contraction.sweep.body.ops
        if isinstance(load, LoadOp)
    }

    def width(axis: int) -> int:
        loads = (load for load in operands.values() if axis in axes_of(load, launch))
        return sum(storage_bytes(load.result.type) for load in loads)

    return Problem(
        batch,
        extents[contraction.m],
        extents[contraction.n],
        trips(contraction.sweep.extent.data),
        width(contraction.m),
        width(contraction.n),
    )


def candidates(asked: Mapping[str, int]) -> Iterable[Tiling]:
    """The tilings that the model chooses from, each with what is asked for."""
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
                asked.get("block_k", BLOCK_K),
                *tile,
            )


def misfit(asked: Mapping[str, int]) -> str | None:
    """Why no kernel at all can have what is asked for, or None."""
    reasons = [tiling.misfit() for tiling in candidates(asked)]
    return None if None in reasons else reasons[0]


def choose(problem: Problem, asked: Mapping[str, int], target: Target) -> Tiling | str:
    """The legal tiling that the model likes best; of equals the one with the larger tile.

    Or why this contraction can have none with what is asked for.
    """
    listed = list(candidates(asked))
    reasons = {tiling: problem.illegal(tiling) for tiling in listed}
    legal = [tiling for tiling in listed if reasons[tiling] is None]
    if not legal:
        return next(reason for reason in reasons.values() if reason is not None)
    return min(legal, key=lambda tiling: problem.cycles(tiling, target))
