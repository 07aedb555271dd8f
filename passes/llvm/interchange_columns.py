"""`interchange-columns`: reductions down the columns of an array go along its rows.

    scf.for %j = %c0 to %c128 step %c1 {
      %s = scf.for %i = %c0 to %c64 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %j]
        %next = arith.addf %so_far, %v
        scf.yield %next
      }
      loop.store %s, %y[%j]
    }
becomes
    scf.for %j = ... { loop.store %zero, %kept[%j] }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = ... {
        %v = loop.load %x[%i * 8, %j]      ...           // and rows %i * 8 + 1 to %i * 8 + 7
        %so_far = loop.load %kept[%j]
        ...                                              // floats are added in pairs first
        loop.store %next, %kept[%j]
      }
    }
    scf.for %j = ... { %s = loop.load %kept[%j]  loop.store %s, %y[%j] }

So memory is read in the order in which it lies, the innermost loop is one that LLVM makes vectors of, and the
sums so far are in the first-level cache. Rows are folded in order, sums of floats eight at once. A sweep that
stores, as of a softmax down columns, goes row by row as well.

Declined are loops over columns that reduce nothing, or a few rows, those whose reductions walk along memory
themselves, and those with anything but arithmetic, loads, stores and such reductions in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, f32, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.columns import walks_columns
from ...analysis.index import constant_of
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp
from .block_sums import CHAIN, carry_wide, is_long, sums_of
from .kernel_loops import NOT_CONCERNED, change_loops, function_of
from .scratch_rows import most_of, row_of
from .unroll_windows import is_window

ROWS = 8
"""Rows that one iteration folds: the sums so far are loaded and stored once for so many."""
DIMENSION = AffineExpr.dimension(0)
_ARITHMETIC = ("arith", "math")


def _reason(loop: scf.ForOp) -> str | None:
    """Why a loop over columns stays as it is."""
    columns = most_of(loop.ub)
    if columns is None or (constant_of(loop.lb), constant_of(loop.step)) != (0, 1) or loop.res:
        return "the number of columns is not known"
    block = loop.body.block
    sweeps = ops_of(block, scf.ForOp)
    if not any(sweep.res for sweep in sweeps):
        return "nothing is reduced"
    stored = {op.memref for op in ops_in(block) if isinstance(op, StoreOp)}
    if any(isinstance(op, LoadOp) and op.memref in stored for op in ops_in(block)):
        return "it reads what it stores"
    for sweep in sweeps:
        if (constant_of(sweep.lb), constant_of(sweep.step)) != (0, 1):
            return "a sweep does not go row by row"
        if not isinstance(sweep.parent_op(), scf.ForOp):
            return "a sweep is in a branch"
        if sweep.ub.owner in ops_in(block):
            return "a sweep's length differs from column to column"
    loads = [op for sweep in sweeps for op in ops_in(sweep.body) if isinstance(op, LoadOp)]
    column = block.args[0]
    if not any(column in load.indices for load in loads):
        return "no sweep reads columns"
    if not all(walks_columns(load, column) for load in loads):
        return "neighbouring columns are no neighbours in memory"
    for op in ops_in(block):
        plain = isinstance(op, LoadOp | StoreOp | IndexOp | TestOp | scf.ForOp | scf.IfOp)
        if not plain and not isinstance(op, scf.YieldOp) and op.dialect_name() not in _ARITHMETIC:
            return f"{op.name} is in it"
    whole = [sweep for sweep in sweeps if sweep.parent is block]
    return "its reductions are windows, which are unrolled" if all(map(is_window, whole)) else None


def _read(op: Operation) -> list[SSAValue]:
    """What an operation reads, in its branches too, that it does not compute itself."""
    inside = set(ops_in(op))
    found = (v for inner in ops_in(op) for v in inner.operands)
    return [v for v in found if not isinstance(v.owner, Operation) or v.owner not in inside]


def _is_free(op: Operation) -> bool:
    """Whether an operation is computed again rather than that its value waits."""
    return isinstance(op, arith.ConstantOp | IndexOp | TestOp)


class _Interchange:
    """Distributes a loop over columns: a segment of its body between two sweeps is a loop of its own."""

    def __init__(self, loop: scf.ForOp, entry: Block):
        self.loop = loop
        self.entry = entry
        self.column = loop.body.block.args[0]
        self.buffers: dict[SSAValue, SSAValue] = {}
        """Where values wait that one segment computes and another one reads."""
        self.counters: dict[SSAValue, SSAValue] = {}
        """The counters of the new sweeps, by those of the old ones."""

    def run(self) -> str | None:
        """Replace the loop; gives None, or why not."""
        waiting = self._waiting()
        for value in waiting:
            if isinstance(value.type, IndexType):
                return "an index would have to wait"
        for value, place in waiting.items():
            self.buffers[value] = (
                row_of(value, self.loop, self.entry, "columns")
                if place is value
                else self.buffers[place]
            )
        self._block(Builder(InsertPoint.before(self.loop)), self.loop.body.block, [])
        self.loop.detach()
        self.loop.erase()
        return None

    def _waiting(self) -> dict[SSAValue, SSAValue]:
        """The values that have to wait, each with the one in whose buffer it does."""
        segments = self._segments()
        waiting: dict[SSAValue, SSAValue] = {}

        def read(value: SSAValue, segment: int) -> None:
            owner = value.owner
            if not isinstance(owner, Operation) or segments.get(owner, segment) == segment:
                return
            if not _is_free(owner):
                waiting.setdefault(value, value)
            for operand in owner.operands if _is_free(owner) else ():
                read(operand, segment)

        for op, segment in segments.items():
            if not isinstance(op, scf.ForOp):
                for value in _read(op):
                    read(value, segment)
                continue
            for argument, result in zip(op.body.block.args[1:], op.res, strict=True):
                waiting |= {argument: argument, result: argument}
        return waiting

    def _segments(self) -> dict[Operation, int]:
        """The number of each operation's segment."""
        numbers: dict[Operation, int] = {}
        count = 0

        def visit(block: Block) -> None:
            nonlocal count
            for op in block.ops:
                numbers[op] = count
                if isinstance(op, scf.ForOp):
                    count += 1
                    visit(op.body.block)
                    count += 1

        visit(self.loop.body.block)
        return numbers

    def _block(self, builder: Builder, block: Block, carried: Sequence[SSAValue]) -> None:
        """Distribute a block; what it yields goes to the buffers of the values in `carried`."""
        ops: list[Operation] = []
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._segment(
                    builder, ops, dict(zip(op.body.block.args[1:], op.iter_args, strict=True))
                )
                self._sweep(builder, op)
                ops = []
            elif isinstance(op, scf.YieldOp):
                self._segment(builder, ops, dict(zip(carried, op.operands, strict=True)))
            else:
                ops.append(op)

    def _sweep(self, builder: Builder, sweep: scf.ForOp) -> None:
        """A sweep over rows around loops over columns."""
        block, rows = sweep.body.block, constant_of(sweep.ub)
        zero, one = sweep.lb, sweep.step
        if any(isinstance(op, scf.ForOp) for op in block.ops):
            inner, counter = _enter(builder, zero, sweep.ub, one, block.args[0].name_hint)
            self.counters[block.args[0]] = counter
            self._block(inner, block, block.args[1:])
            inner.insert(scf.YieldOp())
            return
        rest = zero
        if sweep.res and (rows is None or rows >= ROWS):
            groups = builder.insert(IndexOp(DIMENSION // ROWS, [sweep.ub])).result
            self._groups(builder, sweep, groups)
            if rows is None or rows % ROWS:
                rest = builder.insert(IndexOp(DIMENSION * ROWS, [groups])).result
        if not sweep.res or rows is None or rows % ROWS:
            inner, counter = _enter(builder, rest, sweep.ub, one, block.args[0].name_hint)
            self._rows(inner, block, [DIMENSION], counter)

    def _groups(self, builder: Builder, sweep: scf.ForOp, groups: SSAValue) -> None:
        """Fold groups of `ROWS` rows; long sums of f32 in blocks of `CHAIN` groups, which f64 adds up."""
        block, rows = sweep.body.block, constant_of(sweep.ub)
        hint, exprs = block.args[0].name_hint, [DIMENSION * ROWS + n for n in range(ROWS)]
        sums = zip(block.args[1:], sums_of(sweep), strict=True)
        values: list[SSAValue] = [v for v, op in sums if op and v.type == f32]
        if not values or (rows is not None and rows < 2 * CHAIN * ROWS):
            inner, counter = _enter(builder, sweep.lb, groups, sweep.step, hint)
            self._rows(inner, block, exprs, counter)
            return
        wide = {v: row_of(v, self.loop, self.entry, "wide", f64) for v in values}
        self._widen(builder, wide, first=True)
        step = builder.insert(arith.ConstantOp(IntegerAttr(CHAIN, IndexType()))).result
        outer, first = _enter(builder, sweep.lb, groups, step, "block")
        end = outer.insert(IndexOp(DIMENSION + CHAIN, [first])).result
        least = outer.insert(arith.MinSIOp(end, groups)).result
        inner, counter = _enter(outer, first, least, sweep.step, hint)
        self._rows(inner, block, exprs, counter)
        self._widen(outer, wide)
        outer.insert(scf.YieldOp())
        self._narrow(builder, wide)

    def _widen(
        self, builder: Builder, wide: Mapping[SSAValue, SSAValue], *, first: bool = False
    ) -> None:
        """Add the sums of a block to those of the blocks before, if there are any, and begin anew."""
        inner, local = self._enter_columns(builder)
        column = local[self.column]
        for value, row in wide.items():
            total = inner.insert(arith.ExtFOp(self._value(value, inner, local), f64)).result
            if not first:
                before = inner.insert(LoadOp(row, [DIMENSION], [column])).result
                total = inner.insert(arith.AddfOp(before, total)).result
            inner.insert(StoreOp(total, row, [DIMENSION], [column]))
            zero = inner.insert(arith.ConstantOp(FloatAttr(0.0, f32))).result
            inner.insert(StoreOp(zero, self.buffers[value], [DIMENSION], [column]))
        inner.insert(scf.YieldOp())

    def _narrow(self, builder: Builder, wide: Mapping[SSAValue, SSAValue]) -> None:
        """Leave the sums of all blocks where those of one were."""
        inner, local = self._enter_columns(builder)
        column = local[self.column]
        for value, row in wide.items():
            total = inner.insert(LoadOp(row, [DIMENSION], [column])).result
            short = inner.insert(arith.TruncFOp(total, f32)).result
            inner.insert(StoreOp(short, self.buffers[value], [DIMENSION], [column]))
        inner.insert(scf.YieldOp())

    def _rows(
        self, builder: Builder, block: Block, rows: Sequence[AffineExpr], counter: SSAValue
    ) -> None:
        """Fold some rows, one after the other, in one loop over columns."""
        numbers = [builder.insert(IndexOp(row, [counter])).result for row in rows]
        *ops, end = block.ops
        inner, local = self._enter_columns(builder)
        carried = block.args[1:]
        values: list[SSAValue] = [self._value(a, inner, local) for a in carried]
        sums = _sums(carried, end)
        terms: list[list[SSAValue]] = []
        for number in numbers:
            copied = local | {block.args[0]: number} | dict(zip(carried, values, strict=True))
            self._copy([op for op in ops if op not in sums], inner, copied)
            if sums:
                terms.append([self._value(op.rhs, inner, copied) for op in sums])
            else:
                values = [self._value(v, inner, copied) for v in end.operands]
        for place, op in enumerate(sums):
            total = _sum(inner, [each[place] for each in terms], op)
            values[place] = inner.insert(arith.AddfOp(values[place], total, op.fastmath)).result
        self._leave(inner, zip(carried, values, strict=True), local)
        builder.insert(scf.YieldOp())

    def _segment(
        self, builder: Builder, ops: Sequence[Operation], stored: Mapping[SSAValue, SSAValue]
    ) -> None:
        """A loop over columns of some operations; `stored` are values for the buffers of others."""
        waiting = [r for op in ops for r in op.results if r in self.buffers]
        if not stored and not waiting and all(_is_free(op) for op in ops):
            return
        inner, local = self._enter_columns(builder)
        self._copy(ops, inner, local)
        values = {place: self._value(value, inner, local) for place, value in stored.items()}
        values |= {value: local[value] for value in waiting}
        self._leave(inner, values.items(), local)

    def _enter_columns(self, builder: Builder) -> tuple[Builder, dict[SSAValue, SSAValue]]:
        loop = self.loop
        inner, counter = _enter(builder, loop.lb, loop.ub, loop.step, self.column.name_hint)
        return inner, {**self.counters, self.column: counter}

    def _copy(
        self, ops: Sequence[Operation], builder: Builder, local: dict[SSAValue, SSAValue]
    ) -> None:
        for op in ops:
            for value in _read(op):
                local[value] = self._value(value, builder, local)
            builder.insert(op.clone(value_mapper=local))

    def _value(
        self, value: SSAValue, builder: Builder, local: dict[SSAValue, SSAValue]
    ) -> SSAValue:
        """A value in a segment: as it is there, from its buffer, or computed again."""
        if value in local:
            return local[value]
        if value in self.buffers:
            load = builder.insert(LoadOp(self.buffers[value], [DIMENSION], [local[self.column]]))
            load.result.name_hint = value.name_hint
            return load.result
        owner = value.owner
        if not isinstance(owner, Operation) or not self.loop.is_ancestor(owner):
            return value
        self._copy([owner], builder, local)
        return local[value]

    def _leave(
        self,
        builder: Builder,
        values: Iterable[tuple[SSAValue, SSAValue]],
        local: Mapping[SSAValue, SSAValue],
    ) -> None:
        """Store values for other segments, once all are computed."""
        for place, value in values:
            builder.insert(StoreOp(value, self.buffers[place], [DIMENSION], [local[self.column]]))
        builder.insert(scf.YieldOp())


def _sums(carried: Sequence[SSAValue], end: Operation) -> list[arith.AddfOp]:
    """The additions of a sweep that does nothing but sum up floats; of another one none."""
    found: list[arith.AddfOp] = []
    for argument, value in zip(carried, end.operands, strict=True):
        op = value.owner
        if not isinstance(op, arith.AddfOp) or op.lhs is not argument or op.rhs is argument:
            return []
        if not argument.has_one_use() or not value.has_one_use():
            return []
        found.append(op)
    return found


def _sum(builder: Builder, terms: Sequence[SSAValue], like: arith.AddfOp) -> SSAValue:
    """The sum of some terms, in pairs, which rounds less than one after the other."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    parts = _sum(builder, terms[:half], like), _sum(builder, terms[half:], like)
    return builder.insert(arith.AddfOp(*parts, like.fastmath)).result


def _enter(
    builder: Builder, start: SSAValue, end: SSAValue, step: SSAValue, hint: str | None
) -> tuple[Builder, SSAValue]:
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = hint
    builder.insert(scf.ForOp(start, end, step, [], body))
    return Builder(InsertPoint.at_end(body)), body.args[0]


def _change(loop: scf.ForOp) -> str | None:
    """Interchange a loop with those in it; gives None, or why not."""
    if loop.res:
        return NOT_CONCERNED
    if (reason := _reason(loop)) is not None:
        return reason
    for sweep in ops_of(loop.body, scf.ForOp):
        if any(isinstance(op, scf.ForOp) for op in ops_in(sweep.body)) and is_long(sweep):
            carry_wide(sweep)
    return _Interchange(loop, function_of(loop).body.block).run()


@dataclass(frozen=True)
class InterchangeColumnsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves sweeps over columns that go row by row."""

    name = "interchange-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Interchange the loops over columns of every kernel, inner ones first."""
        change_loops(self.name, op, _change, inner_first=True)
