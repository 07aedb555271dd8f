"""What a tuner chooses for a kernel on a GPU, by the pass that decides; fields are choices of a schedule.

Which are legal, and near one another, say `tiling_neighbours.py` and `row_neighbours.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..dialects.schedule import Kept


@dataclass(frozen=True)
class TilingChoices:
    """A contraction (`schedule`): the parts that it comes in, and how its slabs are filled."""

    block_m: int
    block_n: int
    block_k: int
    thread_m: int
    thread_n: int
    split_k: int
    mma: int
    stages: int
    transport: str
    cluster_m: int = 0
    cluster_n: int = 0

    @property
    def choices(self) -> dict[str, int | str]:
        """Every choice."""
        return asdict(self)


@dataclass(frozen=True)
class RowShape:
    """Rows (`cooperative-reduce`): `lanes` threads share one, and a block has `rows`.

    A thread takes `vector` neighbours at once; what several sweeps read is kept as the word of `Kept` says.
    """

    lanes: int
    rows: int = 1
    vector: int = 1
    keep: str = Kept.REGISTERS.value

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.lanes * self.rows

    @property
    def choices(self) -> dict[str, int | str]:
        """Every choice."""
        return asdict(self)
