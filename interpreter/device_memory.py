"""The memory of the lockstep machine: the values, and who touched each element since the last barrier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from .numpy_types import Array
from .teams import ATOMIC, NOBODY, SEVERAL, Teams
from .tensor_ir import ProgramFault

MAX_THREADS = 1 << 31
"""A thread's number in the grid has 32 bits: less memory to look through than with 64."""


class MachineFault(ProgramFault):
    """A kernel does what a GPU leaves undefined: a race, a divergent barrier, a bad access."""


def fault(op: Operation, what: str) -> MachineFault:
    """A fault at an operation."""
    return MachineFault(f"'{op.name}' {what}", op)


@dataclass
class Memory:
    """A flat array with who touched each element; a block's own memory has a leading axis of blocks.

    `writer` and `reader` are None for memory that the kernel never stores to: it cannot race. `arriving`
    and `leaving` are the numbers of the asynchronous copies that fill or read an element, `bulk` the number
    of the bulk copy that filled it since the last barrier, `unfenced` whether threads wrote it since the
    last fence, `unmet` whether its block touched it since its cluster met; None as long as there are none.
    `teams` are those of named barriers. `extents` are those of a tensor, `item_bytes` the bytes of an
    element on the machine.
    """

    data: Array
    shared: bool
    name: str
    writer: Array | None = None
    reader: Array | None = None
    initialised: Array | None = None
    arriving: Array | None = None
    leaving: Array | None = None
    bulk: Array | None = None
    unfenced: Array | None = None
    unmet: Array | None = None
    teams: Teams | None = None
    extents: tuple[int, ...] = ()
    item_bytes: int = 4
    own: int = 0
    """Elements of each thread, one thread's after the other's; 0 if threads share the memory."""

    def watch(self) -> None:
        """Note from now on who touches what."""
        self.writer = np.full(self.data.shape, NOBODY, np.int32)
        self.reader = np.full(self.data.shape, NOBODY, np.int32)

    def has_stores(self, blocks: Array) -> bool:
        """Whether threads of some blocks stored to it since the last barrier."""
        assert self.writer is not None
        stored = self.writer[blocks] != NOBODY
        if self.arriving is not None:
            stored &= self.arriving[blocks] == NOBODY
        return bool(np.any(stored))

    def forget(self, blocks: Array) -> None:
        """A barrier passed in some blocks: what happened before it cannot race any more."""
        for touched in (self.writer, self.reader, self.bulk):
            if touched is not None:
                touched[blocks] = NOBODY
        if self.teams is not None:
            self.teams.forget(blocks)

    def forget_clusters(self, blocks: Array) -> None:
        """A barrier passed in some blocks and in all others of their clusters."""
        if self.unmet is not None:
            self.unmet[blocks] = False

    def meet(self, low: int, high: int) -> None:
        """Threads `low` to `high` passed a barrier: what they did before cannot race among them any more."""
        assert self.teams is not None
        assert self.writer is not None
        assert self.reader is not None
        self.teams.meet((self.writer, self.reader), low, high)

    def _others(self, touched: Array, numbers: Array) -> Array:
        """Where another thread than `numbers` is noted, and no team of theirs."""
        if self.teams is not None:
            touched = self.teams.without(touched, numbers)
        return (touched != NOBODY) & (touched != numbers)

    def read(self, op: Operation, numbers: Array, flat: Array) -> None:
        """Threads `numbers` read elements, given by their place in all of the data.

        Raises MachineFault if they must not.
        """
        if self.writer is None or self.reader is None:
            return
        if np.any(self._others(self.writer.reshape(-1)[flat], numbers)):
            raise fault(op, f"races: reads an element of {self.name} another thread wrote")
        if self.initialised is not None and not np.all(self.initialised.reshape(-1)[flat]):
            raise fault(op, f"reads an element of {self.name} that nobody has initialised")
        if self.unmet is not None:
            self.unmet.reshape(-1)[flat] = True
        reader = self.reader.reshape(-1)
        before = reader[flat]
        if self.teams is not None:
            before = self.teams.without(before, numbers)
            self.teams.read(flat, before, numbers)
        new = (before != numbers) & (before != SEVERAL)
        if not np.any(new):
            return
        flat, before, numbers = flat[new], before[new], np.broadcast_to(numbers, new.shape)[new]
        reader[flat] = numbers  # of several readers now, one stays and the others see it
        several = (before != NOBODY) | (reader[flat] != numbers)
        reader[flat[several]] = SEVERAL

    def write(self, op: Operation, numbers: Array, where: tuple[Array, ...]) -> None:
        """Threads `numbers` write elements; raises MachineFault if they must not."""
        assert self.writer is not None
        assert self.reader is not None
        for touched, verb in ((self.writer[where], "wrote"), (self.reader[where], "read")):
            if np.any(self._others(touched, numbers)):
                raise fault(op, f"races: writes an element of {self.name} another thread {verb}")
        self.written(numbers, where)
        if np.any(self.writer[where] != numbers):
            raise fault(op, f"races: two threads write one element of {self.name}")
        if self.initialised is not None:
            self.initialised[where] = True

    def written(self, numbers: Array, where: tuple[Array, ...]) -> None:
        """Note that threads `numbers` wrote elements."""
        assert self.writer is not None
        self.writer[where] = numbers
        for marks in (self.unfenced, self.unmet):
            if marks is not None:
                marks[where] = True

    def add(self, op: Operation, numbers: Array, where: tuple[Array, ...]) -> None:
        """Threads `numbers` add to elements, atomically; raises MachineFault if they must not."""
        assert self.writer is not None
        assert self.reader is not None
        writer, reader = self.writer[where], self.reader[where]
        if self.teams is not None:
            writer = self.teams.without(writer, numbers)
        free = (writer == NOBODY) | (writer == ATOMIC)
        for wrong, verb in (
            (~free & (writer != numbers), "wrote"),
            (self._others(reader, numbers), "read"),
        ):
            if np.any(wrong):
                raise fault(op, f"races: adds to an element of {self.name} another thread {verb}")
        if self.initialised is not None and not np.all(self.initialised[where]):
            raise fault(op, f"adds to an element of {self.name} that nobody has initialised")
        self.writer[tuple(w[free] for w in where)] = ATOMIC
        if self.unfenced is not None:
            self.unfenced[where] = True


@dataclass
class Touched:
    """The elements that active threads touch, in rows: `where` indexes the memory's data.

    Each thread has its row, or one element if there are no rows; `slots` and `threads` say which thread of
    which block it is, `numbers` which of the grid.
    """

    slots: Array
    threads: Array
    numbers: Array
    where: tuple[Array, ...]

    def flat(self, memory: Memory) -> Array:
        """The same elements by their place in all of the memory's data."""
        *outer, inner = self.where
        return outer[0] * memory.data.shape[-1] + inner if outer else inner
