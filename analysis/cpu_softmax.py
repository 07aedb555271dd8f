"""How a softmax between two contractions is shared out on a CPU, and whether its scores go to memory.

A block has some rows of the result and walks along the scores of those rows a part at a time. The part's
columns of both contractions are packed; they fill an eighth of the L2 cache each, the block's rows of the
result another eighth at most. The larger a part, the rarer what was folded so far is scaled; the more rows,
the rarer a column is packed.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cpu_tilings import CpuProblem, CpuTiling, choose_register_tile
from .cpus import Cpu

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

    @property
    def score_bytes(self) -> int:
        """Bytes of all scores."""
        return self.batch * self.rows * self.columns * self.element_bytes


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def choose_softmax_tiling(problem: SoftmaxProblem, cpu: Cpu) -> CpuTiling:
    """The sizes of blocks, parts (`block_k`) and register tiles."""
    product = CpuProblem(
        batch=problem.batch,
        m=problem.rows,
        n=problem.width,
        k=problem.columns,
        results=1,
        rows=1,
        columns=1,
        element_bytes=problem.element_bytes,
    )
    thread_m, thread_n = choose_register_tile(product, cpu)
    eighth = cpu.l2_bytes // 8
    lines = max(problem.depth, problem.width) * problem.element_bytes
    part = min(MAX_PART, max(eighth // lines, MIN_PART), _up(problem.columns, thread_n))
    rows = min(MAX_ROWS, max(eighth // lines, thread_m), _up(problem.rows, thread_m))
    wanted = cpu.cores * BLOCKS_PER_CORE
    while problem.batch * -(-problem.rows // rows) < wanted and rows > 2 * thread_m:
        rows //= 2
    return CpuTiling(
        block_m=_up(rows, thread_m),
        block_n=_up(problem.width, thread_n),
        block_k=_up(part, thread_n),
        thread_m=thread_m,
        thread_n=thread_n,
    )
