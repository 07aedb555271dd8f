"""How well the accesses of a kernel suit a GPU's memory: bank conflicts, and sectors per request.

A warp's access of shared memory is a request of 128 bytes; of wider elements, each half or quarter of the
warp is one. Memory has 32 banks of 4 bytes; a request takes as many turns as some bank has different words in
it (CUDA C++ Programming Guide, "Shared Memory"). Global memory is moved in sectors of 32 bytes; a request
needs at least as many as its bytes fill.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation

from ..dialects.kernel import WARP
from .device_memory import Memory, Touched
from .numpy_types import Array

BANKS, WORD = 32, 4
SECTOR = 32


@dataclass(frozen=True)
class AccessRow:
    """What one operation does to one memory, over all its requests.

    `cost` is the mean number of turns (shared) or sectors (global) of a request, `worst` the largest, `least`
    the mean of what the bytes alone would need.
    """

    location: str
    operation: str
    memory: str
    space: str
    requests: int
    cost: float
    worst: int
    least: float


@dataclass
class _Total:
    requests: int = 0
    cost: int = 0
    worst: int = 0
    least: int = 0


@dataclass
class Accesses:
    """Collects the accesses of the kernels that are executed."""

    totals: dict[tuple[Operation, str, bool], _Total] = field(
        default_factory=dict[tuple[Operation, str, bool], _Total]
    )

    def note(self, op: Operation, memory: Memory, lanes: Touched) -> None:
        """Threads access elements."""
        if not lanes.numbers.size:
            return
        where = lanes.where[-1].reshape(len(lanes.numbers), -1)
        first, size = where[:, 0] * memory.item_bytes, where.shape[1] * memory.item_bytes
        share = WARP * WORD // max(size, WORD) if memory.shared else WARP
        _, request = np.unique(
            lanes.slots * (1 << 32) + lanes.threads // WARP * WARP + lanes.threads % WARP // share,
            return_inverse=True,
        )
        units = _distinct(request, first, size, WORD if memory.shared else SECTOR)
        least = np.ones(len(np.unique(request)), np.int64)
        if memory.shared:
            _, bank = np.unique(units[0] * BANKS + units[1] % BANKS, return_inverse=True)
            turns = np.bincount(bank)
            cost = np.zeros(len(least), np.int64)
            np.maximum.at(cost, units[0], turns[bank])
        else:
            cost = np.bincount(units[0])
            filled = _distinct(request, first, size, memory.item_bytes)
            least = -(-np.bincount(filled[0]) * memory.item_bytes // SECTOR)
        total = self.totals.setdefault((op, memory.name, memory.shared), _Total())
        total.requests += len(cost)
        total.cost += int(cost.sum())
        total.worst = max(total.worst, int(cost.max()))
        total.least += int(least.sum())

    def rows(self) -> list[AccessRow]:
        """A row for each operation and memory, in the order they were first executed."""
        return [
            AccessRow(
                str(op.location),
                op.name,
                name,
                "shared" if shared else "global",
                total.requests,
                total.cost / total.requests,
                total.worst,
                total.least / total.requests,
            )
            for (op, name, shared), total in self.totals.items()
        ]


def _distinct(request: Array, first: Array, size: int, unit: int) -> tuple[Array, Array]:
    """The different units of so many bytes that each request touches, as (request, unit) pairs."""
    count = -(-size // unit)
    units = first[:, None] // unit + np.arange(count)
    pairs = np.stack([np.broadcast_to(request[:, None], units.shape), units], axis=-1)
    distinct = np.unique(pairs.reshape(-1, 2), axis=0)
    return distinct[:, 0], distinct[:, 1]
