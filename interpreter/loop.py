"""What `loop` and `tile` mean: every nest evaluated by broadcasting, one array axis per open loop.

A value defined under n open loops is an array of n axes (of extent 1 where it does not vary). A free loop
or a launch axis opens an axis; a reduce loop folds its axis away; `tile.combine` folds a launch axis and
keeps it; `tile.stage` copies. Every element of every output must be stored exactly once.
Large nests are cut into slices of a loop so that no array exceeds `MAX_LANES` elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.loop import (
    AssertOp,
    CheckedIndexOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ..dialects.scalars import identity
from ..dialects.tile import CombineOp, LaunchOp, StageOp
from .numpy_types import Array, numpy_dtype
from .poison import poisoned
from .scalar_ops import COMBINER_OPS, NotExecutable, evaluate, fold
from .tensor_ir import ProgramError, evaluate_index

MAX_LANES = 1 << 22


@dataclass
class Buffer:
    """Memory of a kernel: `data` has `lanes` leading axes, one per open loop, if it is a scratchpad."""

    data: Array
    lanes: int = 0
    stores: Array | None = None


class LoopMachine:
    """Executes the body of one `loop.kernel`."""

    def __init__(self) -> None:
        self.values: dict[SSAValue, Array] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.counters: list[Array] = []
        self.mask: Array = np.asarray(True)

    # ------------------------------------------------------------------ lanes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the open loops."""
        return tuple(c.shape[0] for c in self.counters)

    def get(self, value: SSAValue) -> Array:
        """The value with one axis per open loop."""
        return self._align(self.values[value])

    def _align(self, array: Array) -> Array:
        return array.reshape(array.shape + (1,) * (len(self.counters) - array.ndim))

    def _full(self, array: Array) -> Array:
        return np.broadcast_to(self._align(array), self.shape)

    def _open(self, counter: Array, value: SSAValue) -> None:
        self.counters.append(counter)
        self.values[value] = counter.reshape((1,) * (len(self.counters) - 1) + (-1,))

    def _slices(self, extent: int) -> list[Array]:
        lanes = max(int(np.prod(self.shape)), 1)
        step = max(MAX_LANES // lanes, 1)
        return [np.arange(i, min(i + step, extent)) for i in range(0, extent, step)]

    # ------------------------------------------------------------------ control flow

    def run(self, block: Block) -> Sequence[Array]:
        """Execute the operations of a block; gives what its terminator yields."""
        for op in block.ops:
            if isinstance(op, YieldOp | scf.YieldOp):
                return [self._align(self.get(v)) for v in op.operands]
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
            case LoadOp():
                self.values[op.result] = self._load(op)
            case StoreOp():
                self._store(op)
            case IndexOp():
                dims = [self.get(v) for v in op.operands_]
                self.values[op.result] = evaluate_index(op.map.data.results[0], dims)
            case TestOp():
                dims = [self.get(v) for v in op.operands_]
                holds = [evaluate_index(e, dims) >= 0 for e in op.exprs]
                self.values[op.result] = np.logical_and.reduce(np.broadcast_arrays(*holds))
            case CheckedIndexOp() | AssertOp():
                self._check(op)
            case StageOp():
                self._stage(op)
            case CombineOp():
                self._combine(op)
            case _:
                result = evaluate(op, [self.get(v) for v in op.operands])
                if result is None:
                    raise NotExecutable(f"'{op.name}'")
                self.values[op.results[0]] = result

    def _for(self, op: ForOp) -> None:
        if op.static_extent is None:
            raise NotExecutable("'loop.for' with a dynamic extent")
        totals: list[Array] = []
        depth = len(self.counters)
        for counter in self._slices(op.static_extent):
            self._open(counter, op.induction_var)
            outer_mask, self.mask = self.mask, self._align(self.mask)
            parts = [self._full(value) for value in self.run(op.body.block)]
            self.mask = outer_mask
            self.counters.pop()
            for i, (part, combiner) in enumerate(zip(parts, op.combiners, strict=True)):
                folded = fold(combiner.data, part, depth, keepdims=False, empty=0)
                if len(totals) <= i:
                    totals.append(folded)
                else:
                    with np.errstate(all="ignore"):
                        totals[i] = COMBINER_OPS[combiner.data](totals[i], folded)
        for i, (result, combiner) in enumerate(zip(op.res, op.combiners, strict=True)):
            empty = identity(combiner.data, result.type)
            self.values[result] = (
                totals[i] if totals else np.full((1,) * depth, empty, numpy_dtype(result.type))
            )

    def _launch(self, op: LaunchOp) -> None:
        def nest(position: int) -> None:
            if position == len(op.axes):
                self.run(op.body.block)
                return
            extent = op.axes.data[position].extent.data
            # A combine needs its whole axis at once, so only block axes are cut into slices.
            block = op.axes.data[position].level.data == "block"
            slices = self._slices(extent) if block else [np.arange(extent)] if extent else []
            for counter in slices:
                self._open(counter, op.body.block.args[position])
                nest(position + 1)
                self.counters.pop()

        nest(0)

    def _if(self, op: scf.IfOp) -> None:
        condition = self._align(self.get(op.cond))
        outer = self.mask
        results: list[Sequence[Array]] = []
        for region, taken in ((op.true_region, condition), (op.false_region, ~condition)):
            self.mask = self._align(outer) & taken
            results.append(self.run(region.block) if region.blocks else ())
        self.mask = outer
        for result, yes, no in zip(op.output, *results, strict=True):
            self.values[result] = np.where(condition, yes, no)

    # ------------------------------------------------------------------ memory

    def _indices(self, op: LoadOp | StoreOp, buffer: Buffer) -> tuple[Array, ...]:
        """Index arrays of one access, checked against the buffer's extents where the mask is set."""
        dims = [self.get(v) for v in op.indices]
        indices: list[Array] = []
        for axis, expr in enumerate(op.map.data.results):
            index = self._align(evaluate_index(expr, dims))
            extent = buffer.data.shape[buffer.lanes + axis]
            wrong = ((index < 0) | (index >= extent)) & self._align(self.mask)
            if np.any(wrong):
                bad = np.broadcast_to(index, wrong.shape)[wrong]
                raise ProgramError(
                    f"{op.location}: '{op.name}' out of bounds: index {bad.min()}..{bad.max()} of "
                    f"axis {axis}, whose extent is {extent}"
                )
            indices.append(np.clip(index, 0, max(extent - 1, 0)))
        return tuple(indices)

    def _lane_indices(self, buffer: Buffer) -> tuple[Array, ...]:
        """Positions along a scratchpad's leading axes for each lane."""
        depth = len(self.counters)
        return tuple(
            np.arange(buffer.data.shape[axis]).reshape(
                (1,) * axis + (-1,) + (1,) * (depth - axis - 1)
            )
            for axis in range(buffer.lanes)
        )

    def _load(self, op: LoadOp) -> Array:
        buffer = self.buffers[op.memref]
        indices = self._indices(op, buffer)
        if 0 in buffer.data.shape:  # only reached where no lane is active
            return np.zeros((1,) * len(self.counters), buffer.data.dtype)
        result = buffer.data[(*self._lane_indices(buffer), *indices)]
        return self._align(np.asarray(result))

    def _store(self, op: StoreOp) -> None:
        buffer = self.buffers[op.memref]
        assert buffer.stores is not None
        indices = self._indices(op, buffer)
        active = self._full(self.mask)
        shape = buffer.data.shape
        where: Array = np.zeros((), np.int64)
        for index, extent in zip(indices, shape, strict=True):
            where = where * extent + index
        where = np.broadcast_to(where, self.shape)[active]
        buffer.data.reshape(-1)[where] = self._full(self.get(op.value))[active]
        np.add.at(buffer.stores.reshape(-1), where, 1)

    def _check(self, op: CheckedIndexOp | AssertOp) -> None:
        value = self.get(op.operands[0])
        active = self._align(self.mask)
        if isinstance(op, AssertOp):
            if np.any(~value & active):
                raise ProgramError(op.message.data)
            return
        extent = op.extent.value.data
        wrong = ((value < 0) | (value >= extent)) & active
        if np.any(wrong):
            raise ProgramError(f"index out of range: not below {extent}")
        self.values[op.result] = np.clip(value.astype(np.int64), 0, max(extent - 1, 0))

    def _stage(self, op: StageOp) -> None:
        source = self.buffers[op.source]
        slab = op.slab.type
        assert isinstance(slab, MemRefType)
        dims = [self.get(v) for v in op.origin]
        depth, rank = len(self.counters), slab.get_num_dims()
        indices: list[Array] = []
        skipped = source.data.ndim - rank
        for axis, expr in enumerate(op.map.data.results):
            index = self._align(evaluate_index(expr, dims))
            index = index.reshape(index.shape + (1,) * rank)
            if axis >= skipped:
                own = axis - skipped
                counter = np.arange(slab.get_shape()[own])
                index = index + counter.reshape(
                    (1,) * (depth + own) + (-1,) + (1,) * (rank - own - 1)
                )
            if np.any((index < 0) | (index >= source.data.shape[axis])):
                raise ProgramError(f"{op.location}: 'tile.stage' copies out of bounds")
            indices.append(index)
        self.buffers[op.slab] = Buffer(np.asarray(source.data[tuple(indices)]), lanes=depth)

    def _combine(self, op: CombineOp) -> None:
        values = self._full(self.get(op.value))
        launch = op.parent_op()
        while not isinstance(launch, LaunchOp):
            assert launch is not None
            launch = launch.parent_op()
        for axis in op.axes:
            position = list(launch.body.block.args).index(axis)  # pyright: ignore[reportArgumentType]
            values = fold(op.combiner.data, values, position, keepdims=True, empty=0)
        self.values[op.result] = values


def evaluate_kernel(op: KernelOp, args: Sequence[Array]) -> list[Array]:
    """The outputs of a `loop.kernel` on arrays; raises ProgramError if an element is not stored once."""
    machine = LoopMachine()
    for argument, value in zip(op.input_args, args, strict=True):
        if isinstance(argument.type, MemRefType):
            machine.buffers[argument] = Buffer(value)
        else:
            machine.values[argument] = np.asarray(value)
    outputs: list[Buffer] = []
    for argument in op.output_args:
        assert isinstance(argument.type, MemRefType)
        shape = argument.type.get_shape()
        buffer = Buffer(
            poisoned(argument.type.element_type, shape), stores=np.zeros(shape, np.int32)
        )
        machine.buffers[argument] = buffer
        outputs.append(buffer)
    machine.run(op.body.block)
    for position, buffer in enumerate(outputs):
        if buffer.stores is not None and np.any(buffer.stores != 1):
            counts = sorted(set(buffer.stores.ravel().tolist()) - {1})
            raise ProgramError(
                f"@{op.sym_name.data}: elements of output #{position} are stored {counts} times"
            )
    return [buffer.data for buffer in outputs]
