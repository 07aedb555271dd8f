"""Rows of a pack that are two axes in one: quotients and remainders without a division.

    loop.load %x[%p floordiv 56 + %r, %p mod 56 + %s]        // %p = %block * 320 + %row

Divisions would keep LLVM from making vectors of neighbouring rows. But of a few rows all are in the line of
the first one, or in the next lines: where %y = %first floordiv 56 is the line of the first,

    %line = %y + (%p >= %y * 56 + 56 ? 1 : 0)
    loop.load %x[%line + %r, %p - %line * 56 + %s]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
)

from ...analysis.conditions import linear
from ...dialects.index import dims_in_order
from ...index.affine import binary, divisions, replace_dims
from ..tile.rewrite_indices import Index, index_of, set_index
from .loop_code import LoopCode

D0 = AffineExpr.dimension(0)

Terms = dict[SSAValue | None, int]
"""A sum of multiples of values; the constant is that of None."""


@dataclass(frozen=True)
class JoinedRows:
    """What is divided: `place` of `operands`, a sum that has the row in it once, by `length`."""

    place: AffineExpr
    operands: tuple[SSAValue, ...]
    length: int

    @staticmethod
    def of(ops: Sequence[Operation], row: SSAValue) -> JoinedRows | None:
        """The division of a row in the indices of operations, if there is one, and no other."""
        found: dict[object, JoinedRows] = {}
        for op in ops:
            exprs, operands = index_of(op) or ((), [])
            for node in (node for expr in exprs for node in divisions(expr)):
                terms = _terms(node.lhs, operands)
                if terms.get(row, 0) == 1 and isinstance(node.rhs, AffineConstantExpr):
                    made = JoinedRows(node.lhs, tuple(operands), node.rhs.value)
                    found[frozenset(terms.items()), made.length] = made
                elif row in (operands[d] for d in dims_in_order([node])):
                    return None
        return next(iter(found.values())) if len(found) == 1 else None

    def at(
        self, known: Mapping[SSAValue, AffineExpr], counters: Sequence[SSAValue]
    ) -> tuple[AffineExpr, list[SSAValue]]:
        """What is divided where the row and the position are `known` over counters."""
        dims = [AffineExpr.dimension(len(counters) + i) for i in range(len(self.operands))]
        dims = [known.get(v, d) for v, d in zip(self.operands, dims, strict=True)]
        return replace_dims(self.place, dims), [*counters, *self.operands]

    def lines(self, behind: int) -> int:
        """Lines that a place and the `behind` places after it are in, at most."""
        return 1 - (-behind // self.length)

    def line(self, code: LoopCode, first: SSAValue, here: SSAValue, behind: int) -> SSAValue:
        """The quotient of `here`, which is at most `behind` places behind `first`."""
        line = code.index(D0 // self.length, [first])
        one, none = code.constants.get(1), code.constants.get(0)
        steps: list[SSAValue] = []
        for following in range(1, self.lines(behind)):
            end = code.index((D0 + following) * self.length, [line])
            past = code.insert(arith.CmpiOp(here, end, "sge"))
            steps.append(code.insert(arith.SelectOp(past, one, none)))
        total = sum((AffineExpr.dimension(i + 1) for i in range(len(steps))), D0)
        return code.index(total, [line, *steps])

    def replace(self, op: Operation, line: SSAValue) -> None:
        """Put the quotient, which is `line`, into the indices of an operation."""
        if (index := index_of(op)) is not None:
            set_index(op, *self.replaced(*index, line))

    def replaced(
        self, exprs: Sequence[AffineExpr], operands: list[SSAValue], line: SSAValue
    ) -> Index:
        """Expressions in which the quotient is `line`."""
        sought = _terms(self.place, self.operands)
        new = AffineExpr.dimension(len(operands))

        def replaced(expr: AffineExpr) -> AffineExpr:
            if not isinstance(expr, AffineBinaryOpExpr):
                return expr
            if expr in divisions(expr) and _terms(expr.lhs, operands) == sought:
                whole = expr.kind is AffineBinaryOpKind.FloorDiv
                return new if whole else expr.lhs - new * self.length
            return binary(expr.kind, replaced(expr.lhs), replaced(expr.rhs))

        return [replaced(expr) for expr in exprs], [*operands, line]


def _terms(expr: AffineExpr, operands: Sequence[SSAValue]) -> Terms:
    """A sum of multiples of values; nothing if it is none."""
    if (parts := linear(expr)) is None:
        return {}
    made: Terms = {None: parts.constant}
    for dim, coefficient in parts.coefficients.items():
        made[operands[dim]] = made.get(operands[dim], 0) + coefficient
    return made
