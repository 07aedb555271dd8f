"""`exchange-stores`: lanes that stand side by side exchange what they store, to fill sectors of memory.

    %a = arith.truncf %p : f32 to bf16      %b = arith.truncf %q        // of columns 2 l and 2 l + 1
    %c = arith.truncf %r : f32 to bf16      %d = arith.truncf %s        // the same, 8 further
    kernel.vector_store %a, %b to %y[%row, %lane * 2] : ...
    kernel.vector_store %c, %d to %y[%row, %lane * 2 + 8] : ...
becomes
    %odd = loop.test[%lane mod 2 >= 1]
    %give = arith.select %odd, %p, %r       %got = kernel.shuffle %give xor 1     // and for the others
    %a = arith.truncf (arith.select %odd, %got, %p) ...
    kernel.vector_store %a, %b, %c, %d to %y[%row, %lane floordiv 2 * 4 + %lane mod 2 * 8] : ...

Four lanes hold a row of the products of tensor cores, two columns of each eight. Of 16-bit elements they
store 16 bytes that lie side by side, half a sector of memory. An even lane takes four columns of the first
eight, an odd one four of the second eight: so a store of a warp fills whole sectors, and there are half as
many. Only stores under no condition, which all lanes reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, ModuleOp, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from ...analysis.index import operand_ranges, simplify
from ...dialects.alignment import divisor
from ...dialects.kernel import WARP, FuncOp, ShuffleOp, ThreadIdOp, VectorLoadOp, VectorStoreOp
from ...dialects.loop import IndexOp, LoadOp, TestOp
from ...dialects.scalars import storage_bytes
from ...errors import counted
from ...index.affine import replace_dims, split_constant
from ..decisions import record

PAIR = 2
"""Columns that a lane stores at once, and lanes that exchange them."""

APART = 8
"""Columns from one store of a lane to the one that it exchanges."""

HALF_BYTES = 2
"""Of the elements of which two columns of four lanes are half a sector."""


@dataclass(frozen=True)
class Pair:
    """A store of two columns by each lane, whose index is over the thread's number and other values."""

    store: VectorStoreOp
    values: list[SSAValue]
    """What is rounded and stored."""
    operands: tuple[SSAValue, ...]
    """The thread first."""
    outer: tuple[AffineExpr, ...]
    last: AffineExpr
    constant: int
    """Of the last index, which is not in `last`."""

    @property
    def place(self) -> tuple[object, ...]:
        """All of the index but its constant, of which all pairs are some whole number of pairs apart."""
        return (self.operands, self.outer, self.last, self.constant % PAIR)


def find_pair(store: VectorStoreOp, thread: SSAValue) -> Pair | None:
    """A store in which lanes that stand side by side store columns that do, or None."""
    memref = store.memref.type
    assert isinstance(memref, MemRefType)
    values = [v.owner.input for v in store.values if isinstance(v.owner, arith.TruncFOp)]
    if len(values) < len(store.values) or len(values) != PAIR:
        return None
    if (
        any(value.type != f32 for value in values)
        or storage_bytes(memref.element_type) != HALF_BYTES
    ):
        return None
    exprs, operands = _over_thread(store, thread)
    ranges = operand_ranges(operands)
    moved = [_at(exprs, AffineExpr.dimension(0) * PAIR + lane) for lane in range(PAIR)]
    ranges[0] = (0, _threads_of(thread) // PAIR - 1)
    steps = [simplify(b + a * -1, ranges) for a, b in zip(*moved, strict=True)]
    wanted = [0] * (len(steps) - 1) + [PAIR]
    if [s.value if isinstance(s, AffineConstantExpr) else None for s in steps] != wanted:
        return None
    *outer, last = [simplify(expr, operand_ranges(operands)) for expr in exprs]
    rest, constant = split_constant(last)
    return Pair(store, values, tuple(operands), tuple(outer), rest, constant)


def _threads_of(thread: SSAValue) -> int:
    """Threads of the block that a thread's number is of."""
    function = thread.owner.parent_op() if isinstance(thread.owner, Operation) else None
    assert isinstance(function, FuncOp)
    return function.threads.value.data


def _over_thread(store: VectorStoreOp, thread: SSAValue) -> tuple[list[AffineExpr], list[SSAValue]]:
    """The index of a store over the thread's number and what else there is, no computed indices."""
    operands = [thread]

    def dim(value: SSAValue) -> AffineExpr:
        if isinstance(value.owner, IndexOp):
            op = value.owner
            return replace_dims(op.map.data.results[0], [dim(each) for each in op.operands_])
        if value not in operands:
            operands.append(value)
        return AffineExpr.dimension(operands.index(value))

    dims = [dim(value) for value in store.indices]
    exprs = [replace_dims(expr, dims) for expr in store.map.data.results]
    return exprs, operands


def _at(exprs: Sequence[AffineExpr], thread: AffineExpr) -> list[AffineExpr]:
    """Index expressions for another thread."""
    count = 1 + max((d for e in exprs for d in e.used_dims()), default=0)
    dims = [thread, *(AffineExpr.dimension(i) for i in range(1, count))]
    return [replace_dims(expr, dims) for expr in exprs]


def find_exchanges(block: Block, thread: SSAValue) -> Iterator[tuple[Pair, Pair]]:
    """Stores of a block that lanes can exchange; the second stands behind the first."""
    waiting: dict[SSAValue, tuple[object, dict[int, Pair]]] = {}
    for op in block.ops:
        pair = find_pair(op, thread) if isinstance(op, VectorStoreOp) else None
        if pair is not None:
            memref = pair.store.memref
            place, others = waiting.get(memref, (None, {}))
            if place != pair.place:
                others = {}
            before = others.pop(pair.constant - APART, None)
            if before is not None and _is_aligned(before):
                yield before, pair
            else:
                others[pair.constant] = pair
            waiting[memref] = pair.place, others
        elif isinstance(op, VectorStoreOp | LoadOp | VectorLoadOp):
            waiting.pop(op.memref, None)
        elif op.regions or not is_side_effect_free(op):
            waiting.clear()


def _is_aligned(pair: Pair) -> bool:
    """Whether an even lane's four columns are a vector."""
    (last,) = _at([pair.last + pair.constant], AffineExpr.dimension(0) // PAIR * PAIR)
    whole = divisor(last, pair.operands)
    return whole % (2 * PAIR) == 0


def exchange(first: Pair, second: Pair, odd: SSAValue) -> None:
    """Let an even lane store four columns of the first store, an odd one four of the second."""
    builder = Builder(InsertPoint.before(second.store))
    memref = second.store.memref.type
    assert isinstance(memref, MemRefType)
    own: list[SSAValue] = []
    other: list[SSAValue] = []
    for low, high in zip(first.values, second.values, strict=True):
        give = builder.insert(arith.SelectOp(odd, low, high)).result
        got = builder.insert(ShuffleOp(give, 1)).result
        own.append(builder.insert(arith.SelectOp(odd, got, low)).result)
        other.append(builder.insert(arith.SelectOp(odd, high, got)).result)
    rounded = [
        builder.insert(arith.TruncFOp(value, memref.element_type)).result
        for value in (*own, *other)
    ]
    lane = AffineExpr.dimension(0)
    outer = _at(first.outer, lane // PAIR * PAIR)
    (last,) = _at([first.last + first.constant], lane // PAIR * PAIR)
    ranges = operand_ranges(first.operands)
    exprs = [simplify(each, ranges) for each in (*outer, last + lane % PAIR * APART)]
    new = VectorStoreOp(rounded, second.store.memref, (exprs, list(first.operands)))
    new.location = second.store.location
    builder.insert(new)
    for pair in (first, second):
        rounding = [value.owner for value in pair.store.values]
        pair.store.detach()
        pair.store.erase()
        for op in rounding:
            assert isinstance(op, Operation)
            if not op.results[0].uses:
                op.detach()
                op.erase()


@dataclass(frozen=True)
class ExchangeStoresPass(ModulePass):
    """Needs the stores that `merge-accesses` makes."""

    name = "exchange-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            name, block = function.sym_name.data, function.body.block
            thread = next((o for o in block.ops if isinstance(o, ThreadIdOp)), None)
            found = []
            if thread is not None and function.threads.value.data % WARP == 0:
                found = list(find_exchanges(block, thread.result))
            if not found or thread is None:
                reason = "no lanes side by side store halves of sectors"
                record(self.name, name, False, reason, function)
                continue
            is_odd = [AffineExpr.dimension(0) % PAIR + -1]
            odd = TestOp(is_odd, [thread.result])
            Builder(InsertPoint.after(thread)).insert(odd)
            odd.result.name_hint = "odd"
            for first, second in found:
                exchange(first, second, odd.result)
            reason = f"{counted(len(found), 'store')} of whole sectors instead of two halves each"
            record(self.name, name, True, reason, function)
