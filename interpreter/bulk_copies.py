"""What the copy engine and the barriers that it completes on mean on the lockstep machine.

A box arrives as late as the waits allow: when a thread waits for the phase of its barrier that is not
complete yet, and then copies arrive, in an order that `SEED` decides, until it is. What arrived is visible to
threads that have waited for that phase and, after a `kernel.barrier`, to all. A wait that nothing can end is
a deadlock: as all threads run in step, nobody else can still arrive.

What is multicast arrives in all blocks of a cluster, which must have met after what was there was read.

Threads and the copy engine see each other's writes to shared memory only through a fence: after a barrier is
initialised, and between what threads wrote to a slab and the copy that fills it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue

from ..dialects import kernel
from ..dialects.mbarriers import BarrierNumberOp
from ..dialects.scalars import storage_bytes
from ..dialects.tensor_map import swizzled
from .device_memory import NOBODY, Memory, Touched, fault
from .flights import Flight, Flights
from .lanes import Lanes
from .numpy_types import Array

SEED = 0
PHASES = 1 << 32
"""A mark of filled elements is the number of the barrier times this, plus the phase."""


@dataclass
class Barriers:
    """The barriers of all blocks, an axis of blocks and one of barriers; `count` is 0 before the first phase.

    `pending` arrivals and `bytes` are missing in the current phase, the number of which is `phase`; `seen`
    is how many phases each thread has seen complete. `writer` initialised it since the last barrier; `met`
    says whether the cluster has met since.
    """

    count: Array
    pending: Array
    bytes: Array
    phase: Array
    writer: Array
    fenced: Array
    met: Array
    seen: Array


class BulkCopies:
    """The barriers of a machine and the boxes on their way."""

    def __init__(self, lanes: Lanes, flights: Flights):
        self.lanes = lanes
        self.flights = flights
        blocks, threads = lanes.shape
        none = np.zeros((blocks, 0), np.int64)
        seen = np.zeros((blocks, 0, threads), np.int64)
        self.barriers = Barriers(none, none, none, none, none, none, none, seen)
        self.first: dict[SSAValue, tuple[int, int]] = {}
        self.started: list[tuple[Flight, tuple[Array, Array]]] = []
        self.random = np.random.default_rng(SEED)
        flights.watchers.append(self._check_seen)
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            kernel.MbarriersOp: self._declare,
            kernel.MbarrierInitOp: self._init,
            kernel.MbarrierExpectBytesOp: self._expect,
            kernel.MbarrierWaitOp: self._wait,
            kernel.FenceOp: self._fence,
            kernel.BulkCopyOp: self._copy,
        }

    # ------------------------------------------------------------------ barriers

    def _declare(self, op: kernel.MbarriersOp) -> None:
        state = self.barriers
        count = op.count.value.data
        self.first[op.result] = (state.count.shape[1], count)
        for name, old in vars(state).items():
            new = np.zeros((old.shape[0], count, *old.shape[2:]), np.int64)
            setattr(state, name, np.concatenate([old, new], axis=1))
        state.writer[:, -count:] = NOBODY

    def _which(
        self, op: Operation, value: SSAValue, map: AffineMapAttr, operands: tuple[SSAValue, ...]
    ) -> tuple[Touched, tuple[Array, Array]]:
        """The active threads, and the barrier that each names."""
        first, count = self.first[value]
        flat = self.lanes.offsets(op, map.data.results, operands, (count,))
        lanes = self.lanes.touched(Memory(np.zeros(0), True, ""), flat)
        slots, numbers = lanes.where
        return lanes, (slots, numbers + first)

    def _check_ready(self, op: Operation, lanes: Touched, at: tuple[Array, Array]) -> None:
        state = self.barriers
        if np.any(state.count[at] == 0):
            raise fault(op, "uses an mbarrier that is not initialised")
        writer = state.writer[at]
        if np.any((writer != NOBODY) & (writer != lanes.numbers)):
            raise fault(op, "races: uses an mbarrier another thread initialised")

    def _init(self, op: BarrierNumberOp) -> None:
        lanes, at = self._which(op, op.barriers, op.map, tuple(op.indices))
        state = self.barriers
        if np.any(state.count[at] != 0):
            raise fault(op, "initialises an mbarrier that is initialised already")
        state.writer[at] = lanes.numbers
        if np.any(state.writer[at] != lanes.numbers):
            raise fault(op, "races: two threads initialise one mbarrier")
        state.count[at] = state.pending[at] = op.number.value.data

    def _expect(self, op: BarrierNumberOp) -> None:
        lanes, at = self._which(op, op.barriers, op.map, tuple(op.indices))
        self._check_ready(op, lanes, at)
        state = self.barriers
        np.subtract.at(state.pending, at, 1)
        np.add.at(state.bytes, at, op.number.value.data)
        if np.any(state.pending[at] < 0):
            most = int((-state.pending[at]).max())
            raise fault(op, f"arrives at an mbarrier {most} times more than its phase has arrivals")
        self._complete()

    def _complete(self) -> None:
        """Begin the next phase where nothing is missing any more."""
        state = self.barriers
        done = (state.count > 0) & (state.pending == 0) & (state.bytes == 0)
        state.phase += done
        state.pending[done] = state.count[done]

    def _wait(self, op: kernel.MbarrierWaitOp) -> None:
        lanes, at = self._which(op, op.barriers, op.map, tuple(op.indices))
        self._check_ready(op, lanes, at)
        state = self.barriers
        value = self.lanes.index(op, op.parity.data.results[0], tuple(op.parity_indices))
        parity = self.lanes.full(value)[self.lanes.full(self.lanes.mask)]
        if np.any((parity != 0) & (parity != 1)):
            values = ", ".join(map(str, np.unique(parity)))
            raise fault(op, f"waits for parity {values}; parities are 0 and 1")
        for number in self.random.permutation(len(self.started)):
            flight, to = self.started[number]
            stuck = np.zeros(state.phase.shape, bool)
            waiting = state.phase[at] % 2 == parity
            stuck[tuple(a[waiting] for a in at)] = True
            self._arrive(flight, to, flight.flying & stuck[to])
        self.started = [each for each in self.started if np.any(each[0].flying)]
        self.flights.drop_arrived()
        waiting = np.flatnonzero(state.phase[at] % 2 == parity)
        if waiting.size:
            slot, number = (int(a[waiting[0]]) for a in at)
            raise fault(op, f"waits for ever: {self._missing(slot, number)}")
        where = (*at, lanes.threads)
        state.seen[where] = np.maximum(state.seen[where], state.phase[at])

    def _missing(self, slot: int, number: int) -> str:
        """What keeps a barrier in its phase."""
        state = self.barriers
        phase, bytes = int(state.phase[slot, number]), int(state.bytes[slot, number])
        said = f"phase {phase} of the mbarrier, of parity {phase % 2}, "
        if pending := int(state.pending[slot, number]):
            return f"{said}lacks {pending} of {state.count[slot, number]} arrivals"
        if bytes < 0:
            return f"{said}gets {-bytes} bytes more than were expected"
        return f"{said}lacks {bytes} bytes, and no copy is on its way"

    def has_new_barriers(self, blocks: Array) -> bool:
        """Whether some were initialised in some blocks since all threads met."""
        return bool(np.any(self.barriers.writer[blocks] != NOBODY))

    def barrier(self, blocks: Array, of_cluster: bool) -> None:
        """All threads of some blocks meet, or of all blocks of their clusters."""
        self.barriers.writer[blocks] = NOBODY
        if of_cluster:
            self.barriers.met[blocks] = self.barriers.count[blocks] > 0

    def _fence(self, op: Operation) -> None:
        active = self.lanes.full(self.lanes.mask)
        blocks, threads = active.shape

        def fenced(writer: Array) -> Array:
            """Where the one who wrote is active, or where all know of it and anyone is."""
            known = active[np.arange(blocks)[:, None], writer % threads]
            return np.where(writer == NOBODY, np.any(active, axis=1, keepdims=True), known)

        self.barriers.fenced |= fenced(self.barriers.writer) & (self.barriers.count > 0)
        for memory in self.lanes.memories.values():
            if memory.unfenced is not None and memory.writer is not None:
                memory.unfenced &= ~fenced(memory.writer)

    # ------------------------------------------------------------------ copies

    def _copy(self, op: kernel.BulkCopyOp) -> None:
        threads, at = self._which(op, op.barriers, op.barrier_map, tuple(op.barrier_indices))
        if not threads.numbers.size:
            return
        self._check_ready(op, threads, at)
        memory, target = self._target(op)
        box = self._box(op)
        if op.receivers > 1:
            at, target, box = self._receivers(op, memory, at, target, box)
        if not np.all(self.barriers.fenced[at]):
            raise fault(op, "completes on an mbarrier initialised without a fence since")
        self.flights.check(op, memory, target, "copies to")
        assert memory.unfenced is not None
        if np.any(memory.unfenced[target.where]):
            raise fault(
                op, f"fills an element of {memory.name} that threads wrote without a fence since"
            )
        memory.write(op, target.numbers[:, None], target.where)
        memory.unfenced[target.where] = False

        def state(row: int) -> str:
            slot, number = int(at[0][row]), int(at[1][row])
            phase = int(self.barriers.phase[slot, number])
            return f"phase {phase} of its mbarrier is not complete"

        flight = Flight(op, memory, target.where, box, state)
        self.flights.start(flight)
        self.started.append((flight, at))

    def _receivers(
        self,
        op: kernel.BulkCopyOp,
        memory: Memory,
        at: tuple[Array, Array],
        target: Touched,
        box: Array,
    ) -> tuple[tuple[Array, Array], Touched, Array]:
        """The barriers, the elements and what fills them, in each block of the clusters that copy."""
        count = op.receivers
        if count != self.lanes.cluster:
            raise fault(op, f"arrives in {count} blocks; a cluster has {self.lanes.cluster}")
        rows = np.repeat(np.arange(len(box)), count)
        slots = (at[0][:, None] // count * count + np.arange(count)).reshape(-1)
        where = target.where[1][rows]
        others = slots != at[0][rows]
        at = (slots, at[1][rows])
        if not np.all(self.barriers.met[at]):
            raise fault(
                op, "completes on an mbarrier that its cluster has not met since it was initialised"
            )
        to = (np.broadcast_to(slots[:, None], where.shape), where)
        assert memory.unmet is not None
        if np.any(memory.unmet[tuple(w[others] for w in to)]):
            raise fault(
                op,
                f"fills an element of {memory.name} that threads of another block touched, and the "
                "cluster has not met since",
            )
        numbers = target.numbers[rows]
        return at, Touched(slots, target.threads[rows], numbers, to), box[rows]

    def _target(self, op: kernel.BulkCopyOp) -> tuple[Memory, Touched]:
        """The elements of shared memory that each active thread fills, in the order of the box."""
        memory, flat = self.lanes.place(op, op.destination, op.map, op.indices)
        target = self.lanes.touched(memory, flat)
        slots, first = target.where
        size, box = storage_bytes(op.box.element), op.box
        wrong = np.flatnonzero(first * size % box.alignment)
        if wrong.size:
            raise fault(
                op,
                f"is misaligned: offset {first[wrong[0]] * size} of {memory.name}, in bytes, is no "
                f"multiple of {box.alignment}",
            )
        if np.any(first + box.count > memory.data.shape[-1]):
            raise fault(op, f"is out of bounds: the box ends behind {memory.name}")
        order = [swizzled(i * size, box.swizzle) // size for i in range(box.count)]
        where = first[:, None] + np.array(order)
        target.where = (np.broadcast_to(slots[:, None], where.shape), where)
        return memory, target

    def _box(self, op: kernel.BulkCopyOp) -> Array:
        """The elements of the box that each active thread copies; zeros outside of the tensor."""
        source = self.lanes.memories[op.tensor_map]
        active = self.lanes.full(self.lanes.mask)
        inside: Array = np.ones((1, 1), bool)
        flat: Array = np.zeros((1, 1), np.int64)
        steps = np.indices(op.box.extents).reshape(len(op.box.extents), -1)
        for expr, step, extent in zip(op.box_map.data.results, steps, source.extents, strict=True):
            first = self.lanes.index(op, expr, tuple(op.box_indices))
            position = self.lanes.full(first)[active][:, None] + step
            inside = inside & (position >= 0) & (position < extent)
            flat = flat * extent + np.clip(position, 0, max(extent - 1, 0))
        if not source.data.size:
            return np.zeros(flat.shape, source.data.dtype)
        return np.where(inside, source.data[flat], source.data.dtype.type(0))

    def _arrive(self, flight: Flight, to: tuple[Array, Array], rows: Array) -> None:
        if not np.any(rows):
            return
        state, memory = self.barriers, flight.memory
        at = tuple(a[rows] for a in to)
        assert isinstance(flight.op, kernel.BulkCopyOp)
        assert memory.writer is not None
        self.flights.arrive(flight, rows)
        where = tuple(w[rows] for w in flight.where)
        memory.writer[where] = NOBODY
        if memory.bulk is None:
            memory.bulk = np.full(memory.data.shape, NOBODY, np.int64)
        memory.bulk[where] = (at[1] * PHASES + state.phase[at])[:, None]
        np.subtract.at(state.bytes, at, flight.op.box.bytes)
        self._complete()

    def _check_seen(self, op: Operation, memory: Memory, lanes: Touched, verb: str) -> None:
        """Raise MachineFault if a thread touches what was copied in a phase that it has not waited for."""
        if memory.bulk is None:
            return
        marks = memory.bulk[lanes.where]
        threads = lanes.threads if marks.ndim == 1 else lanes.threads[:, None]
        slots = lanes.where[0]
        seen = self.barriers.seen[slots, np.maximum(marks, 0) // PHASES, threads]
        if np.any((marks != NOBODY) & (seen <= marks % PHASES)):
            raise fault(
                op,
                f"{verb} an element of {memory.name} that a bulk copy filled, without waiting for "
                "its mbarrier",
            )
