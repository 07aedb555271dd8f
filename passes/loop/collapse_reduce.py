"""`collapse-reduce`: a reduction of which one iteration tells the result becomes that iteration.

Where the contributions are equal, by the counter not being read, they are counted:

    %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
      loop.yield %x : f32
    }
becomes
    %n = arith.constant 64.0 : f32
    %p = arith.mulf %x, %n : f32
    %zero = arith.constant 0.0 : f32
    %s = arith.addf %p, %zero : f32            // a sum of -0.0 is 0.0

Where all but one are neutral, by an equality that one value of the counter solves, that value is computed:

    %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %y : i64
      %v = loop.load %x[%k] : memref<64xf32>
      %w = arith.select %hit, %v, %zero : f32
      loop.yield %w : f32
    }
becomes the body with `%y` for the counter, or with 0 if `%y` is not from 0 to 63: no iteration hits then, so
that of 0 is neutral, too. Nothing is read but what that iteration read.

A term `0 * x` is not neutral, since x may be infinite: only what is selected, or counted, is known to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import operand_ranges, simplify
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, IndexOp, KernelOp, YieldOp
from ...dialects.scalars import Combiner, identity, is_bool, is_weighted
from ...dialects.sizes import Extent, extent_expr
from ...errors import counted
from ...index.affine import ZERO, product, replace_dims
from ..decisions import record
from .dedup_loads import is_reusable
from .scalar_code import emit_constant

PASS = "collapse-reduce"
EQ, NE, ULT = 0, 1, 6
"""The numbers of predicates of `arith.cmpi`."""

_CASTS = (
    *(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp),
    *(arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.UIToFPOp),
)
"""What makes zero of zero."""


# --------------------------------------------------------------------------- equal contributions


def repeated(combiner: Combiner, extent: Extent, type: Attribute) -> str | None:
    """Why a fold of equal values of a type is not known by one of them; None if it is."""
    match combiner:
        case Combiner.MUL:
            return "a product of equal factors is a power"
        case Combiner.ADD if not isinstance(extent, int):
            return "equal terms are counted by a dynamic extent"
        case Combiner.ADD if isinstance(type, AnyFloat) and not _is_exact(extent, type):
            return f"equal terms are counted by {extent}, which is no {type}"
        case _:
            return None


def _is_exact(extent: Extent, type: AnyFloat) -> bool:
    assert isinstance(extent, int)
    return int({32: np.float32, 64: np.float64}[type.bitwidth](extent)) == extent


def emit_repeated(b: Builder, loop: ForOp, combiner: Combiner, value: SSAValue) -> SSAValue:
    """The fold of the iterations of a loop if each contributes `value`."""
    if combiner is not Combiner.ADD:
        return value
    count = loop.extent.data
    assert isinstance(count, int)
    if isinstance(value.type, IntegerType):
        modulus = 1 << value.type.width.data
        count = (count + modulus // 2) % modulus - modulus // 2  # sums of integers wrap
        return b.insert(arith.MuliOp(value, emit_constant(b, count, value.type))).result
    many = b.insert(arith.MulfOp(value, emit_constant(b, count, value.type))).result
    return _without_negative_zero(b, many)


def _without_negative_zero(b: Builder, value: SSAValue) -> SSAValue:
    """A sum of one term: sums begin with 0.0, and so does that of -0.0."""
    return b.insert(arith.AddfOp(value, emit_constant(b, 0.0, value.type))).result


# --------------------------------------------------------------------------- one contribution that counts


@dataclass(frozen=True)
class Place:
    """An index expression that is not in the program yet."""

    expr: AffineExpr
    operands: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Linear:
    """`slope` times the counter, plus terms, each with its sign."""

    slope: int
    terms: tuple[tuple[int, SSAValue | Place], ...]

    def __sub__(self, other: Linear) -> Linear:
        negated = tuple((-sign, term) for sign, term in other.terms)
        return Linear(self.slope - other.slope, self.terms + negated)

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.slope + other.slope, self.terms + other.terms)


class Body:
    """The iteration of a reduction, and which of its values depend on the counter."""

    def __init__(self, loop: ForOp):
        self.loop = loop
        self.varying: set[SSAValue] = {loop.induction_var}
        self.late: list[Operation] = []
        """The operations that depend on the counter, in order."""
        for op in loop.body.block.ops:
            if any(operand in self.varying for inner in ops_in(op) for operand in inner.operands):
                self.varying.update(op.results)
                self.late.append(op)

    def linear(self, value: SSAValue) -> Linear | None:
        """An integer as a linear function of the counter modulo its width."""
        if value not in self.varying:
            return Linear(0, ((1, value),))
        match value.owner:
            case arith.AddiOp() | arith.SubiOp() as op:
                left, right = self.linear(op.lhs), self.linear(op.rhs)
                if left is None or right is None:
                    return None
                return left + right if isinstance(op, arith.AddiOp) else left - right
            case arith.IndexCastOp(input=index) if isinstance(index.owner, IndexOp):
                return self._linear_index(index.owner)
            case _:
                return None

    def _linear_index(self, op: IndexOp) -> Linear | None:
        """An index expression as a linear function, if the counter adds the same each time."""
        own = [int(value is self.loop.induction_var) for value in op.operands_]
        if any(v in self.varying and not mine for v, mine in zip(op.operands_, own, strict=True)):
            return None
        expr, ranges = op.map.data.results[0], operand_ranges(op.operands_)
        dims = [AffineExpr.dimension(i) for i in range(len(ranges))]
        ahead = replace_dims(expr, [d + mine for d, mine in zip(dims, own, strict=True)])
        step = simplify(ahead + product(expr, -1), ranges)
        if not isinstance(step, AffineConstantExpr):
            return None
        start = replace_dims(expr, [ZERO if mine else d for d, mine in zip(dims, own, strict=True)])
        rest = Place(simplify(start, ranges), tuple(op.operands_))
        return Linear(step.value, () if rest.expr == ZERO else ((1, rest),))

    def solved(self, compare: arith.CmpiOp) -> Linear | str:
        """The counter for which an equality holds, or why that is not known: `slope` is 1 or -1."""
        type = compare.lhs.type
        left, right = self.linear(compare.lhs), self.linear(compare.rhs)
        if left is None or right is None or not isinstance(type, IntegerType):
            return "what selects is no equality of the counter plus what is known before"
        found, extent = left - right, self.loop.extent.data
        if found.slope not in (1, -1):
            return "what selects is no equality of the counter plus what is known before"
        width = type.width.data
        if width < 64 and not (isinstance(extent, int) and extent < 1 << width - 1):
            return f"the counter may wrap as {type}"
        return found

    def equalities(self, value: SSAValue) -> Iterator[arith.CmpiOp]:
        """The equalities without all of which a condition is false."""
        match value.owner:
            case arith.CmpiOp(predicate=IntegerAttr(value=number)) as op if number.data == EQ:
                yield op
            case arith.AndIOp(lhs=lhs, rhs=rhs) if is_bool(value.type):
                yield from self.equalities(lhs)
                yield from self.equalities(rhs)
            case _:
                pass

    def selecting(self, value: SSAValue, combiner: Combiner) -> Iterator[arith.CmpiOp]:
        """The equalities without which a contribution is the combiner's identity."""
        match value.owner:
            case arith.SelectOp(cond=condition, lhs=then, rhs=otherwise):
                if _is_neutral(otherwise, combiner):
                    yield from self.equalities(condition)
                    yield from self.selecting(then, combiner)
                elif _is_neutral(then, combiner):
                    compare = condition.owner
                    if isinstance(compare, arith.CmpiOp) and compare.predicate.value.data == NE:
                        yield compare
                    yield from self.selecting(otherwise, combiner)
            case arith.MuliOp(lhs=lhs, rhs=rhs) if combiner is Combiner.ADD:
                yield from self.selecting(lhs, combiner)
                yield from self.selecting(rhs, combiner)
            case cast if isinstance(cast, _CASTS) and combiner is Combiner.ADD:
                yield from self.selecting(cast.operands[0], combiner)
            case _ if is_bool(value.type) and combiner in (Combiner.ADD, Combiner.ANY):
                yield from self.equalities(value)
            case _:
                pass


def _is_neutral(value: SSAValue, combiner: Combiner) -> bool:
    """Whether a value is the identity of a combiner; for sums, that is 0.0 of either sign."""
    if not isinstance(value.owner, arith.ConstantOp):
        return False
    match value.owner.value:
        case IntegerAttr(value=number):
            return number.data == identity(combiner, value.type)
        case FloatAttr(value=number):
            return number.data == identity(combiner, value.type)
        case _:
            return False


def emit_position(b: Builder, found: Linear, extent: Extent, type: Attribute) -> SSAValue:
    """The counter that solves `found` = 0, or 0 if that is none of the loop's."""
    position: SSAValue | None = None
    # slope * k + rest = 0: what is added comes first, so that there seldom is a 0 to subtract from
    for sign, term in sorted(
        ((-sign * found.slope, term) for sign, term in found.terms), key=lambda each: -each[0]
    ):
        value = _emit_place(b, term, type) if isinstance(term, Place) else term
        if position is None and sign > 0:
            position = value
            continue
        position = emit_constant(b, 0, type) if position is None else position
        op = arith.AddiOp if sign > 0 else arith.SubiOp
        position = b.insert(op(position, value)).result
    zero = emit_constant(b, 0, type)
    if position is None:
        position = zero
    if isinstance(extent, int):
        limit = emit_constant(b, extent, type)
    else:
        limit = _emit_place(b, Place(extent_expr(extent), ()), type)
    inside = b.insert(arith.CmpiOp(position, limit, "ult")).result
    chosen = b.insert(arith.SelectOp(inside, position, zero)).result
    return b.insert(arith.IndexCastOp(chosen, IndexType())).result


def _emit_place(b: Builder, place: Place, type: Attribute) -> SSAValue:
    index = b.insert(IndexOp(place.expr, place.operands)).result
    return b.insert(arith.IndexCastOp(index, type)).result


# --------------------------------------------------------------------------- the pass


def collapse(loop: ForOp) -> str | None:
    """Put one iteration in the place of a reduction, or say why not."""
    inside = [op for op in loop.body.block.ops if not isinstance(op, YieldOp)]
    if not all(is_reusable(op) for op in inside):
        return "an iteration may do more than contribute"
    body, combiners = Body(loop), [c.data for c in loop.combiners]
    if is_weighted(combiners):
        return "what is weighted is folded together"
    b = Builder(InsertPoint.before(loop))
    if not loop.induction_var.uses:
        for combiner, value in zip(combiners, loop.yielded, strict=True):
            if reason := repeated(combiner, loop.extent.data, value.type):
                return reason
        _move(inside, loop)
        folds = [
            emit_repeated(b, loop, combiner, value)
            for combiner, value in zip(combiners, loop.yielded, strict=True)
        ]
    else:
        found = _one_that_counts(body, combiners)
        if isinstance(found, str):
            return found
        solution, type = found
        _move([op for op in inside if op not in body.late], loop)
        position = emit_position(b, solution, loop.extent.data, type)
        position.name_hint = loop.induction_var.name_hint
        loop.induction_var.replace_all_uses_with(position)
        _move([op for op in inside if op in body.late], loop)
        (value,) = loop.yielded
        is_sum = combiners[0] is Combiner.ADD and isinstance(value.type, AnyFloat)
        folds = [_without_negative_zero(b, value) if is_sum else value]
    for old, new in zip(loop.res, folds, strict=True):
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()
    return None


def _one_that_counts(body: Body, combiners: list[Combiner]) -> tuple[Linear, Attribute] | str:
    """The solution for the counter of the only iteration that counts, and its type; or why there is none."""
    if len(combiners) > 1:
        return "several reductions share the loop"
    (value,), (combiner,) = body.loop.yielded, combiners
    reason = "more than one iteration may count"
    for compare in body.selecting(value, combiner):
        solution = body.solved(compare)
        if isinstance(solution, Linear):
            return solution, compare.lhs.type
        reason = solution
    return reason


def _move(ops: list[Operation], loop: ForOp) -> None:
    """Move operations of a loop's body in front of the loop."""
    assert loop.parent is not None
    for op in ops:
        op.detach()
        loop.parent.insert_op_before(op, loop)


@dataclass(frozen=True)
class CollapseReducePass(ModulePass):
    """Put one iteration in the place of reductions of which it tells the result."""

    name = PASS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            count, reason = 0, "there is no reduction"
            inner_first = reversed([o for o in ops_in(kernel) if isinstance(o, ForOp) and o.res])
            for loop in inner_first:
                declined = "it has no iterations" if loop.never_runs else collapse(loop)
                count += declined is None
                reason = declined or reason
            if count:
                reason = f"{counted(count, 'reduction')} became one iteration"
            record(PASS, kernel.sym_name.data, count > 0, reason, kernel)
