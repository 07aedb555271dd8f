"""How a softmax between two contractions is shared out on a CPU, and whether its scores go to memory.

A block has some rows of the result and walks along the scores of those rows a part at a time. The part's
columns of both contractions are packed; they fill an eighth of the L2 cache each, the block's rows of the
result another eighth at most. The larger a part, the rarer what was folded so far is scaled; the more rows,
the rarer a column is packed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import lcm

from ..dialects import amx
from ..machine.cpus import Cpu
from .cpu_tiles import (
    CpuProblem,
    CpuTiling,
    register_tiles,
    step_cycles,
)
from .cpu_tilings import PACK_CYCLES

BLOCKS_PER_CORE = 2
"""Blocks that a core should have: under a causal mask some are done sooner."""

MAX_ROWS = 256
"""Rows of a block, at most."""

MAX_PART = 512
"""Scores of a row in a part, at most: with those of a register tile's other rows they fit the L1 cache."""

MIN_PART = 64


@dataclass(frozen=True)
class SoftmaxProblem:
    """Two contractions with a softmax between them: scores of `rows` by `columns`, each of `depth` products;
    results of `rows` by `width`."""

    batch: int
    rows: int
    columns: int
    depth: int
    width: int
    element_bytes: int
    pairs: bool = False
    """Whether rows, columns and values are widened from bf16."""

    @property
    def score_bytes(self) -> int:
        """Bytes of all scores."""
        return self.batch * self.rows * self.columns * self.element_bytes

    @property
    def bytes(self) -> int:
        """Bytes of rows, columns and values."""
        elements = self.rows * self.depth + self.columns * (self.depth + self.width)
        return self.batch * elements * self.element_bytes

    def product(self, mma: int) -> CpuProblem:
        """The contraction behind the softmax, as matrix tiles multiply it or not."""
        product = CpuProblem(
            batch=self.batch,
            m=self.rows,
            n=self.width,
            k=self.columns,
            results=1,
            rows=1,
            columns=1,
            element_bytes=self.element_bytes,
        )
        return product.of_matrices if mma else product


@dataclass(frozen=True)
class SoftmaxChoices:
    """The fields are the choices of a schedule."""

    block_m: int
    """Rows of a block."""
    block_k: int
    """Scores of a row in a part."""
    thread_m: int
    thread_n: int
    mma: int = 0
    """1 if matrix tiles multiply, the weights of columns rounded to bf16."""

    @property
    def choices(self) -> dict[str, int]:
        """Every choice."""
        return asdict(self)

    def tiling(self, problem: SoftmaxProblem) -> CpuTiling:
        """The schedule that says this: a block has all columns of the result."""
        block_n = _up(problem.width, self.thread_n)
        sizes = self.block_m, block_n, self.block_k, self.thread_m, self.thread_n
        return CpuTiling(*sizes, pairs=self.mma, mma=self.mma)


def _parts(extent: int, size: int) -> int:
    return -(-extent // size)


def _up(value: int, unit: int) -> int:
    return _parts(value, unit) * unit


def choose_softmax(problem: SoftmaxProblem, cpu: Cpu) -> SoftmaxChoices:
    """The sizes of blocks, parts and register tiles that the model takes."""
    lanes = cpu.lanes(problem.element_bytes)
    mma = int(problem.pairs and cpu.mma)
    rows, vectors = min(
        register_tiles(problem.product(mma), cpu),
        key=lambda tile: _products_cycles(problem, *tile, mma, cpu),
    )
    thread_m, thread_n = rows, vectors * lanes
    eighth = cpu.l2_bytes // 8
    lines = max(problem.depth, problem.width) * problem.element_bytes
    part = min(MAX_PART, max(eighth // lines, MIN_PART), _up(problem.columns, thread_n))
    rows = min(MAX_ROWS, max(eighth // lines, thread_m), _up(problem.rows, thread_m))
    wanted = cpu.cores * BLOCKS_PER_CORE
    while problem.batch * _parts(problem.rows, rows) < wanted and rows > 2 * thread_m:
        rows //= 2
    part = _up(part, lcm(thread_n, _unit(mma)))
    return SoftmaxChoices(_up(rows, thread_m), part, thread_m, thread_n, mma)


def _unit(mma: int) -> int:
    """What the number of scores in a part is a multiple of, whatever the register tile is."""
    return amx.DEPTH if mma else 1


def _products_cycles(problem: SoftmaxProblem, rows: int, vectors: int, mma: int, cpu: Cpu) -> float:
    """About how many cycles the contractions of all rows take with a register tile."""
    product = problem.product(mma)
    positions = 2 if mma else 1

    def covered(columns: int) -> float:
        whole, rest = divmod(_parts(columns, cpu.lanes(problem.element_bytes)), vectors)
        last = step_cycles(product, rows, rest, cpu) if rest else 0
        return (whole * step_cycles(product, rows, vectors, cpu) + last) / positions

    scores, means = covered(problem.columns), covered(problem.width)
    return _parts(problem.rows, rows) * (scores * problem.depth + means * problem.columns)


def misfit(problem: SoftmaxProblem, choices: SoftmaxChoices, cpu: Cpu) -> str | None:
    """Why a softmax cannot be shared out so; None if it can."""
    lanes = cpu.lanes(problem.element_bytes)
    block_m, block_k, thread_m, thread_n, mma = choices.choices.values()
    if mma and not (cpu.mma and problem.pairs):
        return "matrix tiles multiply bf16, on CPUs that have them"
    if min(block_m, block_k, thread_m, thread_n) < 1:
        return "every size must be at least 1"
    if thread_n % lanes:
        return f"thread_n = {thread_n} is not a multiple of the {lanes} elements of a vector"
    if (thread_m, thread_n // lanes) not in register_tiles(problem.product(mma), cpu):
        return f"a tile of {thread_m} by {thread_n} does not fit {cpu.registers} registers"
    if block_m % thread_m or block_k % thread_n:
        return (
            f"blocks of {block_m} rows and parts of {block_k} scores are not made of register tiles of "
            f"{thread_m} by {thread_n}"
        )
    if block_k % _unit(mma):
        return f"block_k = {block_k} is not a multiple of the {amx.DEPTH} scores of a matrix tile"
    for name, size, extent in (
        ("block_m", block_m, _up(problem.rows, thread_m)),
        ("block_k", block_k, _up(problem.columns, lcm(thread_n, _unit(mma)))),
    ):
        if size > extent:
            return f"{name} = {size} is more than there are, {extent}"
    return None


def neighbours(problem: SoftmaxProblem, choices: SoftmaxChoices, cpu: Cpu) -> list[SoftmaxChoices]:
    """The legal choices one step away: another register tile, or half or twice the rows or scores."""
    lanes = cpu.lanes(problem.element_bytes)
    found: dict[SoftmaxChoices, None] = {}

    def add(block_m: int, block_k: int, thread_m: int, thread_n: int) -> None:
        unit = lcm(thread_n, _unit(mma))
        rows, part = _up(max(block_m, 1), thread_m), _up(max(block_k, 1), unit)
        rows, part = min(rows, _up(problem.rows, thread_m)), min(part, _up(problem.columns, unit))
        found[SoftmaxChoices(rows, part, thread_m, thread_n, mma)] = None

    block_m, block_k, thread_m, thread_n, mma = choices.choices.values()
    for rows, vectors in register_tiles(problem.product(mma), cpu):
        near = abs(rows - thread_m) <= 4 and abs(vectors * lanes - thread_n) <= 2 * lanes
        if near and 2 * rows * vectors * lanes >= thread_m * thread_n:
            add(block_m, block_k, rows, vectors * lanes)
    for rows, part in (
        (block_m // 2, block_k),
        (block_m * 2, block_k),
        (block_m, block_k // 2),
        (block_m, block_k * 2),
    ):
        add(rows, part, thread_m, thread_n)
    found.pop(choices, None)
    return [each for each in found if misfit(problem, each, cpu) is None]


def estimated_cycles(
    problem: SoftmaxProblem, choices: SoftmaxChoices, cpu: Cpu, threads: int
) -> float:
    """About how many cycles the contractions take; what is masked is not known here."""
    lanes = cpu.lanes(problem.element_bytes)
    block = replace(problem, rows=min(choices.block_m, problem.rows))
    vectors = choices.thread_n // lanes
    products = _products_cycles(block, choices.thread_m, vectors, choices.mma, cpu)
    rows = _parts(block.rows, choices.thread_m)
    parts = _parts(problem.columns, choices.block_k)
    carried = parts * choices.thread_m * problem.width / lanes
    packed = problem.columns * (problem.depth + problem.width) * PACK_CYCLES / lanes
    blocks = problem.batch * _parts(problem.rows, choices.block_m)
    return _parts(blocks, threads) * (products + rows * 2 * carried + packed)
