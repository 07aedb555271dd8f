"""What asynchronous copies of threads mean on the lockstep machine.

Data arrives as late as the waits allow: when a thread waits for the group it belongs to. Until then the
destination holds poison, and it is a fault to read or write it, or to overwrite what is copied. To start a
copy counts as a write of the destination, so it races with those who still read what was there; what has
arrived is, until the next barrier, visible to the thread that waited only. A copy that nobody waits for is
a fault at the end of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..dialects import kernel
from .flights import Flight, Flights
from .lanes import Lanes
from .numpy_types import Array


class ThreadCopies:
    """The groups of copies of each thread."""

    def __init__(self, lanes: Lanes, flights: Flights):
        self.lanes = lanes
        self.flights = flights
        self.committed = np.zeros(lanes.shape, np.int64)
        self.waited = np.zeros(lanes.shape, np.int64)
        self.started: list[tuple[Flight, tuple[Array, Array], Array, Array]] = []
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            kernel.AsyncCopyOp: self._copy,
            kernel.AsyncCommitOp: self._commit,
            kernel.AsyncWaitOp: self._wait,
        }

    def _copy(self, op: kernel.AsyncCopyOp) -> None:
        lanes, width = self.lanes, op.elements
        outer = lanes.mask
        memory, flat = lanes.place(op, op.destination, op.map, op.indices, width)
        target = lanes.rows(op, memory, flat, width)
        if not target.numbers.size:
            return
        condition = np.ones((1, 1), bool) if op.condition is None else lanes.values[op.condition]
        present = lanes.full(condition)[lanes.full(outer)]
        lanes.mask = outer & condition
        source, flat = lanes.place(op, op.source, op.source_map, op.source_indices, width)
        origin = lanes.rows(op, source, flat, width)
        lanes.mask = outer
        lanes.note(op, memory, target)
        self.flights.check(op, memory, target, "copies to")
        memory.write(op, target.numbers[:, None], target.where)
        lanes.note(op, source, origin)
        self.flights.check(op, source, origin, "copies from")
        source.read(op, origin.numbers[:, None], origin.flat(source))
        values = np.zeros(target.where[-1].shape, memory.data.dtype)
        values[present] = source.data[origin.where]
        source_where = tuple(np.zeros_like(target.where[-1]) for _ in origin.where)
        for every, read in zip(source_where, origin.where, strict=True):
            every[present] = read
        thread = (target.slots, target.threads)
        groups = self.committed[thread]

        def state(row: int) -> str:
            newer = int(self.committed[target.slots[row], target.threads[row]] - groups[row]) - 1
            if newer < 0:
                return "its thread has not committed it"
            return f"its thread has not waited for it, with {newer} newer groups pending"

        flight = Flight(op, memory, target.where, values, state, source, source_where, present)
        self.flights.start(flight)
        self.started.append((flight, thread, groups, target.numbers))

    def _commit(self, op: Operation) -> None:
        self.committed += self.lanes.full(self.lanes.mask)

    def _wait(self, op: kernel.AsyncWaitOp) -> None:
        """Active threads wait for all but their newest groups; the others arrive."""
        done = np.maximum(self.waited, self.committed - op.pending.value.data)
        self.waited = np.where(self.lanes.mask, done, self.waited)
        for flight, thread, groups, numbers in self.started:
            rows = flight.flying & (groups < self.waited[thread])
            self.flights.arrive(flight, rows)
            flight.memory.written(numbers[rows][:, None], tuple(w[rows] for w in flight.where))
        self.started = [each for each in self.started if np.any(each[0].flying)]
        self.flights.drop_arrived()
