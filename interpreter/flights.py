"""Data on its way from one memory to another: nobody may touch where it arrives, or change what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from .device_memory import NOBODY, Memory, Touched, fault
from .numpy_types import Array
from .poison import poison_of


@dataclass
class Flight:
    """One execution of a copy by some threads: a row of each array for each thread.

    `where` is what a row fills and `values` what with; `source_where` is what it reads, of `source`, where
    it is `present`. `state` says of a row why it has not arrived.
    """

    op: Operation
    memory: Memory
    where: tuple[Array, ...]
    values: Array
    state: Callable[[int], str]
    source: Memory | None = None
    source_where: tuple[Array, ...] = ()
    present: Array | None = None

    def __post_init__(self) -> None:
        self.flying = np.ones(len(self.values), bool)


class Flights:
    """All copies of a machine that are on their way."""

    def __init__(self) -> None:
        self.flights: dict[int, Flight] = {}
        self.watchers: list[Callable[[Operation, Memory, Touched, str], None]] = []
        self._started = 0

    def start(self, flight: Flight) -> None:
        """Data departs: from now on its destination is poison."""
        number, self._started = self._started, self._started + 1
        self.flights[number] = flight
        memory = flight.memory
        if memory.arriving is None:
            memory.arriving = np.full(memory.data.shape, NOBODY, np.int64)
        memory.arriving[flight.where] = number
        memory.data[flight.where] = poison_of(memory.data.dtype)
        source = flight.source
        if source is not None and source.writer is not None:
            if source.leaving is None:
                source.leaving = np.full(source.data.shape, NOBODY, np.int64)
            source.leaving[tuple(w[flight.present] for w in flight.source_where)] = number

    def arrive(self, flight: Flight, rows: Array) -> None:
        """Some rows arrive."""
        where = tuple(w[rows] for w in flight.where)
        assert flight.memory.arriving is not None
        flight.memory.data[where] = flight.values[rows]
        flight.memory.arriving[where] = NOBODY
        if flight.source is not None and flight.source.leaving is not None:
            read = rows & flight.present
            flight.source.leaving[tuple(w[read] for w in flight.source_where)] = NOBODY
        flight.flying &= ~rows

    def drop_arrived(self) -> None:
        """Forget the copies of which all has arrived."""
        self.flights = {n: flight for n, flight in self.flights.items() if np.any(flight.flying)}

    def check(self, op: Operation, memory: Memory, lanes: Touched, verb: str) -> None:
        """Raise MachineFault if an element is on its way, or is written while it is being read."""
        if self.flights and memory.arriving is not None:
            self._check(op, memory, memory.arriving, lanes, verb, "fill")
        if self.flights and memory.leaving is not None and verb == "writes":
            self._check(op, memory, memory.leaving, lanes, verb, "read")
        for watch in self.watchers:
            watch(op, memory, lanes, verb)

    def _check(
        self,
        op: Operation,
        memory: Memory,
        marks: Array,
        lanes: Touched,
        verb: str,
        still: str,
    ) -> None:
        found = marks.reshape(-1)[lanes.flat(memory)].reshape(-1)
        flying = np.flatnonzero(found != NOBODY)
        if not flying.size:
            return
        flight = self.flights[int(found[flying[0]])]
        element = [int(w.reshape(-1)[flying[0]]) for w in lanes.where]
        rows = flight.where if still == "fill" else flight.source_where
        same = np.logical_and.reduce([w == e for w, e in zip(rows, element, strict=True)])
        here = same.any(axis=1) & flight.flying
        row = int(np.flatnonzero(here & flight.present if still == "read" else here)[0])
        raise fault(
            op,
            f"{verb} an element of {memory.name} that the copy at {flight.op.location} may still "
            f"{still}: {flight.state(row)}",
        )

    def finish(self) -> None:
        """The kernel ends; raises MachineFault at a copy that is still on its way."""
        for flight in self.flights.values():
            row = int(np.flatnonzero(flight.flying)[0])
            raise fault(flight.op, f"is on its way when the kernel ends: {flight.state(row)}")
