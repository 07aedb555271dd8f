"""A short notation for scalar arithmetic, with which passes write longer expressions."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Operation, SSAValue

from ..replacing import builder_at


class MathBuilder:
    """Inserts arithmetic in front of an operation, at its location."""

    def __init__(self, op: Operation):
        self.builder = builder_at(op)

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op`; its only result."""
        return self.builder.insert(op).results[0]

    def float(self, value: float, type: Float32Type | Float64Type = f32) -> SSAValue:
        """A float constant, `value` rounded to nearest."""
        return self.insert(arith.ConstantOp(FloatAttr(value, type)))

    def float_like(self, value: float, other: SSAValue) -> SSAValue:
        """A float constant of the type of `other`, which is f32 or f64."""
        assert isinstance(other.type, Float32Type | Float64Type)
        return self.float(value, other.type)

    def int(self, value: int, type: IntegerType = i32) -> SSAValue:
        """An integer constant; `value` may be written as an unsigned number."""
        return self.insert(arith.ConstantOp(IntegerAttr(value, type, truncate_bits=True)))

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

    def test(self, a: SSAValue, predicate: str, b: SSAValue | float) -> SSAValue:
        """A float comparison such as `olt`; ordered ones are false for NaN."""
        right = b if isinstance(b, SSAValue) else self.float_like(b, a)
        return self.insert(arith.CmpfOp(a, right, predicate))

    def test_int(self, a: SSAValue, predicate: str, b: SSAValue) -> SSAValue:
        """An integer comparison such as `slt`."""
        return self.insert(arith.CmpiOp(a, b, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` where `condition` holds, else `no`"""
        return self.insert(arith.SelectOp(condition, yes, no))

    def bits(self, a: SSAValue) -> SSAValue:
        """The bits of an f32 or f64 as an integer as wide."""
        return self.insert(arith.BitcastOp(a, i64 if isinstance(a.type, Float64Type) else i32))

    def from_bits(self, a: SSAValue) -> SSAValue:
        """The f32 or f64 whose bits an integer holds."""
        return self.insert(arith.BitcastOp(a, f64 if a.type == i64 else f32))
