"""`schedule`: decides how each kernel is to run, and writes it on its launch.

    tile.launch (%i = 512 : thread, %j = 3584 : thread) { ... a matrix product ... }
becomes
    tile.launch (%i = 512 : thread, %j = 3584 : thread)
        schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 128, block_k = 16,
                                thread_m = 4, thread_n = 8>) { ... }

The passes after it carry the schedule out. What it leaves open they decide by themselves: a launch that is no
contraction gets only what is asked for, and one on a CPU nothing. The model that decides is in
`analysis/tiling_cost.py`. Any choice may be asked for as an option: `schedule{target=sm_80 block_m=16}`. What
a kernel cannot have as it is asked for, it does not get: the reason is recorded, and the model decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.contraction import Contraction, find_contraction, operands_are_boxes
from ...analysis.cost import hints_of
from ...analysis.launches import open_launches
from ...analysis.tiling_choice import choose, misfit
from ...analysis.tiling_cost import cycles as cycles_of
from ...analysis.tiling_problem import problem_of
from ...analysis.tilings import MIN_PRODUCT, Problem, Tiling
from ...dialects.loop import KernelOp
from ...dialects.schedule import CHOICES, Kept, ScheduleAttr
from ...dialects.tile import LaunchOp
from ...errors import UsageError
from ...machine.matrix_instructions import HALVES
from ...machine.targets import Target, get_gpu
from ..decisions import record


def find_problem(
    launch: LaunchOp, target: Target, least: int = MIN_PRODUCT
) -> str | tuple[Contraction, Problem]:
    """Why nothing is decided for a launch, or the contraction that it is, of `least` multiply-adds."""
    if launch.settled is not None:
        return launch.settled
    found = find_contraction(launch)
    if isinstance(found, str):
        return found
    problem = problem_of(found, launch, target)
    if problem.work < least:
        return f"{problem.work} multiply-adds are too few to share operands for"
    return found, problem


@dataclass(frozen=True)
class Chosen:
    """What a contraction gets."""

    contraction: Contraction
    problem: Problem
    tiling: Tiling


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Write a schedule on each launch of a contraction; options ask for choices.

    Raises UsageError for what no kernel can have.
    """

    name = "schedule"

    target: str = "sm_90a"
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None
    split_k: int | None = None
    cluster_m: int | None = None
    cluster_n: int | None = None
    mma: int | None = None
    stages: int | None = None
    transport: str | None = None
    lanes: int | None = None
    vector: int | None = None
    keep: str | None = None

    def __post_init__(self):
        for choice, value in self.asked.items():
            if not CHOICES[choice].allows(value):
                raise UsageError(f"schedule: {choice} is {CHOICES[choice].said}")
        for choice, value in (("transport", self.transport), ("keep", self.keep)):
            words = CHOICES[choice].values
            if value not in (None, *words):
                raise UsageError(f"schedule: {choice} is one of {', '.join(words)}")
        if (reason := misfit(self.asked)) is not None:
            raise UsageError(f"schedule: {reason}")

    @property
    def asked(self) -> dict[str, int]:
        """The choices that are asked for."""
        values = {choice: getattr(self, choice, None) for choice in CHOICES}
        return {choice: value for choice, value in values.items() if isinstance(value, int)}

    @property
    def tiles(self) -> dict[str, Any]:
        """The choices of a contraction that are asked for."""
        rows = ("lanes", "vector")
        asked: dict[str, Any] = {c: value for c, value in self.asked.items() if c not in rows}
        return asked if self.transport is None else asked | {"transport": self.transport}

    @property
    def copies(self) -> dict[str, int | str]:
        """The choices asked for that any tiling can have."""
        values = {"stages": self.stages, "transport": self.transport}
        return {choice: value for choice, value in values.items() if value is not None}

    @property
    def rows(self) -> dict[str, int | str]:
        """The choices asked for that kernels without a contraction have."""
        values = {"lanes": self.lanes, "vector": self.vector, "keep": self.keep}
        if self.keep == Kept.SHARED:
            values["transport"] = self.transport
        return {choice: value for choice, value in values.items() if value is not None}

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[SchedulePass, ...]:
        """The neighbours for the default target."""
        return cls().neighbours(module_op)

    def neighbours(self, module: ModuleOp) -> tuple[SchedulePass, ...]:
        """Passes that each ask for what this one chooses for a kernel, but one choice halved or doubled.

        All of them are legal for that kernel.
        """
        found: dict[SchedulePass, None] = {}
        target = get_gpu(self.target)
        for kernel, launch in open_launches(module):
            if (chosen := self.choose(kernel, launch)) is None:
                continue
            contraction, problem, best = chosen.contraction, chosen.problem, chosen.tiling
            for tiling in best.neighbours():
                legal = problem.illegal(tiling, target) is None
                if (
                    legal
                    and tiling in problem.splits(tiling, [tiling.split_k])
                    and are_boxes(contraction, launch, tiling)
                ):
                    found[replace(self, **tiling.choices)] = None
        return tuple(found)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_gpu(self.target)
        with hints_of(op):
            for kernel, launch in open_launches(op):
                name = kernel.sym_name.data
                if (chosen := self.choose(kernel, launch)) is None:
                    self._ask(name, launch)
                    continue
                contraction, best = chosen.contraction, chosen.tiling
                choices = {**best.choices, **self.copies}
                schedule = ScheduleAttr(m=contraction.m, n=contraction.n, **choices)
                launch.schedule = schedule if best.split_k > 1 else schedule.without("split_k")
                reason = _reason(chosen.problem, best, target)
                record(self.name, name, True, reason, launch, steps=[])

    def _ask(self, name: str, launch: LaunchOp) -> None:
        """Write what is asked of rows and single elements on a launch that is no contraction."""
        open_ = launch.schedule is None and not launch.is_partitioned
        if self.rows and open_:
            launch.schedule = ScheduleAttr(**self.rows)
            asked = ", ".join(f"{choice} = {value}" for choice, value in self.rows.items())
            record(self.name, name, True, f"{asked}, as asked", launch, steps=[])

    @property
    def _attempts(self) -> list[dict[str, Any]]:
        """Tiles to ask for, in turn. Of windows, short parts of K may be boxes where longer ones are none."""
        asked = [self.tiles, {}] if self.tiles else [{}]
        return asked if "block_k" in self.tiles else [*asked, {"block_k": HALVES.depth}]

    def choose(self, kernel: KernelOp, launch: LaunchOp) -> Chosen | None:
        """The choice of the model with what is asked for; without, where it cannot be had."""
        target, name = get_gpu(self.target), kernel.sym_name.data
        found = find_problem(launch, target, 0 if self.tiles else MIN_PRODUCT)
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return None
        contraction, problem = found
        for tiles in self._attempts:
            best = choose(problem, tiles, target)
            if isinstance(best, Tiling):
                if are_boxes(contraction, launch, best):
                    return Chosen(contraction, problem, best)
                best = "an operand is not read position by position"
            record(self.name, name, False, best, launch)
        return None


def _reason(problem: Problem, chosen: Tiling, target: Target) -> str:
    """What is chosen, and what the model says of it."""
    said = f"blocks of {chosen.block_m} by {chosen.block_n}"
    said += f", threads of {chosen.thread_m} by {chosen.thread_n}"
    blocks = problem.blocks(chosen)
    if chosen.split_k > 1:
        said += (
            f", K in {chosen.split_k} parts: {blocks} blocks instead of {blocks // chosen.split_k}"
        )
    else:
        said += f": {blocks} blocks"
    said += f" for {target.processors} multiprocessors"
    resident = problem.resident_blocks(chosen, target)
    cycles = cycles_of(problem, chosen, target)
    return f"{said}, each with room for {resident}; about {cycles / 1000:.1f} kcycles"


def are_boxes(contraction: Contraction, launch: LaunchOp, tiling: Tiling) -> bool:
    """Whether what a block reads of each operand is a box that can be staged."""
    sizes = (tiling.block_m, tiling.block_n, tiling.block_k)
    return operands_are_boxes(contraction, launch, sizes)
