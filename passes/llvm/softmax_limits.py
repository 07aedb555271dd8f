"""Where the rows of a softmax end: columns from which on a condition on counters masks all.

    %0 = loop.test[%i - %j >= 0]
    %x = scf.if %0 -> (f32) { ... } else { minus infinity }

leaves %i + 1 columns %j of the row %i, as a causal mask does. An end is an expression over values, linear in
the row, so that of a register tile's rows the first or the last one has the most columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.conditions import linear
from ...dialects.loop import TestOp
from ...dialects.sizes import Extent
from ...index.affine import ZERO, replace_dims
from .loop_code import LoopCode

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


@dataclass(frozen=True)
class Counters:
    """Of a row of scores, a column of the result, a column of scores in its part, and the part."""

    row: SSAValue
    width: SSAValue
    column: SSAValue
    part: SSAValue


@dataclass(frozen=True)
class Limit:
    """How many columns a condition leaves of a row: an expression over values."""

    expr: AffineExpr
    operands: tuple[SSAValue, ...]
    slope: int
    """How many more they are from one row to the next."""

    @staticmethod
    def of(
        expr: AffineExpr, operands: Sequence[SSAValue], counters: Counters, part: int, parts: Extent
    ) -> Limit | None:
        """What `expr >= 0` leaves of a row, if that is all columns below some one."""
        terms = linear(expr)
        if terms is None or counters.column not in operands or counters.width in operands:
            return None
        slopes = {v: terms.coefficients.get(i, 0) for i, v in enumerate(operands)}
        apart = slopes.get(counters.part, 0) == -part or parts == 1
        if slopes[counters.column] != -1 or not apart:
            return None
        gone = (counters.column, counters.part)
        dims = [ZERO if v in gone else AffineExpr.dimension(i) for i, v in enumerate(operands)]
        return Limit(replace_dims(expr, dims) + 1, tuple(operands), slopes.get(counters.row, 0))


@dataclass(frozen=True)
class Limits:
    """Emits where rows end: at the `whole` number of columns, or at what conditions leave of them."""

    code: LoopCode
    counters: Counters
    part: int
    """Columns of a part."""
    whole: SSAValue
    found: tuple[Limit, ...]

    def end(self, first: SSAValue, behind: SSAValue) -> SSAValue:
        """The column from which on all are masked in the rows from `first` to `behind`."""
        code, end = self.code, self.whole
        for limit in self.found:
            row = code.index(D0 - 1, [behind]) if limit.slope > 0 else first
            values = [row if v is self.counters.row else v for v in limit.operands]
            end = code.smaller(end, code.index(limit.expr, values))
        return self._not_negative(end)

    def end_of_row(self, row: SSAValue) -> SSAValue:
        """The column from which on all are masked in a row."""
        return self.end(row, self.code.index(D0 + 1, [row]))

    def inside(self, end: SSAValue, part: SSAValue) -> SSAValue:
        """How many columns of a part are in front of an end."""
        left = self.code.index(D0 - D1 * self.part, [end, part])
        return self.code.smaller(self._not_negative(left), self.code.constants.get(self.part))

    def _not_negative(self, end: SSAValue) -> SSAValue:
        if not self.found:
            return end
        return self.code.insert(arith.MaxSIOp(end, self.code.constants.get(0)))


def masks(exponent: SSAValue) -> list[tuple[scf.IfOp, TestOp]]:
    """Conditions on counters, all of which hold where an exponent is not minus infinity; from outside."""
    op = exponent.owner
    if not isinstance(op, scf.IfOp) or not isinstance(op.cond.owner, TestOp):
        return []
    yes, no = op.true_region.block.last_op, op.false_region.block.last_op
    assert yes is not None
    assert no is not None
    if len(op.output) != 1 or not is_constant(no.operands[0], -math.inf):
        return []
    return [(op, op.cond.owner), *masks(yes.operands[0])]


def is_constant(value: SSAValue, number: float) -> bool:
    """Whether a value is a float constant."""
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, FloatAttr)
        and op.value.value.data == number
    )
