"""`online-softmax`: scores that only a softmax between two contractions needs stay in the cache.

    %s = loop.kernel ... { %q[%i, %d] * %k[%j, %d], summed over %d }
    %m = loop.kernel ... { the largest %x = f(%s[%i, %j]) of each row %i }
    %p = loop.kernel ... { exp(%x - %m) / (its sum over %j) }
    %y = loop.kernel ... { %p[%i, %j] * %v[%j, %d], summed over %j }
becomes
    %y = loop.kernel ... {
      tile.launch (%i_block = 16 : block, %i = 256 : thread, %d = 64 : thread) {
        %q_packed = tile.pack ...
        %m, %l, %mean = loop.for %j_block = 0 to 8 reduce(max, weight, mean) -> f32, f32, f32 {
          %k_packed = tile.pack ...      %v_packed = tile.pack ...
          %0, %1, %2 = loop.for %j = 0 to 512 reduce(max, weight, mean) -> f32, f32, f32 {
            %s = loop.for ... reduce(add) ...           // one score
            loop.yield f(%s), 1, %v : f32, f32, f32
          } {chunk}
          loop.yield %0, %1, %2
        }
        loop.store %mean, %y[...]

It is found by algebra, not by the shape of the code: the factor that a contraction multiplies by, read as a
term over inputs through the kernels that compute it, is exp(x_j - max x) / sum exp(x_j - max x) over all j
that the contraction sums over. Then its result is a mean of v_j with the weights exp(x_j): a reduction with
an associative combiner. x is anything that is computed from one score: scaled, masked, biased.

Where no two rows share a column, as in attention of one query, nothing is packed: a block computes all scores
of a row, and what follows from them (`row_softmax.py`). Otherwise very few rows or columns stay as they are.
On a GPU it is done where warps can multiply bf16 or f16 (`warp_softmax.py`). `analysis/cpu_softmax.py` has
the model that decides how the rest is shared out; choices may be asked for as options:
`online-softmax{block_m=64}`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of, trips
from ...analysis.cpu_softmax import (
    BLOCKS_PER_CORE,
    SoftmaxChoices,
    SoftmaxProblem,
    choose_softmax,
    misfit,
)
from ...analysis.launches import open_kernels
from ...analysis.softmax import Softmax, find_softmax
from ...analysis.softmax_factors import Factors, find_factors
from ...analysis.tilings import ASYNC_BUFFERS, HALF_BYTES
from ...dialects.loop import KernelOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import LaunchOp
from ...dialects.wgmma import GROUP_ROWS
from ...errors import UsageError
from ...machine.cpus import CPUS, Cpu
from ...machine.targets import BLOCK_RESERVE, Target, get_cpu, get_target
from ..asked_choices import asked_choices
from ..decisions import record
from ..schedule.primitive import check_word
from .blocked_softmax import build_kernel, narrow
from .legacy import any_cpu
from .row_softmax import build_rows
from .softmax_products import WarpgroupProducts, WarpProducts, fits_warpgroups
from .warp_softmax import build_warps

MIN_ROWS = 4
"""Rows that must share a packed column, else packing costs more than it saves."""

MAX_WIDTH = 512
"""Products of a score and columns of the result, at most: a block has all of them, as it computes a score
once, and at once."""

ONE_ROW = 1
"""Rows of a block on a CPU where no two rows share a column."""

WARP_ROWS = (128, 64, 32, 16)
"""Rows of a block on a GPU, 16 of each warp."""

WARP_COLUMNS = 64
"""Scores of a row that a GPU's block computes at once."""

WARPGROUP_BLOCKS = 3
"""Blocks of a warpgroup that are to have room on a multiprocessor: one multiplies, others exponentiate."""

MIN_COLUMNS = 16
"""Scores of a row, at least: of fewer, most of a vector is left over."""


def find_problem(kernel: KernelOp, cpu: Cpu) -> str | tuple[Softmax, SoftmaxProblem]:
    """Why a kernel is not shared out by the model, or the softmax that is, and what the model needs to know
    of it."""
    merged = _find(kernel)
    if isinstance(merged, str) or merged[1].rows >= MIN_ROWS:
        return merged
    return f"{merged[1].rows} by {merged[1].columns} scores are too few to be shared out"


def _find(kernel: KernelOp) -> str | tuple[Softmax, SoftmaxProblem]:
    """Why nothing is merged into a kernel, or the softmax that may be."""
    launch = kernel.body.block.first_op
    if not isinstance(launch, LaunchOp) or launch.next_op is not None:
        return "it is not one launch"
    found = find_softmax(kernel, launch)
    if isinstance(found, str):
        return found
    problem = problem_of(found)
    if problem.columns < MIN_COLUMNS:
        return f"{problem.rows} by {problem.columns} scores are too few to be shared out"
    if max(problem.depth, problem.width) > MAX_WIDTH:
        return f"rows of {problem.depth} and {problem.width} elements are too long for a block"
    return found, problem


def _misfit_of_row(problem: SoftmaxProblem, cpu: Cpu) -> str | None:
    """Why a CPU does not compute a row from its scores on in a block; None if it does."""
    if problem.batch < BLOCKS_PER_CORE * cpu.cores:
        return f"{problem.batch} rows are too few for {cpu.cores} cores"
    if problem.columns * problem.element_bytes > cpu.l2_bytes // 8:
        return f"{problem.columns} scores of a row do not stay in the cache"
    return None


Merged = tuple[str, tuple[str, ...], "OnlineSoftmaxPass"]
"""What was done, with which other kernels, and the step that does it again."""


@dataclass(frozen=True)
class OnlineSoftmaxPass(ModulePass):
    """Needs kernels that are one `tile.launch` each; merges those of a softmax between contractions."""

    name = "online-softmax"

    target: str = "sm_90a"
    block_m: int | None = None
    block_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None
    mma: int | None = None
    vectors: str = ""
    """The vectors of a CPU's register tile; with them, nothing is decided for the target"""
    rows: int | None = None
    """Rows of a GPU's block, or 1 where a CPU computes each row alone; with it, nothing is decided either"""
    warpgroups: bool = False
    """Whether warpgroups of a GPU multiply then, not warps."""
    buffers: int | None = None
    """Buffers of the slabs of a chunk then, if that is not left to others."""

    def __post_init__(self):
        if self.rows not in (None, *WARP_ROWS, ONE_ROW):
            listed = ", ".join(map(str, (*WARP_ROWS, ONE_ROW)))
            raise UsageError(f"rows is one of {listed}, not {self.rows}")
        if self.vectors:
            check_word("vectors", self.vectors, tuple(CPUS))
            if None in (self.block_m, self.block_k, self.thread_m, self.thread_n):
                raise UsageError("with vectors, block_m, block_k, thread_m and thread_n are given")
        if self.warpgroups and self.rows != GROUP_ROWS:
            raise UsageError(f"a warpgroup has {GROUP_ROWS} rows, not {self.rows}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        with hints_of(op):
            for kernel in open_kernels(op):
                if kernel.parent is None:
                    continue
                name = kernel.sym_name.data
                on_cpu = bool(self.vectors) or self.rows == ONE_ROW
                in_warps = not on_cpu and (target.is_gpu or self.rows is not None)
                reason = self._in_warps(kernel, target) if in_warps else self._apply(kernel)
                if isinstance(reason, tuple):
                    told, others, step = reason
                    record(self.name, name, True, told, kernel, others, [step])
                else:
                    record(self.name, name, False, reason, kernel)

    def _apply(self, kernel: KernelOp) -> str | Merged:
        """Merge what a kernel multiplies by into it; gives why not, or what was done."""
        merged = _find(kernel)
        if isinstance(merged, tuple) and merged[1].rows == 1:
            return self._one_row(*merged)
        if self.rows == ONE_ROW:
            return merged if isinstance(merged, str) else "its rows share columns"
        cpu = any_cpu(self.vectors) if self.vectors else get_cpu(self.target)
        merged = find_problem(kernel, cpu)
        if isinstance(merged, str):
            return merged
        found, problem = merged
        best, why = self._given, ""
        if best is None:
            fits = partial(misfit, problem, cpu=cpu)
            name, model = kernel.sym_name.data, choose_softmax(problem, cpu)
            best, why = asked_choices(self, name, model, fits, kernel)
        elif (reason := misfit(problem, best, cpu)) is not None:
            return reason
        tiling = best.tiling(problem)
        build_kernel(
            found,
            ScheduleAttr(m=0, n=0, **tiling.written, width=8 * cpu.vector_bytes, vectors=cpu.name),
        )
        parts = -(-problem.columns // best.block_k)
        said = f"{problem.score_bytes} bytes of scores are computed in {parts} parts of a row"
        said += f"{' by matrix tiles' if best.mma else ''}{why}"
        step = replace(OnlineSoftmaxPass(), **(best.choices | {"mma": best.mma or None}), vectors=cpu.name)
        return self._replace(found, said, step)

    @property
    def _given(self) -> SoftmaxChoices | None:
        """The choices of a CPU's step."""
        sizes = self.block_m, self.block_k, self.thread_m, self.thread_n
        if not self.vectors or None in sizes:
            return None
        return SoftmaxChoices(*(size for size in sizes if size is not None), mma=self.mma or 0)

    def _in_warps(self, kernel: KernelOp, target: Target) -> str | Merged:
        """Merge what a kernel multiplies by into it on a GPU, whose warps multiply matrices."""
        launch = kernel.body.block.first_op
        if not isinstance(launch, LaunchOp) or launch.next_op is not None:
            return "it is not one launch"
        found = find_softmax(kernel, launch)
        if isinstance(found, str):
            return found
        factors = find_factors(found, WARP_COLUMNS)
        if isinstance(factors, str):
            return factors
        step = self if self.rows is not None else _choose_in_warps(found, factors, target)
        if step.warpgroups and not fits_warpgroups(found, factors):
            return "its keys and values are no slabs that warpgroups multiply"
        assert step.rows is not None
        products = WarpgroupProducts if step.warpgroups else WarpProducts
        build_warps(found, factors, step.rows, WARP_COLUMNS, products, step.buffers)
        said = f"blocks of {step.rows} rows have {WARP_COLUMNS} scores of each in registers"
        return self._replace(found, f"{said}; {products.said} multiply", step)

    def _one_row(self, found: Softmax, problem: SoftmaxProblem) -> str | Merged:
        """Merge where no two rows share a column."""
        if not isinstance(found.columns, int):
            return "scores of one row are dynamic in number"
        reason = None if self.rows == ONE_ROW else _misfit_of_row(problem, get_cpu(self.target))
        if reason is not None:
            return reason
        build_rows(found)
        said = f"a block computes {problem.columns} scores of a row at once"
        return self._replace(found, said, OnlineSoftmaxPass(rows=ONE_ROW))

    def _replace(self, found: Softmax, said: str, step: OnlineSoftmaxPass) -> Merged:
        """Erase the kernels that one stands for; gives what was done, with which others, by which step."""
        others = tuple(each.sym_name.data for each in found.producers)
        for each in (found.kernel, *reversed(found.producers)):
            each.detach()
            each.erase()
        return said, others, step


def _choose_in_warps(found: Softmax, factors: Factors, target: Target) -> OnlineSoftmaxPass:
    """The step that merges a softmax on a GPU."""
    can = bool(target.wgmma_per_cycle) and fits_warpgroups(found, factors)
    if trips(found.rows) > WARP_ROWS[-1] and can:
        buffers = warpgroup_buffers(found, target)
        return OnlineSoftmaxPass(rows=GROUP_ROWS, warpgroups=True, buffers=buffers)
    return OnlineSoftmaxPass(rows=warp_rows(found, target))


def warp_rows(found: Softmax, target: Target) -> int:
    """The rows of a block on a GPU: as many as leave each multiprocessor one, if there are so many."""
    rows = trips(found.rows)
    for each in WARP_ROWS[:-1]:
        if rows >= each and found.batch * -(-rows // each) >= target.processors:
            return each
    return WARP_ROWS[-1]


def warpgroup_buffers(found: Softmax, target: Target) -> int:
    """Buffers of the slabs of a chunk: two, or as many as leave room for enough blocks."""
    size = WARP_COLUMNS * (found.depth + found.width) * HALF_BYTES
    share = target.shared_bytes // WARPGROUP_BLOCKS - BLOCK_RESERVE
    return max(2, min(ASYNC_BUFFERS, share // size))


def problem_of(found: Softmax) -> SoftmaxProblem:
    """What the model needs to know."""
    return SoftmaxProblem(
        batch=found.batch,
        rows=trips(found.rows),
        columns=trips(found.columns),
        depth=found.depth,
        width=found.width,
        element_bytes=storage_bytes(found.exponent.type),
        pairs=None not in map(narrow, (found.left, found.right, found.value)),
    )
