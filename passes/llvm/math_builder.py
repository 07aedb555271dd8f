"""A short notation for arithmetic on f32: what `expand-math` writes its polynomials in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint


class MathBuilder:
    """Inserts f32 and i32 arithmetic in front of an operation, at that operation's location."""

    def __init__(self, op: Operation):
        self.builder = Builder(
            InsertPoint.before(op),
            operation_insertion_handler=[lambda made: setattr(made, "location", op.location)],
        )

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op`; its only result."""
        return self.builder.insert(op).results[0]

    def float(self, value: float) -> SSAValue:
        """An f32 constant, `value` rounded to nearest."""
        return self.insert(arith.ConstantOp(FloatAttr(value, f32)))

    def int(self, value: int, type: IntegerType = i32) -> SSAValue:
        """An integer constant; `value` may be written as an unsigned number."""
        return self.insert(arith.ConstantOp(IntegerAttr(value, type, truncate_bits=True)))

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b"""
        return self.insert(arith.AddfOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b"""
        return self.insert(arith.SubfOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b"""
        return self.insert(arith.MulfOp(a, b))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b"""
        return self.insert(arith.DivfOp(a, b))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c, rounded once"""
        return self.insert(math.FmaOp(a, b, c))

    def negative(self, a: SSAValue) -> SSAValue:
        """-a"""
        return self.insert(arith.NegfOp(a))

    def abs(self, a: SSAValue) -> SSAValue:
        """|a|"""
        return self.insert(math.AbsFOp(a))

    def copysign(self, magnitude: SSAValue, sign: SSAValue) -> SSAValue:
        """`magnitude` with the sign of `sign`"""
        return self.insert(math.CopySignOp(magnitude, sign))

    def horner(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """The polynomial of `x` with `coefficients` from the highest power down."""
        total = self.float(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.fma(total, x, self.float(coefficient))
        return total

    def test(self, a: SSAValue, predicate: str, b: SSAValue | float) -> SSAValue:
        """A float comparison such as `olt`; ordered ones are false for NaN."""
        right = b if isinstance(b, SSAValue) else self.float(b)
        return self.insert(arith.CmpfOp(a, right, predicate))

    def test_int(self, a: SSAValue, predicate: str, b: SSAValue) -> SSAValue:
        """An integer comparison such as `slt`."""
        return self.insert(arith.CmpiOp(a, b, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` where `condition` holds, else `no`"""
        return self.insert(arith.SelectOp(condition, yes, no))

    def bits(self, a: SSAValue) -> SSAValue:
        """The bits of an f32 as an i32."""
        return self.insert(arith.BitcastOp(a, i32))

    def from_bits(self, a: SSAValue) -> SSAValue:
        """The f32 whose bits an i32 holds."""
        return self.insert(arith.BitcastOp(a, f32))
