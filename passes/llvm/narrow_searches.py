"""`narrow-searches`: where an extremum stands is looked for in the block of the row in which it was found.

    %m = scf.for %j = %c0 to %c32000 step %c1 iter_args(%so_far = %lowest) -> (f32) {
      %v = loop.load %x[%i, %j]
      %next = arith.maximumf %so_far, %v
      scf.yield %next
    }
    %p = scf.for %j = %c0 to %c32000 step %c1 iter_args(%so_far = %last) -> (i64) {
      %v = loop.load %x[%i, %j]
      %found = ...                                       // %v is %m, or NaN
      %place = arith.select %found, %j, %never
      %next = arith.minsi %so_far, %place
      scf.yield %next
    }
becomes
    %m, %at = scf.for %block = %c0 to %c62 step %c1 iter_args(%best = %lowest, %of = %c0) -> (f32, index) {
      %part = scf.for %k = %c0 to %c512 ... { %j = loop.index[%block * 512 + %k] ... }
      %better = ...                                      // %part is larger than %best, or the first NaN
      ...                                                // the larger one, and the start of its block
    }
    ...                                                  // the same for the last 256 elements
    %start = arith.minsi %at, %last_start
    %p = scf.for %k = %c0 to %c512 ... { %j = loop.index[%start + %k] ... }

The first block whose extremum is that of the row has the first place where it stands. So the row is read
once, and a block of it again: where the last one is shorter, with some of what is before it.

Declined are short rows and those of unknown length, sweeps that compute something else as well, extrema that
begin with more than the least value, and those of other values, or of memory that is written in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import constant_of
from ...dialects.inside import ops_in
from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp
from ...dialects.scalars import Combiner, identity
from ...dialects.syntax import scalar_attr
from .kernel_loops import NOT_CONCERNED, change_loops
from .loop_names import Names

BLOCK = 512
"""Elements of a block: to fold its vectors to one number costs little beside reading them."""
SHORTEST = 2 * BLOCK

_Extremum = arith.MaximumfOp | arith.MinimumfOp | arith.MaxSIOp | arith.MinSIOp

_COMBINERS: dict[type[Operation], Combiner] = {
    arith.MaximumfOp: Combiner.MAX,
    arith.MaxSIOp: Combiner.MAX,
    arith.MinimumfOp: Combiner.MIN,
    arith.MinSIOp: Combiner.MIN,
}

_BETTER: dict[type[Operation], str] = {
    arith.MaximumfOp: "ugt",
    arith.MaxSIOp: "sgt",
    arith.MinimumfOp: "ult",
    arith.MinSIOp: "slt",
}
"""How an extremum compares with the one before that it replaces; NaN is better than any number."""

_SUM = AffineExpr.dimension(0) + AffineExpr.dimension(1)


@dataclass(frozen=True)
class _Fold:
    """A sweep that folds the `value` of each place into the extremum so far."""

    loop: scf.ForOp
    op: _Extremum
    value: SSAValue

    @property
    def counter(self) -> SSAValue:
        """The place."""
        return self.loop.body.block.args[0]

    @property
    def begins_with_least(self) -> bool:
        """Whether it begins with what any value is as good as."""
        (start,) = self.loop.iter_args
        op, least = start.owner, identity(_COMBINERS[type(self.op)], start.type)
        return isinstance(op, arith.ConstantOp) and op.value == scalar_attr(least, start.type)


def _fold(loop: Operation | Block) -> _Fold | None:
    """A loop as a sweep that computes an extremum and nothing else."""
    if not isinstance(loop, scf.ForOp) or len(loop.res) != 1:
        return None
    (so_far,) = loop.body.block.args[1:]
    end = loop.body.block.last_op
    assert end is not None
    op = end.operands[0].owner
    if not isinstance(op, _Extremum) or not so_far.has_one_use() or so_far not in op.operands:
        return None
    return _Fold(loop, op, op.rhs if op.lhs is so_far else op.lhs)


def _is_search(fold: _Fold) -> bool:
    """Whether a sweep finds the first place of which something holds; where there is none, a constant."""
    chosen = fold.value.owner
    if not isinstance(fold.op, arith.MinSIOp) or not isinstance(chosen, arith.SelectOp):
        return False
    cast = chosen.lhs.owner
    if not isinstance(cast, arith.IndexCastOp):
        return False
    if cast.input is fold.counter:
        return True
    place = cast.input.owner
    if not isinstance(place, IndexOp) or list(place.operands_) != [fold.counter]:
        return False
    return place.map.data.results[0] == AffineExpr.dimension(0)


def _alternatives(condition: SSAValue) -> Iterator[Operation | Block]:
    """The conditions of which one is to hold."""
    if isinstance(op := condition.owner, arith.OrIOp):
        yield from _alternatives(op.lhs)
        yield from _alternatives(op.rhs)
    else:
        yield op


def _searched(search: _Fold) -> tuple[_Fold, SSAValue] | str:
    """The sweep whose extremum, or NaN, a search looks for, and its value at a place, or why none."""
    chosen = search.value.owner
    assert isinstance(chosen, arith.SelectOp)
    extrema: list[_Fold | None] = []
    values = set[SSAValue]()
    for op in _alternatives(chosen.cond):
        if not isinstance(op, arith.CmpfOp | arith.CmpiOp):
            return "what it looks for is no extremum"
        is_nan = op.lhs is op.rhs and _says(op, "une")
        if not is_nan:
            extrema.append(_fold(op.rhs.owner) if _says(op, "oeq", "eq") else None)
        values.add(op.lhs)
    if len(extrema) != 1 or extrema[0] is None or len(values) > 1:
        return "what it looks for is no extremum"
    return extrema[0], values.pop()


def _says(op: arith.CmpfOp | arith.CmpiOp, *predicates: str) -> bool:
    """Whether a comparison has one of some predicates."""
    floats = isinstance(op, arith.CmpfOp)
    names = arith.CMPF_COMPARISON_OPERATIONS if floats else arith.CMPI_COMPARISON_OPERATIONS
    return names[op.predicate.value.data] in predicates


def _only_computes(op: Operation) -> bool:
    """Whether an operation, like those in it, reads and computes and does nothing else."""
    plain = isinstance(op, LoadOp | IndexOp | TestOp | scf.ForOp | scf.IfOp | scf.YieldOp)
    return plain or op.dialect_name() in ("arith", "math")


def _stored_between(first: scf.ForOp, last: scf.ForOp) -> Iterator[SSAValue | None]:
    """What is stored to between two loops; None for what may do anything."""
    op = first.next_op
    while op is not None and op is not last:
        for inner in op.walk():
            if isinstance(inner, StoreOp):
                yield inner.memref
            elif not _only_computes(inner):
                yield None
        op = op.next_op


def _reason(search: _Fold, extremum: _Fold, value: SSAValue) -> str | None:
    """Why a search goes through the whole row."""
    first, last = extremum.loop, search.loop
    length = constant_of(last.ub)
    if length is None or (constant_of(last.lb), constant_of(last.step)) != (0, 1):
        return "the length of the row is not known"
    if length < SHORTEST:
        return f"{length} elements are less than {SHORTEST}"
    if first.parent is not last.parent or any(
        a is not b for a, b in zip(first.operands[:3], last.operands[:3], strict=True)
    ):
        return "the extremum is that of another range"
    if not extremum.begins_with_least:
        return "the extremum begins with another one"
    bodies = [op for loop in (first, last) for op in ops_in(loop.body)]
    if not all(map(_only_computes, bodies)):
        return "a sweep does something else as well"
    names = Names(first, columns=False).of, Names(last, columns=False).of
    if names[0].get(extremum.value) != names[1].get(value, value):
        return "it looks at other values"
    stored = set(_stored_between(first, last))
    if None in stored or any(isinstance(op, LoadOp) and op.memref in stored for op in bodies):
        return "it may read what is stored in between"
    chosen = search.value.owner
    never = constant_of(chosen.operands[2]) if isinstance(chosen, arith.SelectOp) else None
    if never is None or never < length:
        return "a place may be none"
    return None


class _Narrow:
    """Replaces the sweep for an extremum and the search for its place."""

    def __init__(self, extremum: _Fold, search: _Fold, length: int):
        self.extremum = extremum
        self.search = search
        self.length = length
        self.before = Builder(InsertPoint.before(extremum.loop))

    def run(self) -> None:
        """Fold block by block, then search the best one."""
        loop = self.extremum.loop
        best = self._blocks([loop.iter_args[0], loop.lb])
        if rest := self.length % BLOCK:
            start = self._constant(self.length - rest)
            best = self._better(self.before, best, start, self._constant(rest))
        extremum, at = best
        self.before = Builder(InsertPoint.before(self.search.loop))
        if rest:
            last = self._constant(self.length - BLOCK)
            at = self.before.insert(arith.MinSIOp(at, last)).result
        found = self._sweep(self.before, self.search.loop, at, self._constant(BLOCK))
        for loop, by in ((self.search.loop, found), (self.extremum.loop, extremum)):
            by.name_hint = loop.res[0].name_hint
            loop.res[0].replace_all_uses_with(by)
            loop.detach()
            loop.erase()

    def _blocks(self, best: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The loop over whole blocks, which gives the extremum and where its block begins."""
        body = Block(arg_types=[IndexType(), *(v.type for v in best)])
        for value, hint in zip(body.args, ("block", "best", "at"), strict=True):
            value.name_hint = hint
        blocks, size = self._constant(self.length // BLOCK), self._constant(BLOCK)
        loop = scf.ForOp(self.extremum.loop.lb, blocks, self.extremum.loop.step, best, body)
        loop.location = self.extremum.loop.location
        self.before.insert(loop)
        inner = Builder(InsertPoint.at_end(body))
        start = inner.insert(IndexOp(AffineExpr.dimension(0) * BLOCK, [body.args[0]])).result
        inner.insert(scf.YieldOp(*self._better(inner, body.args[1:], start, size)))
        return loop.res

    def _better(
        self, builder: Builder, best: Sequence[SSAValue], start: SSAValue, size: SSAValue
    ) -> Sequence[SSAValue]:
        """The better one of the extremum so far and that of a block, and the start of its block."""
        so_far, at = best
        fold = self.extremum.op
        part = self._sweep(builder, self.extremum.loop, start, size)
        value = builder.insert(fold.clone({fold.lhs: so_far, fold.rhs: part})).results[0]
        better = _compare(builder, part, so_far, _BETTER[type(fold)])
        return value, builder.insert(arith.SelectOp(better, start, at)).result

    def _sweep(
        self, builder: Builder, loop: scf.ForOp, start: SSAValue, size: SSAValue
    ) -> SSAValue:
        """What a loop gives that runs over a block alone."""
        counter, so_far = loop.body.block.args
        body = Block(arg_types=[IndexType(), so_far.type])
        body.args[1].name_hint = so_far.name_hint
        piece = scf.ForOp(loop.lb, size, loop.step, loop.iter_args, body)
        piece.location = loop.location
        builder.insert(piece)
        inner = Builder(InsertPoint.at_end(body))
        place = inner.insert(IndexOp(_SUM, [start, body.args[0]])).result
        place.name_hint = counter.name_hint
        mapped: dict[SSAValue, SSAValue] = {counter: place, so_far: body.args[1]}
        for op in loop.body.block.ops:
            inner.insert(op.clone(mapped))
        return piece.res[0]

    def _constant(self, value: int) -> SSAValue:
        return self.before.insert(arith.ConstantOp(IntegerAttr(value, IndexType()))).result


def _compare(builder: Builder, part: SSAValue, so_far: SSAValue, how: str) -> SSAValue:
    """Whether the extremum of a block is better than that of all before: of NaNs the first one is."""
    if how.startswith("s"):
        return builder.insert(arith.CmpiOp(part, so_far, how)).result
    better = builder.insert(arith.CmpfOp(part, so_far, how)).result
    number = builder.insert(arith.CmpfOp(so_far, so_far, "ord")).result
    return builder.insert(arith.AndIOp(better, number)).result


def _change(loop: scf.ForOp) -> str | None:
    """Narrow a search; gives None, or why not."""
    search = _fold(loop)
    if search is None or not _is_search(search):
        return NOT_CONCERNED
    found = _searched(search)
    if isinstance(found, str):
        return found
    extremum, value = found
    if (reason := _reason(search, extremum, value)) is not None:
        return reason
    length = constant_of(loop.ub)
    assert length is not None
    _Narrow(extremum, search, length).run()
    return None


@dataclass(frozen=True)
class NarrowSearchesPass(ModulePass):
    """Needs kernels as `scf` functions; leaves searches in a block of a row."""

    name = "narrow-searches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Narrow the searches for extrema of every kernel."""
        change_loops(self.name, op, _change, none="there is no search")
