"""What `loop` and `tile` mean: every nest evaluated by broadcasting, one array axis per open loop.

A value defined under n open loops is an array of n axes (of extent 1 where it does not vary). A free loop
or a launch axis opens an axis; a reduce loop folds its axis away; `tile.combine` folds a launch axis and
keeps it; `tile.stage` copies, and `tile.pack` opens an axis for each of its counters. Every element of every
output must be stored exactly once.

A kernel is first evaluated as a whole, where what is read by linear indices is a view and a sum of
products is a product of matrices. If that needs an array of more than `MAX_LANES` elements, the kernel is
evaluated in slices: outer loops run a part of their range at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.loop import (
    AccumulateOp,
    AssertOp,
    CheckedIndexOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    PrefetchOp,
    RegistersOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ..dialects.loop_transpose import TransposeOp
from ..dialects.scalars import Combiner, identity, is_weighted, weighted_groups
from ..dialects.sizes import static_extent, static_shape
from ..dialects.tile import CombineOp, LaunchOp, Level, PrefixOp, StageOp, enclosing_launch
from ..dialects.tile_mma import MmaOp, WgmmaOp
from ..dialects.tile_pack import PackOp, PackYieldOp
from .loop_memory import LaneMemory
from .memory import Buffer, Output
from .numpy_types import Array, numpy_dtype
from .product import Product, Value, as_array, multiply
from .scalar_ops import COMBINER_OPS, NotExecutable, evaluate, fold
from .tensor_cores import check_warpgroups, multiply_slabs, rows_held, sums_of_threads
from .tensor_cores import multiply as multiply_fragments
from .tensor_ir import ProgramError, ProgramFault, evaluate_index
from .views import MAX_ELEMENTS, TooWide
from .weighted import fold_weighted, join_weighted


class LoopMachine(LaneMemory):
    """Executes the body of one `loop.kernel`, as a whole or in slices.

    Raises TooWide if it is to be executed as a whole and needs more than `MAX_LANES` elements at a time.
    """

    def run(self, block: Block) -> Sequence[SSAValue]:
        """Execute the operations of a block; gives what its terminator yields."""
        for op in block.ops:
            if isinstance(op, YieldOp | scf.YieldOp | PackYieldOp):
                return op.operands
            if not isinstance(op, PrefetchOp):
                self.execute(op)
        return ()

    def execute(self, op: Operation) -> None:
        """Execute one operation."""
        match op:
            case ForOp():
                self._for(op)
            case LaunchOp():
                self._launch(op)
            case scf.IfOp():
                self._if(op)
            case StoreOp():
                self._store(op)
            case AccumulateOp():
                self._accumulate(op)
            case CheckedIndexOp() | AssertOp():
                self._check(op)
            case StageOp():
                self._stage(op)
            case PackOp():
                self._pack(op)
            case CombineOp() | PrefixOp() | MmaOp() | WgmmaOp():
                self._cooperate(op)
            case RegistersOp():
                self._registers(op)
            case TransposeOp():
                self._transpose(op)
            case _:
                self.values[op.results[0]] = self._compute(op)

    def _compute(self, op: Operation) -> Value:
        """The result of an operation that has no effect."""
        match op:
            case LoadOp():
                return self._load(op)
            case IndexOp():
                return evaluate_index(op.map.data.results[0], self._get_all(op.operands_))
            case TestOp():
                dims = self._get_all(op.operands_)
                holds = [evaluate_index(e, dims) >= 0 for e in op.exprs]
                return np.logical_and.reduce(np.broadcast_arrays(*holds))
            case arith.MulfOp():
                return multiply(self.get(op.lhs), self.get(op.rhs), self._limit)
            case _:
                result = evaluate(op, self._get_all(op.operands))
                if result is None:
                    raise NotExecutable(f"'{op.name}'")
                return result

    def _for(self, op: ForOp) -> None:
        combiners = [attribute.data for attribute in op.combiners]
        totals: list[Value] = []
        depth = len(self.counters)
        for counter in self._slices(static_extent(op.extent.data), self._points(op.body.block)):
            self._open(counter, op.induction_var)
            outer_mask, self.mask = self.mask, self._align(self.mask)
            runs = self._runs(op)
            if runs is not None:
                self.mask = self.mask & runs
            contributions = self.run(op.body.block)
            yielded = [self.values[value] for value in contributions]
            if runs is not None:
                yielded = [
                    self._choose(runs, self._unsummed(v), _neutral(c, v.type))
                    for c, v in zip(combiners, contributions, strict=True)
                ]
            if is_weighted(combiners):
                parts = [
                    value
                    for group in weighted_groups(combiners)
                    for value in self._fold_weighted(combiners[group], yielded[group])
                ]
            else:
                parts = [self._fold(c, v) for c, v in zip(combiners, yielded, strict=True)]
            self.mask = outer_mask
            self.counters.pop()
            totals = self._join(combiners, totals, parts) if totals else parts
        if not totals:
            empty = [_neutral(c, r.type) for c, r in zip(combiners, op.res, strict=True)]
            totals = [each.reshape((1,) * depth) for each in empty]
        self.values.update(zip(op.res, totals, strict=True))

    def _runs(self, op: ForOp) -> Array | None:
        """Which iterations of the innermost open loop run; None if all do."""
        if op.limit is None:
            return None
        limit = evaluate_index(op.limit, self._get_all(op.limit_operands))
        return self.get(op.induction_var) < self._align(limit)

    def _join(
        self, combiners: Sequence[Combiner], totals: Sequence[Value], parts: Sequence[Value]
    ) -> list[Value]:
        """What two parts of a loop's range give together."""
        first = [as_array(total, MAX_ELEMENTS) for total in totals]
        second = [as_array(part, MAX_ELEMENTS) for part in parts]
        if is_weighted(combiners):
            return [
                value
                for group in weighted_groups(combiners)
                for value in join_weighted(
                    combiners[group], first[group], second[group], MAX_ELEMENTS
                )
            ]
        return [COMBINER_OPS[c](a, b) for c, a, b in zip(combiners, first, second, strict=True)]

    def _fold_weighted(
        self, combiners: Sequence[Combiner], yielded: Sequence[Value]
    ) -> list[Value]:
        """Fold contributions with weights of the innermost open loop."""
        exponents, *others = [self._align(as_array(value, self._limit)) for value in yielded]
        shape = (*exponents.shape[:-1], self.shape[-1])
        self._require(shape)
        return fold_weighted(combiners, [np.broadcast_to(exponents, shape), *others], self._limit)

    def _fold(self, combiner: Combiner, held: Value) -> Value:
        """Fold what the iterations of the innermost open loop contribute."""
        depth, extent = len(self.counters), self.shape[-1]
        if combiner is Combiner.ADD and isinstance(held, Product):
            return held.align(depth).sum_last(extent)
        array = self._align(as_array(held, self._limit))
        shape = (*array.shape[:-1], extent)
        self._require(shape)
        whole = np.broadcast_to(array, shape)
        return fold(combiner, whole, depth - 1, keepdims=False, empty=0)

    def _launch(self, op: LaunchOp) -> None:
        extents = [static_extent(axis.extent.data) for axis in op.axes]
        inside = self._points(op.body.block)

        def nest(position: int) -> None:
            if position == len(op.axes):
                self.run(op.body.block)
                return
            extent = extents[position]
            # A combine needs its whole axis at once, so only block axes are cut into slices.
            slices: Iterable[Array] = [np.arange(extent)] if extent else []
            if op.axes.data[position].level.data == "block":
                slices = self._slices(extent, prod(extents[position + 1 :]) * inside)
            for counter in slices:
                self._open(counter, op.body.block.args[position])
                nest(position + 1)
                self.counters.pop()

        nest(0)

    def _if(self, op: scf.IfOp) -> None:
        condition = self._align(self.get(op.cond))
        outer = self._align(self.mask)
        self._require(np.broadcast_shapes(outer.shape, condition.shape))
        results: list[list[Value]] = []
        for region, taken in ((op.true_region, condition), (op.false_region, ~condition)):
            self.mask = outer & taken
            yielded = self.run(region.block) if region.blocks else ()
            results.append([self._unsummed(value) for value in yielded])
        self.mask = outer
        for result, yes, no in zip(op.output, *results, strict=True):
            self.values[result] = self._choose(condition, yes, no)

    def _choose(self, condition: Array, yes: Value, no: Value) -> Value:
        """One value where a condition holds, the other where it does not."""
        if isinstance(yes, Product) and isinstance(no, np.ndarray) and not np.any(no):
            if (masked := yes.masked(condition)) is not None:
                return masked
        yes, no = as_array(yes, self._limit), as_array(no, self._limit)
        self._require(np.broadcast_shapes(condition.shape, yes.shape, no.shape))
        return np.where(condition, yes, no)

    def _check(self, op: CheckedIndexOp | AssertOp) -> None:
        value = self.get(op.operands[0])
        active = self._align(self.mask)
        self._require(np.broadcast_shapes(value.shape, active.shape))
        if isinstance(op, AssertOp):
            if np.any(~value & active):
                raise ProgramError(op.message.data)
            return
        extent = static_extent(op.extent.data)
        wrong = ((value < 0) | (value >= extent)) & active
        if np.any(wrong):
            raise ProgramError(f"index out of range: not below {extent}")
        self.values[op.result] = np.clip(value.astype(np.int64), 0, max(extent - 1, 0))

    def _pack(self, op: PackOp) -> None:
        depth = len(self.counters)
        for extent, counter in zip(op.shape, op.body.block.args, strict=True):
            self._open(np.arange(extent), counter)
        outer_mask, self.mask = self.mask, self._align(self.mask)
        (element,) = self.run(op.body.block)
        array = self.get(element)
        shape = (*array.shape[:depth], *op.shape)
        self._require(shape)
        self.buffers[op.packed] = Buffer(np.broadcast_to(array, shape), lanes=depth)
        self.mask = outer_mask
        del self.counters[depth:]

    def _cooperate(self, op: CombineOp | PrefixOp | MmaOp | WgmmaOp) -> None:
        """What threads compute together."""
        match op:
            case CombineOp():
                self._combine(op)
            case PrefixOp():
                self._prefix(op)
            case MmaOp():
                self._mma(op)
            case WgmmaOp():
                self._wgmma(op)

    def _combine(self, op: CombineOp) -> None:
        values = self._full(self.get(op.value))
        arguments = list(enclosing_launch(op).body.block.args)
        for axis in op.axes:
            position = arguments.index(axis)  # pyright: ignore[reportArgumentType]
            values = fold(op.combiner.data, values, position, keepdims=True, empty=0)
        self.values[op.result] = values

    def _prefix(self, op: PrefixOp) -> None:
        values, combiner = self._full(self.get(op.value)), op.combiner.data
        arguments = list(enclosing_launch(op).body.block.args)
        along = np.moveaxis(values, arguments.index(op.axis), -1)  # pyright: ignore[reportArgumentType]
        before = np.full_like(along, identity(combiner, op.value.type))
        COMBINER_OPS[combiner].accumulate(along[..., :-1], axis=-1, out=before[..., 1:])
        self.values[op.result] = np.moveaxis(before, -1, arguments.index(op.axis))  # pyright: ignore[reportArgumentType]

    def _thread_axes(self, op: Operation) -> list[int]:
        """The array axes of a launch's thread axes, over which its threads are numbered."""
        launch = enclosing_launch(op)
        args = zip(launch.axes, launch.body.block.args, strict=True)
        return [self.axes[value] for axis, value in args if axis.level.data is Level.THREAD]

    def _wgmma(self, op: WgmmaOp) -> None:
        """Multiply slabs, which are the same for all threads of a block, or what these hold."""
        axes = self._thread_axes(op)
        extents = [self.shape[axis] for axis in axes]
        count = prod(extents)
        columns = self.buffers[op.columns].elements().astype(np.float32)
        if op.transposed is None:
            columns = np.swapaxes(columns, -1, -2)
        if op.rows is None:
            inner = range(len(self.counters) - len(axes), len(self.counters))
            held = [np.moveaxis(self._full(self.get(value)), axes, inner) for value in op.held]
            outer = held[0].shape[: inner.start]
            rows = rows_held([value.reshape(*outer, count) for value in held], count)
            rows = np.expand_dims(rows, tuple(axes))
        else:
            rows = self.buffers[op.rows].elements().astype(np.float32)
        outer = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
        check_warpgroups(op, len(op.products), rows.shape[-2], columns.shape[-1], count)
        self._require((*outer, rows.shape[-2], columns.shape[-1]))
        inner = range(len(outer) - len(axes), len(outer))
        products = sums_of_threads(multiply_slabs(rows, columns), count)
        for result, sums in zip(op.products, products, strict=True):
            lanes = np.squeeze(sums.reshape(*outer, *extents), tuple(axes))
            self.values[result] = np.moveaxis(lanes, inner, axes)

    def _mma(self, op: MmaOp) -> None:
        """Multiply matrices of warps, whose threads are numbered over the launch's thread axes."""
        axes = self._thread_axes(op)
        inner = range(len(self.counters) - len(axes), len(self.counters))
        operands = [np.moveaxis(self._full(self.get(value)), axes, inner) for value in op.operands]
        moved = operands[0].shape
        outer, threads = moved[: inner.start], prod(moved[inner.start :])
        held = [value.reshape(*outer, threads) for value in operands]
        count = len(op.rows) + len(op.columns)
        products = multiply_fragments(op, threads, held[:count])
        sums = held[count:] or [np.float32(0)] * len(products)
        for result, product, total in zip(op.products, products, sums, strict=True):
            self.values[result] = np.moveaxis((product + total).reshape(moved), inner, axes)


def _neutral(combiner: Combiner, element: Attribute) -> Array:
    """What changes nothing that it is folded with."""
    return np.full((), identity(combiner, element), numpy_dtype(element))


def evaluate_kernel(op: KernelOp, args: Sequence[Value]) -> list[Value]:
    """The outputs of a `loop.kernel`; raises ProgramFault if an element is not stored once."""
    try:
        return _evaluate(op, args, LoopMachine(sliced=False))
    except TooWide:
        return _evaluate(op, args, LoopMachine(sliced=True))


def _evaluate(op: KernelOp, args: Sequence[Value], machine: LoopMachine) -> list[Value]:
    for argument, value in zip(op.input_args, args, strict=True):
        if isinstance(argument.type, MemRefType):
            machine.buffers[argument] = Buffer(value)
        else:
            machine.values[argument] = value
    for argument in op.output_args:
        assert isinstance(argument.type, MemRefType)
        machine.outputs[argument] = Output(argument.type.element_type, static_shape(argument.type))
    with np.errstate(all="ignore"):
        machine.run(op.body.block)
    results: list[Value] = []
    for position, output in enumerate(machine.outputs.values()):
        if counts := output.wrong_counts():
            raise ProgramFault(
                f"@{op.sym_name.data}: elements of output #{position} are stored {counts} times", op
            )
        assert output.data is not None
        results.append(output.data)
    return results
