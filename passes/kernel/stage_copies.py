"""Slabs of the scratchpad become shared memory, and copies that fill it; a part of `materialize-tile`.

    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %xs = tile.stage %x[%i * 16, %k * 8] buffers 3 via cp_async : ... -> memref<16x8xf32, "shared">
      ... loop.load %xs[%t, %e] ...
    } attributes {pipelined}
becomes
    %xs = kernel.shared align 16 : memref<3x16x8xf32, "shared">
    ...                                        // the copies of iterations 0 and 1, a group each
    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      kernel.async_wait 1                      // what this iteration reads has arrived
      kernel.barrier                           // for all threads, and nobody reads the last buffer any more
      ...                                      // so that the copies of iteration %k + 2 may fill it
      kernel.async_commit
      %buffer = loop.index[%k mod 3]
      ... loop.load %xs[%buffer, %t, %e] ...
    }

One barrier is enough for as many iterations ahead as there are buffers but one. In a loop that is not
pipelined the copies of an iteration stand in front of what reads them; there, too, a second buffer saves the
barrier between the readers of one iteration and the copies of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.bank_conflicts import loads_of
from ...analysis.copies import copy_elements
from ...analysis.index import Range, always_holds, operand_ranges, simplify
from ...dialects.index import Index, delinearize
from ...dialects.inside import ops_of
from ...dialects.kernel import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    BarrierOp,
    FuncOp,
)
from ...dialects.loop import ForOp, IndexOp, LoadOp, StoreOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import Transport
from ...dialects.sizes import extent_expr, shape_of, static_shape
from ...dialects.tile import PIPELINED, StageOp
from ...dialects.tile_mma import WgmmaOp as TileWgmmaOp
from ...errors import DeploError
from ...index.affine import ZERO, replace_dims
from ..loop.scalar_code import emit_constant
from .lower_mma import lower_wgmma
from .machine import Machine, in_loop
from .stage_bulk import BulkCopies, box_alignment, bulk_place, bulk_shape

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)


def lower_stages(machine: Machine) -> None:
    """Lower all slabs of a kernel; those whose copies stand together share what they wait for."""
    function = machine.function
    stages = ops_of(function, StageOp)
    for first in [op for op in stages if not isinstance(op.prev_op, StageOp)]:
        together: list[StageOp] = []
        op: Operation | None = first
        while isinstance(op, StageOp):
            together.append(op)
            op = op.next_op
        _Ring(machine, together).lower()


@dataclass(frozen=True)
class _Chunk:
    """What the copies of one iteration fill: its number over `counters`, one or none."""

    number: AffineExpr
    counters: list[SSAValue]


class _Ring:
    """Slabs that are filled together, each by as many buffers as take turns in the loop around them."""

    def __init__(self, machine: Machine, stages: list[StageOp]):
        self.machine = machine
        self.stages = stages
        parent = stages[0].parent_op()
        self.loop = parent if isinstance(parent, ForOp) else None
        self.buffers = stages[0].num_buffers
        self.ahead = self._iterations_ahead()
        self.is_async = any(stage.transport is Transport.CP_ASYNC for stage in stages)
        self.memory = {stage: self._declare(stage) for stage in stages}
        boxes = {s: m for s, m in self.memory.items() if s.transport is Transport.TMA}
        self.bulk = BulkCopies(machine, boxes, self.buffers) if boxes else None
        self.by_threads = [stage for stage in stages if stage not in boxes]

    def _iterations_ahead(self) -> int:
        loop, first = self.loop, self.stages[0]
        where = f"'tile.stage' at {first.location}"
        if any(stage.num_buffers != self.buffers for stage in self.stages):
            raise DeploError(f"{where}: copies that stand together have buffers of one number")
        if loop is None or loop.attributes.pop(PIPELINED, None) is None:
            return 0
        if self.buffers == 1 or not isinstance(loop.parent_op(), FuncOp):
            raise DeploError(
                f"{where} is pipelined: it needs 2 buffers or more, and a loop that stands in no other; "
                "run `double-buffer` and `pipeline-k-outer`"
            )
        return self.buffers - 1

    def _declare(self, stage: StageOp) -> SSAValue:
        """The shared memory of a slab, its buffers one after the other."""
        slab = stage.slab.type
        assert isinstance(slab, MemRefType)
        *outer, row = static_shape(slab)
        shape, align = [*outer, row + stage.padding], None
        if stage.transport is Transport.CP_ASYNC:
            align = _elements(stage) * storage_bytes(slab.element_type)
        elif stage.transport is Transport.TMA:
            shape, align = bulk_shape(stage), box_alignment(stage)
        shape = [*([self.buffers] if self.buffers > 1 else []), *shape]
        return self.machine.shared(shape, slab.element_type, stage.slab.name_hint, align)

    # ------------------------------------------------------------------ order

    def lower(self) -> None:
        """Put the copies and what waits for them in their places."""
        builder = Builder(InsertPoint.before(self.stages[0]))
        chunk = _Chunk(D0, [self.loop.induction_var]) if self.loop else _Chunk(ZERO, [])
        if self.ahead:
            self._prologue()
            self._pipelined(builder, chunk)
        else:
            if (self.buffers == 1 or self.bulk) and in_loop(self.stages[0]):
                builder.insert(self._barrier())  # the last iteration's readers must be done
            self._start(builder, chunk)
            if self.is_async:
                builder.insert(AsyncCommitOp())
                builder.insert(AsyncWaitOp(0))
            if self.bulk:
                self.bulk.wait(builder, chunk.number, chunk.counters)
            if self.by_threads:
                builder.insert(BarrierOp())
        self._redirect(builder, chunk)

    def _prologue(self) -> None:
        """Start the first iterations' copies in front of the loop."""
        assert self.loop is not None
        before = Builder(InsertPoint.before(self.loop))
        for number in range(self.ahead):
            self._start_if_any(before, _Chunk(AffineExpr.constant(number), []))

    def _pipelined(self, builder: Builder, chunk: _Chunk) -> None:
        """Wait for this iteration's copies, then start those of a later one."""
        if self.is_async:
            builder.insert(AsyncWaitOp(self.ahead - 1))
        if self.bulk:
            self.bulk.wait(builder, chunk.number, chunk.counters)
        builder.insert(self._barrier())
        self._start_if_any(builder, _Chunk(chunk.number + self.ahead, chunk.counters))

    def _barrier(self) -> BarrierOp:
        """What those wait at who read slabs before these are filled again, in all blocks that are."""
        return BarrierOp(cluster=any(stage.receivers > 1 for stage in self.stages))

    def _start_if_any(self, builder: Builder, chunk: _Chunk) -> None:
        """Start the copies of an iteration that may be past the last.

        They are a group in any case, so that the waits count right.
        """
        assert self.loop is not None
        operands = [*chunk.counters, *self.loop.limit_operands]
        ranges = operand_ranges(operands)
        left = [end + chunk.number * -1 + -1 for end in self._ends(len(chunk.counters), ranges)]
        tests = [simplify(each, ranges) for each in left if not always_holds(each, ranges)]
        if not any(always_holds(each * -1 + -1, ranges) for each in tests):
            self._start(_under(builder, tests, operands) if tests else builder, chunk)
        if self.is_async:
            builder.insert(AsyncCommitOp())

    def _ends(self, first: int, ranges: Sequence[Range]) -> list[AffineExpr]:
        """Where the loop ends, at the least of these; the operands of its limit are dims from `first` on."""
        assert self.loop is not None
        extent = extent_expr(self.loop.extent.data)
        if self.loop.limit is None:
            return [extent]
        count = len(self.loop.limit_operands)
        limit = replace_dims(
            self.loop.limit, [AffineExpr.dimension(first + i) for i in range(count)]
        )
        return [limit] if always_holds(extent + limit * -1, ranges) else [extent, limit]

    def _start(self, builder: Builder, chunk: _Chunk) -> None:
        for stage in self.by_threads:
            self._copy(builder, stage, chunk)
        if self.bulk:
            origins = {stage: self._origin(stage, chunk) for stage in self.bulk.memory}
            self.bulk.start(builder, origins, chunk.number, chunk.counters)

    def _turn(self, chunk: _Chunk) -> list[AffineExpr]:
        """Which buffer an iteration has, as the first index of shared memory; nothing if there is but one."""
        return [chunk.number % self.buffers] if self.buffers > 1 else []

    def _redirect(self, builder: Builder, chunk: _Chunk) -> None:
        """Let what reads the slabs read shared memory, in the iteration's buffer."""
        turn: list[SSAValue] = []
        for expr in self._turn(chunk):
            index = builder.insert(IndexOp(expr, chunk.counters))
            index.result.name_hint = "buffer"
            turn.append(index.result)
        for stage, memory in self.memory.items():
            for load in loads_of(stage):
                _reload(load, stage, memory, turn)
        slabs: dict[SSAValue, SSAValue] = {s.slab: memory for s, memory in self.memory.items()}
        for product in dict.fromkeys(u.operation for s in self.stages for u in s.slab.uses):
            assert isinstance(product, TileWgmmaOp)
            lower_wgmma(product, slabs, turn)
        for stage in self.stages:
            stage.detach()
            stage.erase()

    # ------------------------------------------------------------------ copies

    def _copy(self, builder: Builder, stage: StageOp, chunk: _Chunk) -> None:
        """Fill a slab: thread t copies parts t, t + T, t + 2T, ... of it."""
        slab = stage.slab.type
        assert isinstance(slab, MemRefType)
        is_async = stage.transport is Transport.CP_ASYNC
        vector = _elements(stage) if is_async else 1
        *outer, row = static_shape(slab)
        shape, threads = [*outer, row // vector], self.machine.threads
        count = prod(shape)
        trips = -(-count // threads)
        body, step, flat = builder, self.machine.thread, D1
        if trips > 1:
            body, step = _strided_loop(builder, trips)
            flat = D0 * threads + D1
        if count % threads:
            body = _under(body, [flat * -1 + (count - 1)], [step, self.machine.thread])
        ranges = [(0, trips - 1), (0, threads - 1)]
        local = [simplify(e, ranges) for e in delinearize(flat, shape)]
        local[-1] = local[-1] * vector
        corner, origin_operands = self._origin(stage, chunk)
        operands = [step, self.machine.thread, *origin_operands]
        shift = [AffineExpr.dimension(2 + i) for i in range(len(origin_operands))]
        origin = [replace_dims(e, shift) for e in corner]
        skipped = len(origin) - len(local)
        index = [e + local[i - skipped] if i >= skipped else e for i, e in enumerate(origin)]
        place = [*(replace_dims(e, shift) for e in self._turn(chunk)), *local]
        open_ = self._open_tests(stage, origin, index, operands)
        if is_async:
            _async_copy(body, stage, (index, operands), self.memory[stage], place, vector, open_)
        else:
            value = _load_or_zero(body, stage, index, operands, open_)
            store = body.insert(StoreOp(value, self.memory[stage], place, operands))
            store.location = stage.location

    def _origin(self, stage: StageOp, chunk: _Chunk) -> Index:
        """Where an iteration's slab begins in its source."""
        first = len(chunk.counters)
        counter = None if self.loop is None else self.loop.induction_var
        dims = [
            chunk.number if value is counter else AffineExpr.dimension(first + i)
            for i, value in enumerate(stage.origin)
        ]
        operands = [*chunk.counters, *stage.origin]
        return [replace_dims(e, dims) for e in stage.map.data.results], operands

    def _open_tests(
        self,
        stage: StageOp,
        origin: list[AffineExpr],
        index: list[AffineExpr],
        operands: list[SSAValue],
    ) -> list[AffineExpr]:
        """What must be at least 0 for an element to lie in the source, where that is not always so."""
        assert isinstance(stage.source.type, MemRefType)
        assert isinstance(stage.slab.type, MemRefType)
        slab = static_shape(stage.slab.type)
        lengths = [1] * (len(index) - len(slab)) + list(slab)
        ranges = operand_ranges(operands)
        of_all = stage.map.data.results, operand_ranges(stage.origin)  # of any iteration there is
        tests: list[AffineExpr] = []
        for axis, extent in enumerate(shape_of(stage.source.type)):
            if not always_holds(of_all[0][axis], of_all[1]):
                if not always_holds(origin[axis], ranges):
                    tests.append(simplify(index[axis], ranges))
            end = extent_expr(extent) + -lengths[axis]
            if always_holds(end + of_all[0][axis] * -1, of_all[1]):
                continue
            if not always_holds(end + origin[axis] * -1, ranges):
                tests.append(simplify(extent_expr(extent) + index[axis] * -1 + -1, ranges))
        return tests


def _elements(stage: StageOp) -> int:
    """Elements that one asynchronous copy of a slab takes."""
    elements = copy_elements(stage, stage.padding)
    if elements is None:
        raise DeploError(
            f"'tile.stage' at {stage.location} cannot go by cp_async: its rows are not "
            "proven to be whole numbers of 4 bytes; leave `via` out"
        )
    return elements


def _async_copy(
    body: Builder,
    stage: StageOp,
    source: tuple[list[AffineExpr], list[SSAValue]],
    memory: SSAValue,
    place: list[AffineExpr],
    vector: int,
    open_: list[AffineExpr],
) -> None:
    inside = body.insert(TestOp(open_, source[1])).result if open_ else None
    copy = AsyncCopyOp(stage.source, source, memory, (place, source[1]), vector, inside)
    copy.location = stage.location
    body.insert(copy)


def _load_or_zero(
    body: Builder,
    stage: StageOp,
    index: list[AffineExpr],
    operands: list[SSAValue],
    open_: list[AffineExpr],
) -> SSAValue:
    """The element of the source at `index`, or 0 outside of it."""
    assert isinstance(stage.source.type, MemRefType)
    load = LoadOp(stage.source, index, operands)
    load.location = stage.location
    if not open_:
        return body.insert(load).result
    element = stage.source.type.element_type
    inside = body.insert(TestOp(open_, operands))
    then = Block([load, scf.YieldOp(load.result)])
    otherwise = Block()
    zero = emit_constant(Builder(InsertPoint.at_end(otherwise)), 0, element)
    otherwise.add_op(scf.YieldOp(zero))
    guard = scf.IfOp(inside.result, [element], Region(then), Region(otherwise))
    return body.insert(guard).output[0]


def _reload(load: LoadOp, stage: StageOp, memory: SSAValue, turn: Sequence[SSAValue]) -> None:
    """Let a load of a slab read the shared memory in its place, in the buffer given."""
    index = list(load.map.data.results)
    if stage.transport is Transport.TMA:
        ranges = operand_ranges(load.indices)
        index = [simplify(e, ranges) for e in bulk_place(stage, index)]
    shift = [AffineExpr.dimension(len(turn) + i) for i in range(len(load.indices))]
    exprs = [
        *(AffineExpr.dimension(i) for i in range(len(turn))),
        *(replace_dims(e, shift) for e in index),
    ]
    new = LoadOp(memory, exprs, [*turn, *load.indices])
    new.location = load.location
    new.result.name_hint = load.result.name_hint
    assert load.parent is not None
    load.parent.insert_op_before(new, load)
    load.result.replace_all_uses_with(new.result)
    load.detach()
    load.erase()


def _under(builder: Builder, tests: Sequence[AffineExpr], operands: list[SSAValue]) -> Builder:
    """Where code goes that runs if all `tests` are at least 0."""
    inside = builder.insert(TestOp(tests, operands))
    guard = builder.insert(scf.IfOp(inside.result, [], Region(Block([scf.YieldOp()]))))
    assert guard.true_region.block.last_op is not None
    return Builder(InsertPoint.before(guard.true_region.block.last_op))


def _strided_loop(builder: Builder, trips: int) -> tuple[Builder, SSAValue]:
    """A free loop of `trips`; gives where its body goes and its counter."""
    loop = builder.insert(ForOp(trips, Region(Block(arg_types=[IndexType()]))))
    loop.induction_var.name_hint = "step"
    assert loop.body.block.last_op is not None
    return Builder(InsertPoint.before(loop.body.block.last_op)), loop.induction_var
