"""What may be chosen for a kernel, as a search sees it: where to start, neighbours, what to measure first.

There is a space for each pass that writes schedules (`scheduling.py`); these are a CPU's, `gpu_spaces.py` has
a GPU's. What choices mean, only the pass and its model know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
class TilingSpace:
    """How a contraction may be blocked."""

    problem: CpuProblem
    cpu: Cpu
    threads: int

    @property
    def model(self) -> Choices:
        """The model's tiling."""
        return choose_cpu_tiling(self.problem, self.cpu).choices

    @property
    def seeds(self) -> list[Choices]:
        """What the model takes for other cores."""
        found = [choose_cpu_tiling(self.problem, each) for each in with_habits_of_others(self.cpu)]
        return [
            c.choices for c in found if cpu_neighbours.misfit(self.problem, c, self.cpu) is None
        ]

    @property
    def least_seconds(self) -> float:
        """The seconds of the multiply-adds alone."""
        p = self.problem
        vectors = p.batch * p.m * p.n * p.k * p.results / self.cpu.lanes(p.element_bytes)
        fmas = FASTEST_FMAS
        if p.pairs and self.cpu.pairs:
            fmas = FASTEST_MATRIX_FMAS if self.cpu.mma else 2 * FASTEST_FMAS
        return vectors / (self.threads * fmas * FASTEST_CLOCK)

    @property
    def cold_seconds(self) -> float:
        """The same: what memory delivers is not known of a CPU."""
        return self.least_seconds

    def neighbours(self, choices: Choices) -> list[Choices]:
        """Other register tiles, and blocks halved or doubled along an axis."""
        found = cpu_neighbours.neighbours(self.problem, CpuTiling(**choices), self.cpu)
        return [each.choices for each in found]

    def estimate(self, choices: Choices) -> float:
        """About how many cycles a position of K takes."""
        return tiling_cycles(self.problem, CpuTiling(**choices), self.cpu)


@dataclass(frozen=True)
class RowSpace:
    """How a kernel may run that is no contraction."""

    problem: RowProblem
    cpu: Cpu
    threads: int

    @property
    def model(self) -> Choices:
        """The model's choices."""
        return choose_rows(self.problem, self.cpu).choices

    @property
    def seeds(self) -> list[Choices]:
        """What the model takes for other cores."""
        found = [choose_rows(self.problem, each) for each in with_habits_of_others(self.cpu)]
        return [c.choices for c in found if cpu_rows.misfit(self.problem, c, self.cpu) is None]

    @property
    def least_seconds(self) -> float:
        """The seconds of reading all that is read from the first-level cache, in the widest vectors."""
        return _seconds_to_read(self.problem.bytes, self.cpu, self.threads)

    @property
    def cold_seconds(self) -> float:
        """The same: what memory delivers is not known of a CPU."""
        return self.least_seconds

    def neighbours(self, choices: Choices) -> list[Choices]:
        """Other blocks, distances and vectors."""
        found = cpu_rows.neighbours(self.problem, RowChoices(**choices), self.cpu)
        return [each.choices for each in found]

    def estimate(self, choices: Choices) -> float:
        """All are alike to the model: a few are measured as soon as thought about."""
        return 0.0


@dataclass(frozen=True)
class SoftmaxSpace:
    """How a softmax between two contractions may be shared out."""

    problem: SoftmaxProblem
    cpu: Cpu
    threads: int

    @property
    def model(self) -> Choices:
        """The model's choices."""
        return choose_softmax(self.problem, self.cpu).choices

    @property
    def seeds(self) -> list[Choices]:
        """What the model takes for other cores."""
        found = [choose_softmax(self.problem, each) for each in with_habits_of_others(self.cpu)]
        return [c.choices for c in found if cpu_softmax.misfit(self.problem, c, self.cpu) is None]

    @property
    def least_seconds(self) -> float:
        """The seconds of reading rows, columns and values once: how much is masked is not known."""
        return _seconds_to_read(self.problem.bytes, self.cpu, self.threads)

    @property
    def cold_seconds(self) -> float:
        """The same: what memory delivers is not known of a CPU."""
        return self.least_seconds

    def neighbours(self, choices: Choices) -> list[Choices]:
        """Other register tiles, and half or twice the rows or scores."""
        found = cpu_softmax.neighbours(self.problem, SoftmaxChoices(**choices), self.cpu)
        return [each.choices for each in found]

    def estimate(self, choices: Choices) -> float:
        """About how many cycles it takes."""
        return cpu_softmax.estimated_cycles(
            self.problem, SoftmaxChoices(**choices), self.cpu, self.threads
        )


def _seconds_to_read(count: int, cpu: Cpu, threads: int) -> float:
    """The seconds that no machine needs less of to read so many bytes."""
    return count / cpu.vector_bytes / (threads * FASTEST_LOADS * FASTEST_CLOCK)
