"""`schedule-cpu`: decides how a CPU runs each contraction, and writes it on its launch.

    tile.launch (%i = 512 : thread, %j = 2048 : thread) { ... a matrix product ... }
becomes, for a CPU with AVX-512,
    tile.launch (%i = 512 : thread, %j = 2048 : thread)
        schedule(#tile.schedule<m = 0, n = 1, block_m = 128, block_n = 128, block_k = 512,
                                thread_m = 8, thread_n = 32, vectors = avx512>) { ... }

`pack-operands` and `lower-tile-to-scf` carry it out; the step `legacy` does in one what the first two do.
`analysis/cpu_tilings.py` has the model that decides, for the CPU that `target` names. Sizes may be asked for
as options: `schedule-cpu{block_m=64}`; what a contraction cannot have as it is asked for, it does not get.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of
from ...analysis.cpu_neighbours import misfit, neighbours
from ...analysis.cpu_problems import find_problem
from ...analysis.cpu_tiles import CpuProblem
from ...analysis.cpu_tilings import choose_cpu_tiling
from ...analysis.launches import launches_of, open_launches
from ...analysis.products import Product
from ...dialects.loop import KernelOp
from ...dialects.tile import LaunchOp
from ...errors import UsageError
from ...machine.cpus import Cpu
from ...machine.targets import get_cpu
from ..asked_choices import asked_choices
from ..decisions import record
from .legacy import LegacyPass, schedule_for


@dataclass(frozen=True)
class ScheduleCpuPass(ModulePass):
    """Write a schedule on each launch of a contraction; `target` says for which CPU."""

    name = "schedule-cpu"

    target: str = "cpu"
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None
    dot: int | None = None
    in_place: int | None = None
    turned: int | None = None
    """1 if a block computes the transpose of its part of the result."""
    pairs: int | None = None
    mma: int | None = None
    ahead: int | None = None

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ScheduleCpuPass, ...]:
        """Passes that each ask for a legal neighbour of what the model chooses for a kernel."""
        found: dict[ScheduleCpuPass, None] = {}
        for _, launch in open_launches(module_op):
            if isinstance(problem := find_problem(launch), tuple):
                cpu = get_cpu(cls.target)
                best = choose_cpu_tiling(problem[1], cpu)
                for tiling in neighbours(problem[1], best, cpu):
                    found[replace(cls(), **tiling.choices)] = None
        return tuple(found)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cpu = get_cpu(self.target)
        with hints_of(op):
            for kernel, launch in launches_of(op):
                self._check(kernel, launch, cpu)
            for kernel, launch in open_launches(op):
                self._apply(kernel, launch, find_problem(launch), cpu)

    def _check(self, kernel: KernelOp, launch: LaunchOp, cpu: Cpu) -> None:
        """Raise UsageError for a schedule with instructions that the machine lacks."""
        for choice, what in (("pairs", "pairs of bf16"), ("mma", "matrix tiles")):
            if launch.schedule is None or not launch.schedule.get(choice) or getattr(cpu, choice):
                continue
            name = kernel.sym_name.data
            raise UsageError(f"schedule of {name}: {self.target} has no instruction for {what}")

    def _apply(
        self, kernel: KernelOp, launch: LaunchOp, found: str | tuple[Product, CpuProblem], cpu: Cpu
    ) -> None:
        name = kernel.sym_name.data
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return
        product, problem = found
        model = choose_cpu_tiling(problem, cpu)
        fits = partial(misfit, problem, cpu=cpu)
        best, why = asked_choices(self, name, model, fits, launch)
        launch.schedule = schedule_for(product, best, cpu.name)
        step = LegacyPass.of(best, cpu.name)
        record(self.name, name, True, step.done + why, launch, steps=[step])
