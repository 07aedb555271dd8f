"""What asynchronous copies of threads mean on the lockstep machine.

Data arrives as late as the waits allow: when a thread waits for the group it belongs to. Until then the
destination holds poison, and it is a fault to read or write it, or to overwrite what is copied. To start a
copy counts as a write of the destination, so it races with those who still read what was there; what has
arrived is, until the next barrier, visible to the thread that waited only. A copy that nobody waits for is
a fault at the end of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, Operation

from .device_memory import NOBODY, Memory, fault
from .numpy_types import Array
from .poison import poisoned


@dataclass
class Copy:
    """One execution of a copy by some threads, a row of each array per thread.

    `where` and `source_where` are the elements of a row, `present` those rows that read the source.
    """

    op: Operation
    memory: Memory
    where: tuple[Array, ...]
    values: Array
    source: Memory
    source_where: tuple[Array, ...]
    present: Array
    numbers: Array
    slots: Array
    threads: Array
    groups: Array
    flying: Array


@dataclass
class Elements:
    """The elements that active threads touch, a row of neighbours per thread."""

    slots: Array
    threads: Array
    numbers: Array
    where: tuple[Array, ...]


class AsyncCopies:
    """The copies of a machine's threads that are on their way, and the groups of each thread."""

    def __init__(self, blocks: int, threads: int):
        self.copies: dict[int, Copy] = {}
        self.started = 0
        self.committed = np.zeros((blocks, threads), np.int64)
        self.waited = np.zeros((blocks, threads), np.int64)

    def start(
        self,
        op: Operation,
        element: Attribute,
        source: tuple[Memory, Elements],
        present: Array,
        destination: tuple[Memory, Elements],
    ) -> None:
        """Threads start to copy; rows that are not `present` are filled with zeros."""
        memory, target = destination
        origin, elements = source
        number = self.started
        self.started += 1
        self.check(op, memory, target.where, "copies to", leaving=False)
        numbers = target.numbers[:, None]
        memory.write(op, _rows(numbers, target.where), _flat(target.where))
        read = tuple(w[present] for w in elements.where)
        self.check(op, origin, read, "copies from", leaving=False)
        origin.read(op, _rows(numbers[present], read), _flat(read))
        values = np.zeros(target.where[0].shape, memory.data.dtype)
        values[present] = origin.data[read]
        memory.data[target.where] = poisoned(element, ())
        _mark(memory, "arriving", target.where, number)
        if origin.writer is not None:
            _mark(origin, "leaving", read, number)
        groups = self.committed[target.slots, target.threads]
        flying = np.ones(len(groups), bool)
        self.copies[number] = Copy(
            op,
            memory,
            target.where,
            values,
            origin,
            elements.where,
            present,
            target.numbers,
            target.slots,
            target.threads,
            groups,
            flying,
        )

    def commit(self, mask: Array) -> None:
        """Active threads make a group of their copies."""
        self.committed += mask

    def wait(self, mask: Array, pending: int) -> None:
        """Active threads wait for all but their newest groups; their copies arrive."""
        done = np.maximum(self.waited, self.committed - pending)
        self.waited = np.where(mask, done, self.waited)
        for number, copy in list(self.copies.items()):
            arrived = copy.flying & (copy.groups < self.waited[copy.slots, copy.threads])
            if np.any(arrived):
                self._arrive(copy, arrived)
            if not np.any(copy.flying):
                del self.copies[number]

    def _arrive(self, copy: Copy, rows: Array) -> None:
        where = tuple(w[rows] for w in copy.where)
        assert copy.memory.writer is not None
        assert copy.memory.arriving is not None
        copy.memory.data[where] = copy.values[rows]
        copy.memory.writer[where] = copy.numbers[rows][:, None]
        copy.memory.arriving[where] = NOBODY
        if copy.source.leaving is not None:
            read = rows & copy.present
            copy.source.leaving[tuple(w[read] for w in copy.source_where)] = NOBODY
        copy.flying &= ~rows

    def check(
        self, op: Operation, memory: Memory, where: tuple[Array, ...], verb: str, *, leaving: bool
    ) -> None:
        """Raise MachineFault if an element is on its way; with `leaving`, also if it is being read."""
        if memory.arriving is not None:
            self._check(op, memory, memory.arriving, where, f"{verb} an element", "fill")
        if leaving and memory.leaving is not None:
            self._check(op, memory, memory.leaving, where, f"{verb} an element", "read")

    def _check(
        self,
        op: Operation,
        memory: Memory,
        marks: Array,
        where: tuple[Array, ...],
        does: str,
        verb: str,
    ) -> None:
        found = marks[where].reshape(-1)
        if np.all(found == NOBODY):
            return
        first = int(np.flatnonzero(found != NOBODY)[0])
        copy = self.copies[int(found[first])]
        element = [int(w.reshape(-1)[first]) for w in where]
        rows = copy.where if verb == "fill" else copy.source_where
        same = np.logical_and.reduce([w == e for w, e in zip(rows, element, strict=True)])
        row = int(np.flatnonzero(same.any(axis=1) & copy.flying)[0])
        state = self._state(copy, row)
        raise fault(
            op,
            f"{does} of {memory.name} that the copy at {copy.op.location} may still {verb}: {state}",
        )

    def _state(self, copy: Copy, row: int) -> str:
        committed = self.committed[copy.slots[row], copy.threads[row]]
        if copy.groups[row] >= committed:
            return "its thread has not committed it"
        newer = int(committed - copy.groups[row]) - 1
        return f"its thread has not waited for it, with {newer} newer groups pending"

    def finish(self) -> None:
        """The kernel ends; raises MachineFault at a copy that is still on its way."""
        for copy in self.copies.values():
            row = int(np.flatnonzero(copy.flying)[0])
            state = self._state(copy, row)
            raise fault(copy.op, f"is on its way when the kernel ends: {state}")


def _rows(numbers: Array, where: Sequence[Array]) -> Array:
    """The thread of each element, flat."""
    return np.broadcast_to(numbers, where[0].shape).reshape(-1)


def _flat(where: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(w.reshape(-1) for w in where)


def _mark(memory: Memory, kind: str, where: tuple[Array, ...], number: int) -> None:
    marks: Array | None = getattr(memory, kind)
    if marks is None:
        marks = np.full(memory.data.shape, NOBODY, np.int64)
        setattr(memory, kind, marks)
    marks[where] = number
