"""What may be chosen for a kernel on a GPU: how a contraction is blocked, how threads share rows."""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis import row_neighbours, tiling_neighbours
from ..analysis.contraction import Contraction
from ..analysis.gpu_choices import RowShape, TilingChoices
from ..analysis.roofline import (
    MATRIX_RATE,
    least_bytes,
    peak,
    seconds_from_cache,
    seconds_from_memory,
)
from ..analysis.row_neighbours import RowLimits
from ..analysis.tiling_neighbours import tiling_of, with_buffers
from ..analysis.tilings import Problem
from ..dialects.inside import ops_in
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..machine.targets import Target
from ..passes.tile.cooperative_reduce import decline_reason
from ..passes.tile.row_shape import choose_shape, limits_of
from ..passes.tile.schedule import SchedulePass, are_boxes, find_problem
from .alone import alone
from .database import Choices


@dataclass(frozen=True)
class GpuTilingSpace:
    """How a contraction may be blocked."""

    contraction: Contraction
    launch: LaunchOp
    """Of a copy: the program goes on to be compiled."""
    problem: Problem
    start: TilingChoices
    bytes: int
    """That it moves at least."""
    target: Target

    @property
    def model(self) -> Choices:
        """The model's tiling."""
        return self.start.choices

    @property
    def least_seconds(self) -> float:
        """The seconds of the multiply-adds alone, or of all bytes from the cache."""
        rate = peak(self.target, self.problem.instruction)
        rate *= MATRIX_RATE if self.problem.instruction else 1
        return max(2 * self.problem.work / rate, seconds_from_cache(self.bytes, self.target))

    @property
    def cold_seconds(self) -> float:
        """The same, or the seconds of all bytes from memory."""
        return max(self.least_seconds, seconds_from_memory(self.bytes, self.target))

    @property
    def seeds(self) -> list[Choices]:
        """None: of its targets, the model knows only what they have."""
        return []

    def neighbours(self, choices: Choices) -> list[Choices]:
        """Sizes halved or doubled, a buffer more or less, another transport; whose operands are boxes."""
        found = tiling_neighbours.neighbours(self.problem, TilingChoices(**choices), self.target)
        boxes = [c for c in found if are_boxes(self.contraction, self.launch, tiling_of(c))]
        return [each.choices for each in boxes]

    def estimate(self, choices: Choices) -> float:
        """About how many cycles it takes."""
        return tiling_neighbours.estimated_cycles(
            self.problem, TilingChoices(**choices), self.target
        )


@dataclass(frozen=True)
class GpuRowSpace:
    """How threads may share rows."""

    limits: RowLimits
    start: RowShape
    bytes: int
    """That the kernel moves at least."""
    target: Target

    @property
    def model(self) -> Choices:
        """The model's shape."""
        return self.start.choices

    @property
    def least_seconds(self) -> float:
        """The seconds of all bytes from the cache."""
        return seconds_from_cache(self.bytes, self.target)

    @property
    def cold_seconds(self) -> float:
        """The seconds of all bytes from memory."""
        return seconds_from_memory(self.bytes, self.target)

    @property
    def seeds(self) -> list[Choices]:
        """None, as of tilings."""
        return []

    def neighbours(self, choices: Choices) -> list[Choices]:
        """More or fewer threads, rows and neighbours, and rows kept elsewhere."""
        found = row_neighbours.neighbours(self.limits, RowShape(**choices))
        return [each.choices for each in found]

    def estimate(self, choices: Choices) -> float:
        """All are alike to the model: a few are measured as soon as thought about."""
        return 0.0


def find_tiling_space(kernel: KernelOp, target: Target) -> GpuTilingSpace | str:
    """The choices of `schedule` for a kernel, or why it has none to make."""
    (copy,) = [op for op in ops_in(alone((kernel,))) if isinstance(op, KernelOp)]
    (launch,) = [op for op in ops_in(copy) if isinstance(op, LaunchOp)]
    found = find_problem(launch, target)
    if isinstance(found, str):
        return found
    chosen = SchedulePass(target.name).choose(copy, launch)
    if chosen is None:
        return "no tiling of the model's fits it"
    start = with_buffers(chosen.tiling, chosen.problem, target)
    return GpuTilingSpace(
        chosen.contraction, launch, chosen.problem, start, least_bytes(copy), target
    )


def find_shape_space(kernel: KernelOp, launch: LaunchOp, target: Target) -> GpuRowSpace | str:
    """The choices of `cooperative-reduce` for a kernel, or why it has none to make."""
    reason = decline_reason(launch, target)
    if reason is not None:
        return reason
    shape = choose_shape(launch, target)
    return GpuRowSpace(limits_of(launch), shape, least_bytes(kernel), target)
