"""What copies, multiplies and waits at once in a pipelined loop, by the machine that executes Kernel IR.

One block of a kernel runs, on arrays of zeros, for the first turns of its loop. The clock counts the
operations that its threads begin, all in step: how long one takes nobody says here, but what is on its way
while others run is seen. A copy is on its way until the wait that lets it arrive, as late as it may; a
product of a warpgroup until the one that completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from ..analysis.launch_groups import array_of
from ..dialects import kernel
from ..dialects.inside import ops_in, ops_of
from ..dialects.loop import LoadOp, StoreOp
from ..dialects.sizes import Size, shape_of
from ..dialects.tile import SHARED
from ..interpreter.launches import cluster_of
from ..interpreter.numpy_types import Array, numpy_dtype
from ..interpreter.simt import SimtMachine, element_of, memories_of
from .stages import line_of

TURNS = 6
"""Turns of the loop that are shown at most: a pipeline of four slabs is full by then, and has gone round."""
OPERATIONS = 4000
"""After so many operations three turns are enough: each takes a few tenths of a millisecond here."""

ROWS = ("copies", "products", "waits", "barriers", "loads", "stores")
COPIES, PRODUCTS, WAITS, BARRIERS, LOADS, STORES = range(len(ROWS))

_COPIES = (kernel.AsyncCopyOp, kernel.BulkCopyOp)
_WAITS = (kernel.AsyncWaitOp, kernel.MbarrierWaitOp)
_AT_ONCE: dict[type[Operation], int] = {
    kernel.MmaOp: PRODUCTS,
    kernel.AsyncWaitOp: WAITS,
    kernel.MbarrierWaitOp: WAITS,
    kernel.WgmmaWaitOp: WAITS,
    kernel.BarrierOp: BARRIERS,
    kernel.NamedBarrierOp: BARRIERS,
    LoadOp: LOADS,
    kernel.VectorLoadOp: LOADS,
    StoreOp: STORES,
    kernel.VectorStoreOp: STORES,
}
"""Operations that are over before the next begins, with their rows; accesses are those of global memory."""


@dataclass
class _Event:
    row: int
    op: Operation
    begin: int
    turn: int | None
    end: int | None = None


class _ShownEnough(Exception):
    """The turns that are shown are over."""


class _Watched(SimtMachine):
    """The machine, and what each operation begins and ends."""

    def __init__(self, blocks: Array, threads: int, loop: scf.ForOp):
        super().__init__(blocks, threads)
        self.begin_of_turn = loop.body.block.first_op
        self.end_of_loop = loop
        self.clock = 0
        self.turn: int | None = None
        self.events: list[_Event] = []
        self.copies: dict[int, _Event] = {}
        self.products: dict[int, _Event] = {}

    def execute(self, op: Operation) -> None:
        """Execute one operation. Raises _ShownEnough at the first one of a turn that is not shown."""
        if op is self.begin_of_turn:
            self.turn = 0 if self.turn is None else self.turn + 1
            if self.turn >= (TURNS // 2 if self.clock > OPERATIONS else TURNS):
                raise _ShownEnough
        begin, self.clock = self.clock, self.clock + 1
        super().execute(op)
        if op is self.end_of_loop:
            self.turn = None
        if (row := _AT_ONCE.get(type(op))) is not None and not _is_inside(op):
            self.events.append(_Event(row, op, begin, self.turn, self.clock))
        flying = {number: flight.op for number, flight in self.flights.flights.items()}
        self._follow(self.copies, flying, COPIES, begin)
        pending = {id(product): product.op for product in self.warpgroups.pending}
        self._follow(self.products, pending, PRODUCTS, begin)

    def _follow(
        self, known: dict[int, _Event], now: dict[int, Operation], row: int, begin: int
    ) -> None:
        """Note what has begun and what is over."""
        for number in [each for each in known if each not in now]:
            known.pop(number).end = self.clock
        for number, op in now.items():
            if number not in known:
                known[number] = _Event(row, op, begin, self.turn)
                self.events.append(known[number])


def timeline_of(module: ModuleOp, name: str) -> dict[str, Any] | str:
    """The timeline of a kernel of Kernel IR as JSON data, or why it has none."""
    launches = [op for op in ops_of(module, kernel.LaunchOp) if op.kernel.root_reference.data == name]
    functions = [op for op in ops_of(module, kernel.FuncOp) if op.sym_name.data == name]
    if not launches or not functions:
        return "it is not launched as it is"
    function = functions[0]
    loop = _pipelined_loop(function)
    if loop is None:
        return "it has no loop that copies to shared memory"
    arguments = _zeros(launches[0].arguments)
    if arguments is None or function.size_arguments:
        return "its sizes are known at run time only"
    machine = _Watched(np.arange(cluster_of(function)), function.threads.value.data, loop)
    machine.memories.update(memories_of(function, arguments))
    machine.cluster = cluster_of(function)
    machine.has_named_barriers = bool(ops_of(function, kernel.NamedBarrierOp))
    with np.errstate(all="ignore"):
        try:
            machine.run(function.body.block)
        except _ShownEnough:
            pass
    return {
        "loop": loop.body.block.args[0].name_hint or "loop",
        "line": line_of(loop),
        "unit": "operations that a block begins",
        "end": machine.clock,
        "rows": list(ROWS),
        "events": [
            {
                "row": event.row,
                "name": f"{event.op.name.partition('.')[2]}{_of(event.op)}",
                "begin": event.begin,
                "end": machine.clock if event.end is None else event.end,
                "line": line_of(event.op),
                "turn": event.turn,
            }
            for event in machine.events
        ],
    }


def _pipelined_loop(function: kernel.FuncOp) -> scf.ForOp | None:
    """The outermost loop that copies to shared memory, and waits for what earlier turns copied."""
    for loop in ops_of(function, scf.ForOp):
        inside = ops_in(loop)
        if all(any(isinstance(op, kinds) for op in inside) for kinds in (_COPIES, _WAITS)):
            return loop
    return None


def _zeros(arguments: Sequence[SSAValue]) -> list[Array] | None:
    """Arrays for the arguments of a launch; None if a size of one is not known."""
    made: list[Array] = []
    for value in arguments:
        kind = array_of(value).type
        assert isinstance(kind, MemRefType)
        shape = shape_of(kind)
        if any(isinstance(extent, Size) for extent in shape):
            return None
        made.append(np.zeros(shape, numpy_dtype(element_of(kind))))
    return made


def _memory_of(op: Operation) -> SSAValue | None:
    """The memory that an operation accesses, or copies to."""
    match op:
        case LoadOp() | StoreOp() | kernel.VectorLoadOp() | kernel.VectorStoreOp():
            return op.memref
        case kernel.AsyncCopyOp() | kernel.BulkCopyOp():
            return op.destination
        case _:
            return None


def _is_inside(op: Operation) -> bool:
    """Whether an access is of memory inside the multiprocessor."""
    memory = _memory_of(op)
    if memory is None:
        return False
    return isinstance(memory.owner, Operation) or getattr(memory.type, "memory_space", None) == SHARED


def _of(op: Operation) -> str:
    memory = _memory_of(op)
    return "" if memory is None else f" {memory.name_hint or 'memory'}"
