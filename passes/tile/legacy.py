"""`legacy`: a CPU computes a contraction in blocks of these sizes, from packed copies of the factors.

    tile.launch (%i = 512 : thread, %j = 2048 : thread) { ... a matrix product ... }

becomes, by `legacy{block_m=128 block_n=128 block_k=512 thread_m=8 thread_n=32 vectors=avx512}`,

    tile.launch (%i_block = 4 : block, %j_block = 16 : block, %i = 128 : thread, %j = 128 : thread)
        schedule(#tile.schedule<m = 2, n = 3, block_m = 128, ... vectors = avx512>) { ... tile.pack ... }

It is the step that `schedule-cpu` decides and `pack-operands` carries out, as one, which shows what becomes
of the launch; no primitives say so much yet. What the options mean `analysis/cpu_tiles.py` says.
The pass declines what is no contraction, what the contraction's operands or the vectors do not allow, and
sizes that do not fit together. Caches limit nothing: their sizes are a machine's, and a step knows none.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...analysis.cost import hints_of
from ...analysis.cpu_neighbours import misfit
from ...analysis.cpu_problems import find_problem
from ...analysis.cpu_tiles import CpuTiling
from ...analysis.products import Product
from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import LaunchOp
from ...machine.cpus import CPUS, SIZES, Cpu
from ..schedule.primitive import Primitive, check_word
from .pack_operands import pack


def any_cpu(vectors: str) -> Cpu:
    """A core with some vectors that has all that one may have: what it cannot do, none can."""
    cpu = CPUS[vectors]
    caches = {name: SIZES[name] for name in ("l1_bytes", "l2_bytes")}
    return replace(cpu, pairs=cpu.vector_bytes == CPUS["avx512"].vector_bytes, **caches)


def schedule_for(product: Product, tiling: CpuTiling, vectors: str) -> ScheduleAttr:
    """The schedule of a contraction that is tiled so."""
    product = product.turned if tiling.turned else product
    return ScheduleAttr(m=product.m, n=product.n, **tiling.written, vectors=vectors)


@dataclass(frozen=True)
class LegacyPass(Primitive):
    """Block a contraction for a CPU and pack its operands, by choices that are given, all of them."""

    name = "legacy"

    block_m: int = 0
    block_n: int = 0
    block_k: int = 0
    thread_m: int = 0
    thread_n: int = 0
    dot: int = 0
    """1 if vectors lie along K, and nothing is packed"""
    in_place: int = 0
    """1 if only columns are packed"""
    turned: int = 0
    """1 if a block computes the transpose of its part of the result"""
    pairs: int = 0
    """1 if pairs of bf16 are multiplied"""
    mma: int = 0
    """1 if matrix tiles multiply"""
    ahead: int = 0
    """Positions of K that what is not packed is asked for early"""
    vectors: str = ""
    """The instruction set of the vectors"""

    def __post_init__(self):
        check_word("vectors", self.vectors, tuple(CPUS))

    @classmethod
    def of(cls, tiling: CpuTiling, vectors: str) -> LegacyPass:
        """The step that tiles a contraction so."""
        return replace(cls(vectors=vectors), **tiling.written, turned=tiling.turned)

    @property
    def tiling(self) -> CpuTiling:
        """The choices."""
        options = asdict(self)
        return CpuTiling(**{name: options[name] for name in CpuTiling.__dataclass_fields__})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Carry the step out where sizes are dynamic, too."""
        with hints_of(op):
            super().apply(ctx, op)

    def change(self, launch: LaunchOp) -> str | None:
        """Block a launch and pack its operands; gives why not."""
        found = find_problem(launch)
        if isinstance(found, str):
            return found
        product, problem = found
        if (reason := misfit(problem, self.tiling, any_cpu(self.vectors))) is None:
            launch.schedule = schedule_for(product, self.tiling, self.vectors)
            pack(launch, product)
        return reason

    @property
    def done(self) -> str:
        """What it did, for people."""
        said = f"{'turned ' if self.turned else ''}blocks of {self.block_m} by {self.block_n}"
        said += f"{' of rows in place' if self.in_place else ''}, {'dot' if self.dot else 'register'}"
        said += f" tiles of {self.thread_m} by {self.thread_n} for {self.vectors}"
        said += f"{', pairs of bf16' if self.pairs else ''}{', matrix tiles' if self.mma else ''}"
        return said + (f", asked for {self.ahead} positions early" if self.ahead else "")
