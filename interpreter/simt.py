"""What `kernel` means: a lockstep machine that runs a whole grid at once and finds its faults.

Every value is an array that broadcasts over (blocks, threads). Control flow runs under a mask of active
threads. The machine reports, with the location of the operation:

* a *race*: two threads touch one element of shared memory, one of them writing, with no barrier between;
  or two threads of a grid do so in global memory, where no barrier helps;
* a *divergent barrier* or *shuffle*: not all threads of a block, or of a warp, take part;
* an access *out of bounds*, and a read of shared memory that nobody has *initialised*.

It can also run some of the blocks only, and only the operations that decide where a kernel stores
(`launches.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..analysis.stores import KernelFunc, stored_arguments
from ..dialects import cuda, kernel, loop
from ..dialects.kernel import WARP
from ..dialects.sizes import static_shape
from .async_copies import AsyncCopies, Elements
from .device_memory import MachineFault, Memory, fault
from .numpy_types import Array
from .poison import poisoned
from .scalar_ops import NotExecutable, evaluate
from .tensor_ir import ProgramError, evaluate_index


class SimtMachine:
    """Executes one kernel on blocks of a grid, given by their numbers; subclassed for `cuda`.

    `only` are the operations to execute, all of them if it is None; with it, stores leave a mark in the
    memory but no value.
    """

    def __init__(self, blocks: Array, threads: int, only: Container[Operation] | None = None):
        self.shape = (len(blocks), threads)
        self.block_id = blocks.astype(np.int64)[:, None]
        self.thread_id = np.arange(threads, dtype=np.int64)[None, :]
        self.slot = np.arange(len(blocks), dtype=np.int64)[:, None]
        self.only = only
        self.mask: Array = np.ones((1, 1), bool)
        self.copies = AsyncCopies(*self.shape)
        self.values: dict[SSAValue, Array] = {}
        self.memories: dict[SSAValue, Memory] = {}
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            kernel.ThreadIdOp: self._thread_id,
            kernel.BlockIdOp: self._block_id,
            kernel.SharedOp: self._shared,
            kernel.BarrierOp: self.barrier,
            kernel.ShuffleOp: self.shuffle,
            kernel.AsyncCopyOp: self._async_copy,
            kernel.AsyncCommitOp: self.commit,
            kernel.AsyncWaitOp: self.wait,
            kernel.AssertOp: self._assert,
            loop.LoadOp: self._load,
            loop.StoreOp: self._store,
            loop.IndexOp: self._index,
            loop.TestOp: self.test,
            scf.ForOp: self._for,
            scf.IfOp: self._if,
        }

    # ------------------------------------------------------------------ running

    def run(self, block: Block) -> Sequence[SSAValue]:
        """Execute a block; gives the operands of its `scf.yield`."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                return op.arguments
            if self.only is None or op in self.only:
                self.execute(op)
        return ()

    def execute(self, op: Operation) -> None:
        """Execute one operation."""
        if (handler := self.handlers.get(type(op))) is not None:
            handler(op)
            return
        result = evaluate(op, [self.values[v] for v in op.operands])
        if result is None:
            raise NotExecutable(f"'{op.name}'")
        self.values[op.results[0]] = result

    def fault(self, op: Operation, what: str) -> MachineFault:
        """A fault at an operation."""
        return fault(op, what)

    def finish(self) -> None:
        """The kernel ends; raises MachineFault if it must not yet."""
        self.copies.finish()

    def full(self, value: Array) -> Array:
        """A value with one element per thread of the grid."""
        return np.broadcast_to(value, self.shape)

    # ------------------------------------------------------------------ identity

    def _thread_id(self, op: kernel.ThreadIdOp) -> None:
        self.values[op.result] = self.thread_id

    def _block_id(self, op: kernel.BlockIdOp) -> None:
        self.values[op.result] = self.block_id

    def _index(self, op: loop.IndexOp) -> None:
        dims = [self.values[v] for v in op.operands_]
        self.values[op.result] = evaluate_index(op.map.data.results[0], dims)

    def test(self, op: loop.TestOp | cuda.TestOp) -> None:
        """Whether all of some conditions hold."""
        dims = [self.values[v] for v in op.operands_]
        holds = np.ones((1, 1), bool)
        for constraint in op.set.data.constraints:
            holds = holds & (evaluate_index(constraint.lhs, dims) >= 0)
        self.values[op.result] = holds

    def _assert(self, op: kernel.AssertOp) -> None:
        if np.any(~self.values[op.condition] & self.mask):
            raise ProgramError(op.message.data)

    # ------------------------------------------------------------------ cooperation

    def _shared(self, op: kernel.SharedOp) -> None:
        memref = op.result.type
        assert isinstance(memref, MemRefType)
        self.allocate_shared(op.result, prod(static_shape(memref)), memref.element_type)

    def allocate_shared(self, value: SSAValue, count: int, element: Attribute) -> None:
        """Shared memory of every block, holding nothing yet."""
        shape = (self.shape[0], count)
        memory = Memory(poisoned(element, shape), True, value.name_hint or "shared")
        memory.watch()
        memory.initialised = np.zeros(shape, bool)
        self.memories[value] = memory

    def barrier(self, op: Operation) -> None:
        """All threads of a block meet, or none come."""
        active = self.full(self.mask)
        arrived: Array = np.any(active, axis=1)
        present: Array = np.all(active, axis=1)
        if np.any(arrived & ~present):
            raise self.fault(op, "is reached by some threads of a block only: divergent barrier")
        for memory in self.memories.values():
            if memory.shared:
                memory.forget(arrived)

    def shuffle(self, op: kernel.ShuffleOp | cuda.ShuffleXorOp) -> None:
        """Exchange values between the lanes of a warp."""
        threads = self.shape[1]
        source = np.arange(threads) ^ op.lane_mask.value.data
        if np.any(source >= threads):
            raise self.fault(op, f"reads a lane that a block of {threads} threads does not have")
        active = self.full(self.mask)
        for first in range(0, threads, WARP):
            warp = active[:, first : first + WARP]
            if np.any(warp.any(axis=1) & ~warp.all(axis=1)):
                raise self.fault(op, "is reached by some lanes of a warp only: divergent shuffle")
        self.values[op.result] = self.full(self.values[op.value])[:, source]

    # ------------------------------------------------------------------ memory

    def offsets(
        self,
        op: Operation,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        shape: Sequence[int],
        width: int = 1,
    ) -> Array:
        """Flat offsets of an access to `width` neighbours, checked against the extents for active threads."""
        dims = [self.values[v] for v in operands]
        flat: Array = np.zeros((1, 1), np.int64)
        for axis, (expr, extent) in enumerate(zip(exprs, shape, strict=True)):
            index = evaluate_index(expr, dims)
            end = extent if axis < len(shape) - 1 else extent - width + 1
            if index.min() < 0 or index.max() >= end:
                wrong = ((index < 0) | (index >= end)) & self.mask
                if np.any(wrong):
                    bad = np.broadcast_to(index, wrong.shape)[wrong]
                    raise self.fault(
                        op,
                        f"is out of bounds: index {bad.min()}..{bad.max() + extent - end} of axis "
                        f"{axis}, whose extent is {extent}",
                    )
                index = np.clip(index, 0, max(end - 1, 0))
            flat = flat * extent + index
        return flat

    def _lanes(self, memory: Memory, flat: Array) -> tuple[Array, Array, tuple[Array, ...]]:
        """The active threads, their numbers in the grid, and the elements they touch."""
        active = self.full(self.mask)
        numbers = (self.block_id * self.shape[1] + self.thread_id)[active]
        where = self.full(flat)[active]
        if memory.shared:
            return active, numbers, (self.full(self.slot)[active], where)
        return active, numbers, (where,)

    def load(self, op: Operation, memory: Memory, flat: Array) -> Array:
        """Read one element per active thread."""
        if memory.writer is None:
            return memory.data[flat] if memory.data.size else np.zeros((1, 1), memory.data.dtype)
        active, numbers, where = self._lanes(memory, flat)
        result = np.zeros(self.shape, memory.data.dtype)
        if not numbers.size:
            return result
        self.copies.check(op, memory, where, "reads", leaving=False)
        memory.read(op, numbers, where)
        result[active] = memory.data[where]
        return result

    def store(self, op: Operation, memory: Memory, flat: Array, value: SSAValue) -> None:
        """Write one element per active thread."""
        active, numbers, where = self._lanes(memory, flat)
        if not numbers.size:
            return
        self.copies.check(op, memory, where, "writes", leaving=True)
        memory.write(op, numbers, where)
        if self.only is None:
            memory.data[where] = self.full(self.values[value])[active]

    def _load(self, op: loop.LoadOp) -> None:
        memref = op.memref.type
        assert isinstance(memref, MemRefType)
        flat = self.offsets(op, op.map.data.results, op.indices, static_shape(memref))
        self.values[op.result] = self.load(op, self.memories[op.memref], flat)

    def _store(self, op: loop.StoreOp) -> None:
        memref = op.memref.type
        assert isinstance(memref, MemRefType)
        flat = self.offsets(op, op.map.data.results, op.indices, static_shape(memref))
        self.store(op, self.memories[op.memref], flat, op.value)

    # ------------------------------------------------------------------ asynchronous copies

    def _async_copy(self, op: kernel.AsyncCopyOp) -> None:
        source, destination = op.source.type, op.destination.type
        assert isinstance(source, MemRefType)
        assert isinstance(destination, MemRefType)
        width = op.vector.value.data
        to = self.offsets(op, op.map.data.results, op.indices, static_shape(destination), width)
        present = self.present(op.condition)
        outer, self.mask = self.mask, self.mask & present
        exprs, shape = op.source_map.data.results, static_shape(source)
        origin = self.offsets(op, exprs, op.source_indices, shape, width)
        self.mask = outer
        memories = self.memories[op.source], self.memories[op.destination]
        self.start_copy(op, source.element_type, memories, (origin, to), present, width)

    def present(self, condition: SSAValue | None) -> Array:
        """Which threads copy data; the others copy zeros."""
        return np.ones((1, 1), bool) if condition is None else self.values[condition]

    def start_copy(
        self,
        op: Operation,
        element: Attribute,
        memories: tuple[Memory, Memory],
        offsets: tuple[Array, Array],
        present: Array,
        width: int,
    ) -> None:
        """Each active thread starts to copy `width` neighbours from one memory to another."""
        if not np.any(self.mask):
            return
        ends = [
            (memory, self.neighbours(op, memory, flat, width, where))
            for memory, flat, where in zip(
                memories, offsets, (self.mask & present, self.mask), strict=True
            )
        ]
        active = self.full(self.mask)
        self.copies.start(op, element, ends[0], self.full(present)[active], ends[1])

    def neighbours(
        self, op: Operation, memory: Memory, flat: Array, width: int, checked: Array
    ) -> Elements:
        """The elements that active threads touch; where `checked`, their offsets must be aligned."""
        if np.any((flat % width != 0) & checked):
            wrong = self.full(flat)[self.full((flat % width != 0) & checked)][0]
            raise self.fault(
                op, f"is misaligned: offset {wrong} of {memory.name} is no multiple of {width}"
            )
        active, numbers, where = self._lanes(memory, flat)
        rows = [w[:, None] + np.zeros(width, np.int64) for w in where]
        rows[-1] = rows[-1] + np.arange(width)
        slots, threads = np.nonzero(active)
        return Elements(slots, threads, numbers, tuple(rows))

    def commit(self, op: Operation) -> None:
        """Active threads make a group of what they copy."""
        self.copies.commit(self.full(self.mask))

    def wait(self, op: kernel.AsyncWaitOp | cuda.CpAsyncWaitOp) -> None:
        """Active threads wait for all but the newest of their groups."""
        self.copies.wait(self.full(self.mask), op.pending.value.data)

    # ------------------------------------------------------------------ control flow

    def _for(self, op: scf.ForOp) -> None:
        low, high, step = (self.values[v] for v in (op.lb, op.ub, op.step))
        if low.size == high.size == step.size == 1:
            self._uniform_for(op, range(int(low.item()), int(high.item()), int(step.item())))
            return
        counter, *arguments = op.body.block.args
        carried = [self.values[v] for v in op.iter_args]
        outer = self.mask
        index = low
        while True:
            active = outer & (index < high)
            if not np.any(active):
                break
            self.mask = active
            self.values[counter] = index
            self.values.update(zip(arguments, carried, strict=True))
            new = [self.values[v] for v in self.run(op.body.block)]
            carried = [np.where(active, n, c) for n, c in zip(new, carried, strict=True)]
            index = index + step
        self.mask = outer
        self.values.update(zip(op.res, carried, strict=True))

    def _uniform_for(self, op: scf.ForOp, counters: range) -> None:
        """A loop that all threads run equally often."""
        counter, *arguments = op.body.block.args
        carried = [self.values[v] for v in op.iter_args]
        for index in counters:
            self.values[counter] = np.asarray(index, np.int64)
            self.values.update(zip(arguments, carried, strict=True))
            carried = [self.values[v] for v in self.run(op.body.block)]
        self.values.update(zip(op.res, carried, strict=True))

    def branches(self, condition: Array, bodies: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run the two arms of an if, each under its part of the mask; None for one nobody takes."""
        outer = self.mask
        results: list[Any] = []
        for taken, body in zip((condition, ~condition), bodies, strict=True):
            self.mask = outer & taken
            results.append(body() if np.any(self.mask) else None)
        self.mask = outer
        return results

    def _if(self, op: scf.IfOp) -> None:
        def arm(block: Block | None) -> Callable[[], list[Array]]:
            return lambda: [] if block is None else [self.values[v] for v in self.run(block)]

        condition = self.values[op.cond]
        blocks = [r.blocks.first for r in (op.true_region, op.false_region)]
        yes, no = self.branches(condition, [arm(b) for b in blocks])
        for i, result in enumerate(op.output):
            if yes is not None and no is not None:
                self.values[result] = np.where(condition, yes[i], no[i])
            elif (taken := no if yes is None else yes) is not None:
                self.values[result] = taken[i]


def find_kernel(module: ModuleOp, launch: kernel.LaunchOp) -> KernelFunc:
    """The kernel that a launch names."""
    name = launch.kernel.root_reference.data
    for op in module.body.block.ops:
        if isinstance(op, kernel.FuncOp | cuda.FuncOp) and op.sym_name.data == name:
            return op
    raise NotExecutable(f"@{name} is not a kernel.func or cuda.func of the module")


def memories_of(function: KernelFunc, args: Sequence[Array]) -> dict[SSAValue, Memory]:
    """The memory that each argument of a kernel stands for; those it stores to are watched."""
    stored = stored_arguments(function)
    memories: dict[SSAValue, Memory] = {}
    for argument, value in zip(function.body.block.args, args, strict=True):
        memory = Memory(value.reshape(-1), False, argument.name_hint or f"#{argument.index}")
        if argument in stored:
            memory.watch()
        memories[argument] = memory
    return memories
