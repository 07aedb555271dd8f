"""Where the rows of a softmax begin and end: a condition on counters masks all columns before or behind.

    %0 = loop.test[%i - %j >= 0]
    %x = scf.if %0 -> (f32) { ... } else { minus infinity }

leaves %i + 1 columns %j of the row %i, as a causal mask does. With `%j - %i + 63 >= 0` the row begins at
%i - 63, as in a sliding window. An end is an expression over values, linear in the row, so that of a register
tile's rows the first or the last one has the most columns. Whole parts in front of where rows begin are left
out.
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
from ...index.affine import ZERO, product, replace_dims
from .loop_code import LoopCode

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


Index = tuple[AffineExpr, Sequence[SSAValue]]
"""An expression, and the values that it is over."""


@dataclass(frozen=True)
class Counters:
    """Of a row of scores, a column of the result, a column of scores in its part, and the part."""

    row: SSAValue
    width: SSAValue
    column: SSAValue
    part: SSAValue


@dataclass(frozen=True)
class Limit:
    """The column at which a condition begins a row, or ends it: an expression over values."""

    expr: AffineExpr
    operands: tuple[SSAValue, ...]
    slope: int
    """How much later it is from one row to the next."""

    @staticmethod
    def of(
        test: Index, counters: Counters, part: int, parts: Extent, *, begins: bool = False
    ) -> Limit | None:
        """Where `expr >= 0` ends rows, or begins them, if it leaves all columns on one side of some one."""
        expr, operands = test
        sign = 1 if begins else -1
        terms = linear(expr)
        if terms is None or counters.column not in operands or counters.width in operands:
            return None
        slopes = {v: terms.coefficients.get(i, 0) for i, v in enumerate(operands)}
        apart = slopes.get(counters.part, 0) == sign * part or parts == 1
        if slopes[counters.column] != sign or not apart:
            return None
        gone = (counters.column, counters.part)
        dims = [ZERO if v in gone else AffineExpr.dimension(i) for i, v in enumerate(operands)]
        rest = replace_dims(expr, dims)
        column = product(rest, -1) if begins else rest + 1
        return Limit(column, tuple(operands), -sign * slopes.get(counters.row, 0))


@dataclass(frozen=True)
class Limits:
    """Emits where rows end: at the `whole` number of columns, or at what conditions leave of them."""

    code: LoopCode
    counters: Counters
    part: int
    """Columns of a part."""
    whole: SSAValue
    found: tuple[Limit, ...]
    """Where rows end."""
    begins: tuple[Limit, ...] = ()

    def end(self, first: SSAValue, behind: SSAValue) -> SSAValue:
        """The column from which on all are masked in the rows from `first` to `behind`."""
        end = self.whole
        for limit in self.found:
            row = self.code.index(D0 - 1, [behind]) if limit.slope > 0 else first
            end = self.code.smaller(end, self._column(limit, row))
        return self._not_negative(end)

    def begin(self, first: SSAValue, behind: SSAValue, *, latest: bool = False) -> SSAValue:
        """The column in front of which all are masked in the rows from `first` to `behind`.

        The `latest` is that in front of which all are masked in some row.
        """
        begin = self.code.constants.get(0)
        for limit in self.begins:
            row = first if (limit.slope > 0) != latest else self.code.index(D0 - 1, [behind])
            begin = self.code.larger(begin, self._column(limit, row))
        return self.code.smaller(begin, self.whole)

    def first_part(self, first: SSAValue, behind: SSAValue) -> SSAValue | None:
        """The first part of which not all is masked in the rows from `first` to `behind`, if it is not 0."""
        if not self.begins:
            return None
        return self.code.index(D0 // self.part, [self.begin(first, behind)])

    def has_columns(self, length: SSAValue, part: SSAValue, first: SSAValue | None) -> SSAValue:
        """Whether rows have any of `length` columns of a part, where they have none before part `first`."""
        ends = self.code.insert(arith.CmpiOp(length, self.code.constants.get(0), "sgt"))
        if first is None:
            return ends
        begun = self.code.insert(arith.CmpiOp(part, first, "sge"))
        return self.code.insert(arith.AndIOp(ends, begun))

    def _column(self, limit: Limit, row: SSAValue) -> SSAValue:
        values = [row if v is self.counters.row else v for v in limit.operands]
        return self.code.index(limit.expr, values)

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
