"""`prefetch-sweeps`: a loop along memory asks for what it will read a while later, as its schedule says.

    func.func @k(...) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 4096>} {
      %s = scf.for %j = %c0 to %c4096 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %j] : memref<1024x4096xf32>
        ...
      }
becomes
      %s = scf.for %strip = %c0 to %c16 step %c1 iter_args(%so_far = %zero) -> (f32) {
        loop.prefetch %x[%i, %strip * 256] ahead 1024 : memref<1024x4096xf32>
        ...                                                    // one for each line of the cache
        loop.prefetch %x[%i, %strip * 256 + 240] ahead 1024 : memref<1024x4096xf32>
        %t = scf.for %j = %c0 to %c256 step %c1 iter_args(%so_far_1 = %so_far) -> (f32) {
          %k = loop.index [%strip * 256 + %j]
          %v = loop.load %x[%i, %k] : memref<1024x4096xf32>
          ...
        }
        scf.yield %t : f32
      }

A core asks for some lines at a time, and its own guess at the next ones ends with each page: what lies in
the shared cache or in memory arrives faster if it is asked for early. Past the end of a row lies the next
one. The strips are as long as that asking for each costs little, and LLVM makes vectors of each. Where the
order of a reduction is free, each strip begins anew and its result is folded into the others', so that no
strip waits for the vectors of the one before.

Asked for is what each row has of its own, once: not what another loop before read, nor what is the same for
every row, nor what is written. Declined are loops that do not begin at 0 or are of unknown length, and those
that walk along nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.columns import walks_columns
from ...analysis.index import constant_of
from ...dialects.index import linearize
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import IndexOp, LoadOp, PrefetchOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import schedule_of
from ...dialects.sizes import shape_of
from ...errors import counted
from ...index.affine import count_symbols, replace_dims
from ..decisions import record
from .asking_ahead import LINE_BYTES
from .kernel_loops import kernels_of
from .loop_code import element_of

STRIP = 256
"""Elements of a strip, about."""

LEAST = 16
"""Elements of a loop that is worth asking for."""

DIMENSION = AffineExpr.dimension(0)


def strip_of(length: int) -> int:
    """Elements of a strip of a loop: about `STRIP`, whole vectors, and parts of the loop if that can be."""
    if length < 2 * STRIP:
        return length
    sizes = range(STRIP // 2, 2 * STRIP + 1, 16)
    return max((n for n in sizes if length % n == 0), key=lambda n: -abs(n - STRIP), default=STRIP)


def walking_loads(loop: scf.ForOp, length: int) -> list[LoadOp]:
    """What a loop reads along memory that other iterations of the loops around it do not read."""
    counter = loop.body.block.args[0]
    loads = [op for op in ops_in(loop.body) if isinstance(op, LoadOp) and counter in op.indices]
    inside = {counter, *(r for op in ops_in(loop.body) for r in op.results)}
    return [
        load
        for load in loads
        if isinstance(load.memref.owner, Block)
        and not _has_sizes(_place(load), load.indices)
        and walks_columns(load, counter)
        and set(load.indices) - {counter}
        and not set(load.indices) & (inside - {counter})
        and follows(loop, load, length)
    ]


def _place(load: LoadOp) -> AffineExpr:
    """Which element is loaded, counted from the first."""
    assert isinstance(load.memref.type, MemRefType)
    return linearize(load.map.data.results, shape_of(load.memref.type))


def _has_sizes(expr: AffineExpr, operands: Sequence[SSAValue]) -> bool:
    """Whether a place depends on the size of something: of such places the distances are not known."""
    indices = [v.owner for v in operands if isinstance(v.owner, IndexOp)]
    return count_symbols([expr]) > 0 or any(
        _has_sizes(index.map.data.results[0], index.operands_) for index in indices
    )


def _name(load: LoadOp, counter: SSAValue) -> Hashable:
    """Equal for loads of the same elements, each by its loop's counter."""
    return load.memref, load.map, tuple(None if v is counter else v for v in load.indices)


def _offset(load: LoadOp, ones: Mapping[SSAValue, int]) -> int:
    """The element that is loaded, counted from the first, where counters have these values and others 0."""

    def value_of(value: SSAValue) -> int:
        if value in ones or not isinstance(value.owner, IndexOp):
            return ones.get(value, 0)
        index = value.owner
        return evaluate(index.map.data.results[0], index.operands_)

    def evaluate(expr: AffineExpr, operands: Sequence[SSAValue]) -> int:
        return expr.eval([value_of(v) for v in operands], [])

    return evaluate(_place(load), load.indices)


def follows(loop: scf.ForOp, load: LoadOp, length: int) -> bool:
    """Whether what a loop reads goes on where it ends when the loop around it is one further, as rows do."""
    outer = loop.parent_op()
    if not isinstance(outer, scf.ForOp):
        return True
    counter = outer.body.block.args[0]
    start, one, two = (_offset(load, {counter: n}) for n in range(3))
    return one - start == two - one == length


def _ask(
    builder: Builder,
    load: LoadOp,
    counter: SSAValue,
    base: SSAValue,
    strip: int,
    length: int,
    ahead: int,
) -> None:
    """Ask for each line of a strip of what a loop over `strip * base` and its neighbours loads."""
    element = storage_bytes(element_of(load.memref))
    line = LINE_BYTES // element
    operands = [base if v is counter else v for v in load.indices]
    for first in range(0, length, line):
        places = [
            AffineExpr.dimension(d) * strip + first if v is counter else AffineExpr.dimension(d)
            for d, v in enumerate(load.indices)
        ]
        exprs = [replace_dims(expr, places) for expr in load.map.data.results]
        builder.insert(PrefetchOp(load.memref, exprs, operands, ahead // element))


def _constant(builder: Builder, value: int) -> SSAValue:
    return builder.insert(arith.ConstantOp(IntegerAttr(value, IndexType()))).result


def _copy(
    builder: Builder,
    loop: scf.ForOp,
    end: SSAValue,
    strip: int,
    base: SSAValue,
    values: Sequence[SSAValue],
) -> scf.ForOp:
    """A loop over the iterations from `strip * base` on, up to `end` of them."""
    zero = loop.lb
    body = Block(arg_types=[IndexType(), *(v.type for v in values)])
    for new, old in zip(body.args, loop.body.block.args, strict=True):
        new.name_hint = old.name_hint
    piece = scf.ForOp(zero, end, loop.step, list(values), body)
    piece.location = loop.location
    builder.insert(piece)
    inner = Builder(InsertPoint.at_end(body))
    at = inner.insert(IndexOp(DIMENSION * strip + AffineExpr.dimension(1), [base, body.args[0]]))
    mapped: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: at.result}
    mapped |= dict(zip(loop.body.block.args[1:], body.args[1:], strict=True))
    for op in loop.body.block.ops:
        inner.insert(op.clone(value_mapper=mapped))
    return piece


Fold = arith.FloatingPointLikeBinaryOperation

_NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -inf,
    arith.MinimumfOp: inf,
}


def _free_folds(loop: scf.ForOp) -> list[Fold | None]:
    """For each value that a loop carries, what folds it, if in any order and from what changes nothing."""
    found: list[Fold | None] = []
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    carried = loop.body.block.args[1:]
    for start, so_far, value in zip(loop.iter_args, carried, end.operands, strict=True):
        fold, first = value.owner, start.owner
        is_free = (
            isinstance(fold, Fold)
            and FastMathFlag.REASSOC in fold.fastmath.data
            and so_far in fold.operands
            and so_far.has_one_use()
            and isinstance(first, arith.ConstantOp)
            and isinstance(first.value, FloatAttr)
            and first.value.value.data == _NEUTRAL.get(type(fold))
        )
        found.append(fold if is_free else None)  # pyright: ignore[reportArgumentType]
    return found


def prefetch(loop: scf.ForOp, loads: Sequence[LoadOp], length: int, ahead: int) -> None:
    """Make strips of a loop, if it is long, and ask for each strip of what some loads of it will read."""
    counter, strip = loop.body.block.args[0], strip_of(length)
    before = Builder(InsertPoint.before(loop))
    if strip == length:
        for load in loads:
            _ask(before, load, counter, loop.lb, 1, length, ahead)
        return
    body = Block(arg_types=[IndexType(), *(v.type for v in loop.iter_args)])
    body.args[0].name_hint = "strip"
    strips = _constant(before, length // strip)
    outer = scf.ForOp(loop.lb, strips, loop.step, list(loop.iter_args), body)
    before.insert(outer)
    inner = Builder(InsertPoint.at_end(body))
    for load in loads:
        _ask(inner, load, counter, body.args[0], strip, strip, ahead)
    folds, so_far = _free_folds(loop), body.args[1:]
    starts = [
        anew if fold else value
        for fold, anew, value in zip(folds, loop.iter_args, so_far, strict=True)
    ]
    piece = _copy(inner, loop, _constant(inner, strip), strip, body.args[0], starts)
    folded = [
        inner.insert(type(fold)(value, part, fold.fastmath)).result if fold else part
        for fold, value, part in zip(folds, so_far, piece.res, strict=True)
    ]
    inner.insert(scf.YieldOp(*folded))
    if length % strip:
        rest = _constant(before, length % strip)
        outer = _copy(before, loop, rest, strip, strips, outer.res)
    for old, new in zip(loop.res, outer.res, strict=True):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    loop.detach()
    loop.erase()


def _length(loop: scf.ForOp) -> int | str:
    """The length of an innermost loop, or why it is not prefetched for."""
    length = constant_of(loop.ub)
    if length is None or (constant_of(loop.lb), constant_of(loop.step)) != (0, 1):
        return "a loop does not run from 0 to a constant"
    return length if length >= LEAST else f"a loop has {length} iterations"


@dataclass(frozen=True)
class PrefetchSweepsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops along memory in strips that ask for later ones."""

    name = "prefetch-sweeps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Prefetch in every kernel whose schedule says how far ahead."""
        for function in kernels_of(op):
            ahead = schedule_of(function).get("prefetch")
            found = self._apply(function, ahead) if ahead else "its schedule asks for no prefetching"
            said = counted(found, "loop") if isinstance(found, int) else found
            record(self.name, function.sym_name.data, isinstance(found, int), said, function)

    def _apply(self, function: func.FuncOp, ahead: int) -> int | str:
        """The loops that were changed, or why none was."""
        written = {op.memref for op in ops_in(function) if isinstance(op, StoreOp)}
        seen: set[Hashable] = set()
        count, reasons = 0, dict[str, None]()
        for loop in ops_of(function, scf.ForOp):
            if any(isinstance(inner, scf.ForOp) for inner in ops_in(loop.body)):
                continue
            length = _length(loop)
            if isinstance(length, str):
                reasons[length] = None
                continue
            asked: dict[Hashable, LoadOp] = {}
            for load in walking_loads(loop, length):
                name = _name(load, loop.body.block.args[0])
                if load.memref not in written and name not in seen:
                    asked[name] = load
            seen |= asked.keys()
            if asked:
                prefetch(loop, list(asked.values()), length, ahead)
                count += 1
            else:
                reasons["a loop walks along nothing that is read for the first time"] = None
        return count or "; ".join(reasons) or "there is no loop"
