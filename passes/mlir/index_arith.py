"""Index expressions as arithmetic of upstream dialects, and what is known of the values in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.rewriter import InsertPoint

from ...analysis.index import UNKNOWN, bounds, constant_of, simplify, value_range
from ...dialects.loop import IndexOp
from ...errors import DeploError
from ...index.affine import ZERO, product, replace_dims, summands
from ...index.ranges import numbers
from ..lower_loops import IndexConstants

Range = tuple[int, int]
"""Smallest and largest value; shapes are constant here, so both are numbers."""


class Ranges:
    """The ranges of `index` values; `known` has those that their operations do not tell."""

    def __init__(self, known: Mapping[SSAValue, Range]):
        self._ranges = dict(known)

    def of(self, value: SSAValue) -> Range:
        """The range of a value, remembered: its operation may be rewritten later."""
        if value not in self._ranges:
            self._ranges[value] = self._find(value)
        return self._ranges[value]

    def rename(self, old: SSAValue, new: SSAValue) -> None:
        """Know of a value what was known of the one that it takes the place of."""
        self._ranges.setdefault(new, self.of(old))

    def _find(self, value: SSAValue) -> Range:
        if (constant := constant_of(value)) is not None:
            return (constant, constant)
        if isinstance(value, BlockArgument):
            return self._counter(value)
        match value.owner:
            case IndexOp() as op:
                return bounds(op.map.data.results[0], [self.of(v) for v in op.operands_])
            case arith.MinSIOp(lhs=lhs, rhs=rhs):
                (low, high), (other_low, other_high) = self.of(lhs), self.of(rhs)
                return (min(low, other_low), min(high, other_high))
            case _:
                return numbers(value_range(value))

    def _counter(self, value: BlockArgument) -> Range:
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value is not loop.body.block.args[0]:
            return UNKNOWN
        (low, _), (_, high) = self.of(loop.lb), self.of(loop.ub)
        return (low, max(high - 1, low)) if low >= 0 else UNKNOWN


class IndexArithmetic:
    """Inserts the arithmetic of index expressions in front of an operation."""

    def __init__(self, before: Operation, constants: IndexConstants, ranges: Ranges):
        self.builder = Builder(
            InsertPoint.before(before),
            operation_insertion_handler=[lambda op: setattr(op, "location", before.location)],
        )
        self.constants = constants
        self.ranges = ranges

    def index(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> SSAValue:
        """The value of an expression over values."""
        return self._emit(self._simplified(expr, operands), operands)

    def test(self, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> SSAValue:
        """Whether all of some expressions are at least zero."""
        tests = [self._at_least_zero(self._simplified(e, operands), operands) for e in exprs]
        result = tests[0]
        for each in tests[1:]:
            result = self._insert(arith.AndIOp(result, each))
        return result

    def _simplified(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> AffineExpr:
        numbers = [constant_of(value) for value in operands]
        dims = [
            AffineExpr.dimension(i) if n is None else AffineExpr.constant(n)
            for i, n in enumerate(numbers)
        ]
        return simplify(replace_dims(expr, dims), self._ranges(operands))

    def _ranges(self, operands: Sequence[SSAValue]) -> list[Range]:
        return [self.ranges.of(value) for value in operands]

    def _insert(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]

    def _emit(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> SSAValue:
        match expr:
            case AffineConstantExpr(value=value):
                return self.constants.get(value)
            case AffineDimExpr(position=position):
                return operands[position]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
                left = self._emit(lhs, operands)
                if (taken := _negated(rhs)) is not None:
                    return self._insert(arith.SubiOp(left, self._emit(taken, operands)))
                return self._insert(arith.AddiOp(left, self._emit(rhs, operands)))
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
                return self._insert(
                    arith.MuliOp(self._emit(lhs, operands), self._emit(rhs, operands))
                )
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, lhs=lhs, rhs=rhs):
                positive = self._is_positive(lhs, operands)
                divide = arith.DivSIOp if positive else arith.FloorDivSIOp
                return self._insert(divide(self._emit(lhs, operands), self._emit(rhs, operands)))
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs):
                value, by = self._emit(lhs, operands), self._emit(rhs, operands)
                if self._is_positive(lhs, operands):
                    return self._insert(arith.RemSIOp(value, by))
                whole = self._insert(arith.MuliOp(self._insert(arith.FloorDivSIOp(value, by)), by))
                return self._insert(arith.SubiOp(value, whole))
            case _:
                raise DeploError(f"index expression {expr} has no arithmetic")

    def _is_positive(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> bool:
        low, _ = bounds(expr, self._ranges(operands))
        return low >= 0

    def _at_least_zero(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> SSAValue:
        """`expr >= 0` as the comparison that a person would write: what is subtracted, on the right."""
        plus, minus, constant = ZERO, ZERO, 0
        for term in summands(expr):
            if isinstance(term, AffineConstantExpr):
                constant += term.value
            elif (taken := _negated(term)) is not None:
                minus = minus + taken
            else:
                plus = plus + term
        if plus == ZERO:
            limit = self.constants.get(constant + 1)
            return self._insert(arith.CmpiOp(self._emit(minus, operands), limit, "slt"))
        if minus == ZERO:
            limit = self.constants.get(-constant)
        elif constant:
            limit = self._emit(minus + -constant, operands)
        else:
            limit = self._emit(minus, operands)
        return self._insert(arith.CmpiOp(self._emit(plus, operands), limit, "sge"))


def _negated(expr: AffineExpr) -> AffineExpr | None:
    """`-expr` where that has no minus in front."""
    match expr:
        case AffineConstantExpr(value=value) if value < 0:
            return AffineExpr.constant(-value)
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=value)
        ) if value < 0:
            return lhs if value == -1 else product(lhs, -value)
        case _:
            return None
