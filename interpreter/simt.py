"""What `kernel` means: a lockstep machine that runs a whole grid at once and finds its faults.

Every value is an array that broadcasts over (blocks, threads). Control flow runs under a mask of active
threads. The machine reports, with the location of the operation:

* a *race*: two threads touch one element of shared memory, one of them writing, with no barrier between;
  or two threads of a grid do so in global memory, where no barrier helps;
* a *divergent barrier*, *shuffle* or *mma*: not all threads of a block, of a cluster, or of a warp, take
  part, or not those that a named barrier waits for;
* an access *out of bounds*, and a read of shared memory that nobody has *initialised*.

It can also run some of the blocks only, and only the operations that decide where a kernel stores
(`launches.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..analysis.stores import KernelFunc
from ..dialects import cuda, kernel, loop
from ..dialects.kernel import WARP
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import static_shape
from ..dialects.stored import stored_in
from .async_copies import ThreadCopies
from .bulk_copies import BulkCopies
from .device_memory import MachineFault as MachineFault
from .device_memory import Memory, fault
from .flights import Flights
from .lanes import Lanes
from .numpy_types import Array
from .poison import poisoned
from .scalar_ops import NotExecutable, evaluate_silently
from .teams import Teams
from .tensor_cores import multiply_in_warps
from .tensor_ir import ProgramError
from .warpgroups import Warpgroups

OVERHEAD = 512
"""Operations of single threads in the time that it takes to begin one: about 10 microseconds."""


class SimtMachine(Lanes):
    """Executes one kernel on blocks of a grid, given by their numbers; subclassed for `cuda`.

    `only` are the operations to execute, all of them if it is None; with it, stores leave a mark in the
    memory but no value. `budget` are the operations of single threads that it may still execute.
    """

    def __init__(self, blocks: Array, threads: int, only: Container[Operation] | None = None):
        super().__init__(blocks, threads)
        self.only = only
        self.budget = inf
        self.has_named_barriers = False
        self.flights = Flights()
        self.bulk_copies = BulkCopies(self, self.flights)
        self.warpgroups = Warpgroups(self, self.flights)
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            kernel.ThreadIdOp: self._thread_id,
            kernel.BlockIdOp: self._block_id,
            kernel.SharedOp: self._shared,
            kernel.BarrierOp: self._barrier,
            kernel.NamedBarrierOp: self._named_barrier,
            kernel.ShuffleOp: self._shuffle,
            kernel.MmaOp: lambda op: multiply_in_warps(self, op),
            kernel.AssertOp: self._assert,
            kernel.VectorLoadOp: self._vector_load,
            kernel.VectorStoreOp: self._vector_store,
            kernel.AtomicAddOp: self._atomic_add,
            loop.LoadOp: self._load,
            loop.StoreOp: self._store,
            loop.IndexOp: self._index,
            loop.TestOp: self._test,
            loop.RegistersOp: self._registers,
            scf.ForOp: self._for,
            scf.IfOp: self._if,
            **ThreadCopies(self, self.flights).handlers,
            **self.bulk_copies.handlers,
            **self.warpgroups.handlers,
        }

    # ------------------------------------------------------------------ running

    def run(self, block: Block) -> Sequence[SSAValue]:
        """Execute a block; gives the operands of its `scf.yield`."""
        self._spend()
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                return op.arguments
            if self.only is None or op in self.only:
                self.execute(op)
        return ()

    def execute(self, op: Operation) -> None:
        """Execute one operation. Raises NotExecutable where it would be one too many."""
        self._spend()
        if (handler := self.handlers.get(type(op))) is not None:
            handler(op)
            return
        result = evaluate_silently(op, [self.values[v] for v in op.operands])
        if result is None:
            raise NotExecutable(f"'{op.name}'")
        self.values[op.results[0]] = result

    def _spend(self) -> None:
        self.budget -= len(self._slots) + OVERHEAD
        if self.budget < 0:
            raise NotExecutable("it executes too many operations")

    def finish(self) -> None:
        """The kernel ends; raises MachineFault if it must not yet."""
        self.flights.finish()
        self.warpgroups.finish()

    # ------------------------------------------------------------------ identity

    def _thread_id(self, op: kernel.ThreadIdOp) -> None:
        self.values[op.result] = self.thread_id

    def _block_id(self, op: kernel.BlockIdOp) -> None:
        self.values[op.result] = self.block_id

    def _index(self, op: loop.IndexOp) -> None:
        self.values[op.result] = self.index(op, op.map.data.results[0], op.operands_)

    def _test(self, op: loop.TestOp) -> None:
        holds = np.ones((1, 1), bool)
        for constraint in op.set.data.constraints:
            holds = holds & (self.index(op, constraint.lhs, op.operands_) >= 0)
        self.values[op.result] = holds

    def _assert(self, op: kernel.AssertOp) -> None:
        if np.any(~self.values[op.condition] & self.mask):
            raise ProgramError(op.message.data)

    # ------------------------------------------------------------------ cooperation

    def _shared(self, op: kernel.SharedOp) -> None:
        memref = op.result.type
        assert isinstance(memref, MemRefType)
        self._allocate(op.result, prod(static_shape(memref)), memref.element_type)

    def _allocate(self, value: SSAValue, count: int, element: Attribute) -> None:
        """Shared memory of every block, holding nothing yet."""
        shape = (self.shape[0], count)
        name, item = value.name_hint or "shared", storage_bytes(element)
        memory = Memory(poisoned(element, shape), True, name, item_bytes=item)
        memory.watch()
        memory.teams = Teams(shape) if self.has_named_barriers else None
        memory.initialised = np.zeros(shape, bool)
        memory.unfenced = np.zeros(shape, bool)
        memory.unmet = np.zeros(shape, bool) if self.cluster > 1 else None
        self.memories[value] = memory

    def _registers(self, op: loop.RegistersOp) -> None:
        memref = op.result.type
        assert isinstance(memref, MemRefType)
        count = prod(static_shape(memref))
        self._allocate(op.result, count * self.shape[1], memref.element_type)
        self.memories[op.result].own = count

    def _barrier(self, op: kernel.BarrierOp) -> None:
        """All threads of a block meet, or of all blocks of a cluster, or none come."""
        of_cluster, relaxed = op.cluster is not None, op.relaxed is not None
        active = self.full(self.mask)
        arrived: Array = np.any(active, axis=1)
        present: Array = np.all(active, axis=1)
        if np.any(arrived & ~present):
            raise fault(op, "is reached by some threads of a block only: divergent barrier")
        if of_cluster:
            come = arrived.reshape(-1, self.cluster)
            if np.any(come.any(axis=1) & ~come.all(axis=1)):
                raise fault(op, "is reached by some blocks of a cluster only: divergent barrier")
        for memory in self.memories.values():
            if memory.shared:
                if relaxed and not memory.own and memory.has_stores(arrived):
                    raise fault(
                        op, f"is relaxed, and does not show what was stored to {memory.name}"
                    )
                memory.forget(arrived)
                if of_cluster:
                    memory.forget_clusters(arrived)
        if relaxed and self.bulk_copies.has_new_barriers(arrived):
            raise fault(op, "is relaxed, and does not show that an mbarrier was initialised")
        self.bulk_copies.barrier(arrived, of_cluster)

    def _named_barrier(self, op: kernel.NamedBarrierOp) -> None:
        """Some threads of a block meet: whole warps that follow each other, or nobody comes."""
        wanted = op.threads.value.data
        active = self.full(self.mask)
        for block in np.flatnonzero(active.any(axis=1)):
            come = np.flatnonzero(active[block])
            low, high = int(come[0]), int(come[-1])
            if len(come) != wanted:
                raise fault(op, f"waits for {wanted} threads of a block, but {len(come)} come")
            if high - low + 1 != wanted or low % WARP:
                raise fault(op, "is reached by threads that are no whole warps next to each other")
            first = int(self.block_id[block, 0]) * self.shape[1]
            for memory in self.memories.values():
                if memory.teams is not None:
                    memory.meet(first + low, first + high)

    def _shuffle(self, op: kernel.ShuffleOp) -> None:
        """Exchange values between the lanes of a warp."""
        threads = self.shape[1]
        source = np.arange(threads) ^ op.lane_mask.value.data
        if np.any(source >= threads):
            raise fault(op, f"reads a lane that a block of {threads} threads does not have")
        self.require_whole_warps(op)
        self.values[op.result] = self.full(self.values[op.value])[:, source]

    # ------------------------------------------------------------------ memory

    def load(self, op: Operation, memory: Memory, flat: Array) -> Array:
        """Read one element per active thread."""
        if memory.writer is None and self.accesses is None:
            return memory.data[flat] if memory.data.size else np.zeros((1, 1), memory.data.dtype)
        lanes = self.touched(memory, flat)
        if not lanes.numbers.size:
            return np.zeros(self.shape, memory.data.dtype)
        self.note(op, memory, lanes)
        self.flights.check(op, memory, lanes, "reads")
        flat = lanes.flat(memory)
        memory.read(op, lanes.numbers, flat)
        values = memory.data.reshape(-1)[flat]
        if self.all_active:
            return values.reshape(self.shape)
        result = np.zeros(self.shape, memory.data.dtype)
        result[self.full(self.mask)] = values
        return result

    def store(self, op: Operation, memory: Memory, flat: Array, value: SSAValue) -> None:
        """Write one element per active thread."""
        lanes = self.touched(memory, flat)
        if not lanes.numbers.size:
            return
        self.note(op, memory, lanes)
        self.flights.check(op, memory, lanes, "writes")
        memory.write(op, lanes.numbers, lanes.where)
        if self.only is None:
            memory.data[lanes.where] = self.full(self.values[value])[self.full(self.mask)]

    def _vector_load(self, op: kernel.VectorLoadOp) -> None:
        width = len(op.values)
        memory, flat = self.place(op, op.memref, op.map, op.indices, width)
        lanes = self.rows(op, memory, flat, width)
        self.note(op, memory, lanes)
        self.flights.check(op, memory, lanes, "reads")
        memory.read(op, lanes.numbers[:, None], lanes.flat(memory))
        active = self.full(self.mask)
        for value, component in zip(op.values, memory.data[lanes.where].T, strict=True):
            self.values[value] = np.zeros(self.shape, memory.data.dtype)
            self.values[value][active] = component

    def _vector_store(self, op: kernel.VectorStoreOp) -> None:
        width = len(op.values)
        memory, flat = self.place(op, op.memref, op.map, op.indices, width)
        lanes = self.rows(op, memory, flat, width)
        self.note(op, memory, lanes)
        self.flights.check(op, memory, lanes, "writes")
        memory.write(op, lanes.numbers[:, None], lanes.where)
        if self.only is None:
            active = self.full(self.mask)
            values = [self.full(self.values[value])[active] for value in op.values]
            memory.data[lanes.where] = np.stack(values, axis=1)

    def _atomic_add(self, op: kernel.AtomicAddOp) -> None:
        memory, flat = self.place(op, op.memref, op.map, op.indices)
        lanes = self.touched(memory, flat)
        self.note(op, memory, lanes)
        self.flights.check(op, memory, lanes, "writes")
        memory.add(op, lanes.numbers, lanes.where)
        values = self.full(self.values[op.value])[self.full(self.mask)]
        np.add.at(memory.data, lanes.where, values)

    def _load(self, op: loop.LoadOp) -> None:
        memory, flat = self.place(op, op.memref, op.map, op.indices)
        self.values[op.result] = self.load(op, memory, flat)

    def _store(self, op: loop.StoreOp) -> None:
        memory, flat = self.place(op, op.memref, op.map, op.indices)
        self.store(op, memory, flat, op.value)

    # ------------------------------------------------------------------ control flow

    def _for(self, op: scf.ForOp) -> None:
        low, high, step = (self.values[v] for v in (op.lb, op.ub, op.step))
        if np.any((step < 1) & self.mask):
            raise fault(op, "has a step that is not positive: it never ends")
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
        if getattr(op, "sym_name", None) == StringAttr(name):
            raise NotExecutable(f"@{name} is a function for a CPU, which runs as native code only")
    raise NotExecutable(f"@{name} is not a kernel.func or cuda.func of the module")


def element_of(type: Attribute) -> Attribute:
    """The type of the elements of a kernel's argument."""
    match type:
        case kernel.TensorMapType():
            return type.element
        case MemRefType():
            return type.element_type
        case _:
            return type


def memories_of(function: KernelFunc, args: Sequence[Array]) -> dict[SSAValue, Memory]:
    """The memory that each argument of a kernel stands for; those it stores to are watched."""
    stored = stored_in(function.body)
    memories: dict[SSAValue, Memory] = {}
    for argument, value in zip(function.body.block.args, args, strict=True):
        name = argument.name_hint or f"#{argument.index}"
        element = element_of(argument.type)
        item = 8 if isinstance(element, IndexType) else storage_bytes(element)
        memory = Memory(value.reshape(-1), False, name, extents=value.shape, item_bytes=item)
        if argument in stored:
            memory.watch()
        memories[argument] = memory
    return memories
