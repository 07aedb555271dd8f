"""What may be chosen for a kernel, as a search sees it: where to start, neighbours, what to measure first.

There is a space for each pass that writes schedules (`scheduling.py`); these are a CPU's, `gpu_spaces.py` has
a GPU's. What choices mean, only the pass and its model know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..analysis import cpu_neighbours, cpu_rows, cpu_softmax
from ..analysis.cpu_rows import RowChoices, RowProblem, choose_rows
from ..analysis.cpu_softmax import SoftmaxChoices, SoftmaxProblem, choose_softmax
from ..analysis.cpu_tiles import CpuProblem, CpuTiling
from ..analysis.cpu_tilings import choose_cpu_tiling, tiling_cycles
from ..machine.cpus import Cpu, with_habits_of_others
from .database import Choices

FASTEST_CLOCK = 6.5e9
"""Cycles in a second that no CPU exceeds."""

FASTEST_FMAS = 2
"""Vector multiply-adds in a cycle that no core exceeds."""

FASTEST_MATRIX_FMAS = 64
"""Vector multiply-adds in a cycle that no core's matrix tiles exceed."""

FASTEST_LOADS = 3
"""Vectors that no core exceeds loading in a cycle."""


class Space(Protocol):
    """The choices that there are for a kernel."""

    @property
    def model(self) -> Choices:
        """What the model chooses."""
        ...

    @property
    def seeds(self) -> list[Choices]:
        """Other legal choices to start from: what the model says of other cores."""
        ...

    @property
    def least_seconds(self) -> float:
        """A time that the machine cannot be faster than, whatever is chosen, and wherever the inputs lie."""
        ...

    @property
    def cold_seconds(self) -> float:
        """The same if the inputs lie in no cache."""
        ...

    def neighbours(self, choices: Choices) -> list[Choices]:
        """The legal choices one step away."""
        ...

    def estimate(self, choices: Choices) -> float:
        """What the model says of choices; those for which it is less are measured first."""
        ...


@dataclass(frozen=True)
class CpuSpace:
    """What the spaces of a CPU share; each says which model it asks."""

    problem: Any
    cpu: Cpu
    threads: int

    kind: ClassVar[type[Any]]
    """What the model chooses, an object with `choices`."""
    choose: ClassVar[Callable[..., Any]]
    """The model's choices for a problem and a core."""
    misfit: ClassVar[Callable[..., str | None]]
    """Why a core cannot have choices for a problem, or None."""
    around: ClassVar[Callable[..., Sequence[Any]]]
    """The legal choices one step away from others."""

    @property
    def model(self) -> Choices:
        """What the model chooses."""
        return self.choose(self.problem, self.cpu).choices

    @property
    def seeds(self) -> list[Choices]:
        """What the model takes for other cores."""
        found = [self.choose(self.problem, each) for each in with_habits_of_others(self.cpu)]
        return [c.choices for c in found if self.misfit(self.problem, c, self.cpu) is None]

    @property
    def least_seconds(self) -> float:
        """The seconds of reading all that is read, once, from the first-level cache in the widest vectors."""
        reading = self.threads * FASTEST_LOADS * FASTEST_CLOCK
        return self.problem.bytes / self.cpu.vector_bytes / reading

    @property
    def cold_seconds(self) -> float:
        """The same: what memory delivers is not known of a CPU."""
        return self.least_seconds

    def neighbours(self, choices: Choices) -> list[Choices]:
        """The legal choices one step away."""
        found = self.around(self.problem, self.kind(**choices), self.cpu)
        return [each.choices for each in found]

    def estimate(self, choices: Choices) -> float:
        """By default all are alike to the model: a few are measured as soon as thought about."""
        return 0.0


@dataclass(frozen=True)
class TilingSpace(CpuSpace):
    """How a contraction may be blocked: register tiles, and blocks halved or doubled along an axis."""

    problem: CpuProblem

    kind = CpuTiling
    choose = staticmethod(choose_cpu_tiling)
    misfit = staticmethod(cpu_neighbours.misfit)
    around = staticmethod(cpu_neighbours.neighbours)

    @property
    def least_seconds(self) -> float:
        """The seconds of the multiply-adds alone."""
        p = self.problem
        vectors = p.batch * p.m * p.n * p.k * p.results / self.cpu.lanes(p.element_bytes)
        fmas = FASTEST_FMAS
        if p.pairs and self.cpu.pairs:
            fmas = FASTEST_MATRIX_FMAS if self.cpu.mma else 2 * FASTEST_FMAS
        return vectors / (self.threads * fmas * FASTEST_CLOCK)

    def estimate(self, choices: Choices) -> float:
        """About how many cycles a position of K takes."""
        return tiling_cycles(self.problem, CpuTiling(**choices), self.cpu)


@dataclass(frozen=True)
class RowSpace(CpuSpace):
    """How a kernel may run that is no contraction: other blocks, distances and vectors."""

    problem: RowProblem

    kind = RowChoices
    choose = staticmethod(choose_rows)
    misfit = staticmethod(cpu_rows.misfit)
    around = staticmethod(cpu_rows.neighbours)


@dataclass(frozen=True)
class SoftmaxSpace(CpuSpace):
    """How a softmax between two contractions may be shared out: register tiles, rows and scores."""

    problem: SoftmaxProblem

    kind = SoftmaxChoices
    choose = staticmethod(choose_softmax)
    misfit = staticmethod(cpu_softmax.misfit)
    around = staticmethod(cpu_softmax.neighbours)

    def estimate(self, choices: Choices) -> float:
        """About how many cycles it takes."""
        return cpu_softmax.estimated_cycles(
            self.problem, SoftmaxChoices(**choices), self.cpu, self.threads
        )
