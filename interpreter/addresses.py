"""Where a loop nest reads and stores, worked out for all of its iterations without computing a value.

An index or a condition that follows from counters is known; one that follows from what is loaded is not.
`AddressMachine` raises ProgramFault for an access that leaves its array, or an element that is not stored
once, wherever that follows from counters alone; `open` says which promises it could not decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ..analysis.divergence import COOPERATIVE
from ..analysis.index import bounds, operand_ranges
from ..analysis.promises import Access, Promise
from ..dialects.loop import (
    AccumulateOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
)
from ..dialects.loop_transpose import TransposeOp
from ..dialects.sizes import static_extent, static_shape
from ..dialects.tile import LaunchOp, Level, enclosing_launch
from ..dialects.tile_pack import PackOp
from .loop_memory import LaneMemory
from .numpy_types import Array
from .scalar_ops import evaluate
from .tensor_ir import ProgramFault, evaluate_index
from .views import MAX_ELEMENTS, TooWide, require


class AddressMachine(LaneMemory):
    """Executes what decides addresses in the body of a kernel, as a whole or in slices."""

    most_slices = 1 << 6
    stops_early = False

    def __init__(self, kernel: KernelOp, *, sliced: bool) -> None:
        super().__init__(sliced=sliced)
        self.open: set[Promise] = set()
        self._outputs = kernel.output_args
        self._covered: set[SSAValue] = set()
        self._counts: dict[SSAValue, Array] = {}
        self._maybe = False

    def run(self, block: Block) -> None:
        """Execute a block."""
        for op in block.ops:
            match op:
                case ForOp():
                    self._for(op)
                case LaunchOp():
                    self._nest(op.body.block, [static_extent(a.extent.data) for a in op.axes])
                case PackOp():
                    self._cooperate(op)
                    self._nest(op.body.block, op.shape)
                case scf.IfOp():
                    self._if(op)
                case LoadOp() | StoreOp() | AccumulateOp() | TransposeOp():
                    self._access(op)
                case _:
                    if isinstance(op, COOPERATIVE):
                        self._cooperate(op)
                    self._compute(op)

    def finish(self) -> None:
        """The kernel ends; raises ProgramFault if an element of an output was not stored once."""
        if Promise.STORED_ONCE in self.open:
            return
        for number, output in enumerate(self._outputs):
            if output in self._covered or any(
                isinstance(u.operation, AccumulateOp) for u in output.uses
            ):
                continue
            counts = self._count_of(output)
            wrong = np.argwhere(counts != 1)
            if not wrong.size:
                continue
            first = tuple(int(i) for i in wrong[0])
            stores = [u.operation for u in output.uses if isinstance(u.operation, StoreOp)]
            raise ProgramFault(
                f"{len(wrong)} of {counts.size} elements of output #{number} are not stored exactly once: "
                f"{list(first)} is stored {_times(int(counts[first]))}",
                stores[0],
            )

    def _compute(self, op: Operation) -> None:
        """An operation without a region: its result is known if its operands are."""
        if any(region.blocks for region in op.regions):
            self.open |= {Promise.IN_BOUNDS, Promise.STORED_ONCE}
            return
        if len(op.results) != 1 or not all(value in self.values for value in op.operands):
            return
        operands = self._get_all(op.operands)
        match op:
            case IndexOp():
                self.values[op.result] = evaluate_index(op.map.data.results[0], operands)
            case TestOp():
                holds = [evaluate_index(each, operands) >= 0 for each in op.exprs]
                self.values[op.result] = np.logical_and.reduce(np.broadcast_arrays(*holds))
            case _:
                if (result := evaluate(op, operands)) is not None:
                    self.values[op.results[0]] = result

    # ------------------------------------------------------------------ control flow

    def _for(self, op: ForOp) -> None:
        inner = self._points(op.body.block)
        known = all(value in self.values for value in op.limit_operands)
        for counter in self._slices(static_extent(op.extent.data), inner):
            self._open(counter, op.induction_var)
            outer, self.mask = self.mask, self._align(self.mask)
            maybe = self._maybe
            if op.limit is not None and known:
                limit = evaluate_index(op.limit, self._get_all(op.limit_operands))
                self.mask = self.mask & (self.get(op.induction_var) < self._align(limit))
            self._maybe |= not known
            self.run(op.body.block)
            self.mask, self._maybe = outer, maybe
            self.counters.pop()

    def _nest(self, block: Block, extents: Sequence[int], position: int = 0) -> None:
        """Run a block once for each point of the axes from a position on."""
        if position == len(extents):
            self.run(block)
            return
        inner = int(np.prod(extents[position + 1 :])) * self._points(block)
        for counter in self._slices(extents[position], inner):
            self._open(counter, block.args[position])
            outer, self.mask = self.mask, self._align(self.mask)
            self._nest(block, extents, position + 1)
            self.mask = outer
            self.counters.pop()

    def _if(self, op: scf.IfOp) -> None:
        known = op.cond in self.values
        condition = self._align(self.get(op.cond)) if known else np.asarray(True)
        outer, maybe = self._align(self.mask), self._maybe
        self._maybe |= not known
        for region, taken in ((op.true_region, condition), (op.false_region, ~condition)):
            self.mask = outer & taken if known else outer
            if region.blocks and np.any(self.mask):
                self.run(region.block)
        self.mask, self._maybe = outer, maybe

    def _cooperate(self, op: Operation) -> None:
        """All threads of a block come to an operation, or none. Raises ProgramFault if only some do."""
        launch = enclosing_launch(op)
        axes = [
            self.axes[value]
            for value, axis in zip(launch.body.block.args, launch.axes, strict=True)
            if axis.level.data is Level.THREAD
        ]
        if self._maybe or self.sliced:
            self.open.add(Promise.RACE_FREE)
            return
        mask = self._align(self.mask)
        if np.any(mask.any(axis=tuple(axes)) != mask.all(axis=tuple(axes))):
            raise ProgramFault(
                f"'{op.name}' op is reached by some threads of a block only, and all of them take part", op
            )

    # ------------------------------------------------------------------ accesses

    def _access(self, op: Access) -> None:
        array = op.source if isinstance(op, TransposeOp) else op.memref
        operands = op.origin if isinstance(op, TransposeOp) else op.indices
        assert isinstance(array.type, MemRefType)
        shape = static_shape(array.type)
        stores = array in self._outputs
        if not all(value in self.values for value in operands):
            ranges = operand_ranges(operands)
            for expr, extent in zip(op.map.data.results, shape, strict=True):
                low, high = bounds(expr, ranges)
                if low < 0 or high >= extent:
                    self.open.add(Promise.IN_BOUNDS)
        elif self._maybe:
            try:
                self._check(op, shape)
            except ProgramFault:
                self.open.add(Promise.IN_BOUNDS)
        else:
            indices = self._check(op, shape)
            if stores and isinstance(op, StoreOp):
                self._count(op, shape, indices)
            return
        if stores and isinstance(op, StoreOp):
            self.open.add(Promise.STORED_ONCE)

    def _check(self, op: Access, shape: Sequence[int]) -> Sequence[Array] | None:
        """The indices of an access, None if they are linear. Raises ProgramFault if it leaves the array."""
        if isinstance(op, TransposeOp):
            return self._check_squares(op, shape)
        return None if self._place(op, shape) is not None else self._indices(op, shape)

    def _check_squares(self, op: TransposeOp, shape: Sequence[int]) -> None:
        dims = [self.get(value) for value in op.origin]
        for axis, (expr, extent) in enumerate(zip(op.map.data.results, shape, strict=True)):
            more = op.reach(axis)
            index = self._align(evaluate_index(expr, dims))
            if np.any(self._active((index < 0) | (index + more >= extent))):
                raise ProgramFault("'loop.transpose' copies what is outside of its array", op)

    def _count_of(self, output: SSAValue) -> Array:
        """How often each element of an output was stored."""
        if output not in self._counts:
            assert isinstance(output.type, MemRefType)
            shape = static_shape(output.type)
            require(shape, MAX_ELEMENTS)
            self._counts[output] = np.full(shape, int(output in self._covered), np.uint8)
            self._covered.discard(output)
        return self._counts[output]

    def _count(self, op: StoreOp, shape: Sequence[int], indices: Sequence[Array] | None) -> None:
        """Count the elements that a store writes."""
        output = op.memref
        whole = bool(np.all(self.mask))
        place = self._place(op, shape) if whole else None
        untouched = output not in self._counts and output not in self._covered
        if place is not None and untouched and place.counter_of_axis(shape) is not None:
            self._covered.add(output)
            return
        counts = self._count_of(output)
        if place is not None and place.distinct(counts):
            stores = place.of(counts, writeable=True)
            stores[...] = np.minimum(stores + 1, 2)
            return
        where = np.zeros((), np.int64)
        for index, extent in zip(indices or self._indices(op, shape), shape, strict=True):
            where = where * extent + index
        stored = np.broadcast_to(self._align(where), self.shape)[self._full(self.mask)]
        flat = counts.reshape(-1)
        if flat.size <= 4 * stored.size:
            flat[...] = np.minimum(flat + np.bincount(stored, minlength=flat.size), 2)
            return
        again, times = np.unique(stored, return_counts=True)
        flat[again] = np.minimum(flat[again] + times, 2)


def _times(count: int) -> str:
    return ("never", "once", "several times")[min(count, 2)]


def open_of_kernel(kernel: KernelOp) -> set[Promise]:
    """The promises of a kernel with static sizes that data decide. Raises ProgramFault for a broken one."""
    try:
        return _run(AddressMachine(kernel, sliced=False), kernel)
    except TooWide:
        pass
    try:
        return _run(AddressMachine(kernel, sliced=True), kernel)
    except TooWide:
        return set(Promise)


def _run(machine: AddressMachine, kernel: KernelOp) -> set[Promise]:
    machine.run(kernel.body.block)
    machine.finish()
    return machine.open
