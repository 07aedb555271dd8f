"""A short notation for arithmetic on floats: what `expand-math` writes its polynomials in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm, math
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
from xdsl.rewriter import InsertPoint


class MathBuilder:
    """Inserts arithmetic in front of an operation, at its location.

    It is of `type`, and of integers as wide, if no other one is said. `scales` says whether products with a
    power of two have an instruction, so that `scaled` may be used.
    """

    def __init__(
        self, op: Operation, type: Float32Type | Float64Type = f32, *, scales: bool = False
    ):
        self.type = type
        self.scales = scales
        self.builder = Builder(
            InsertPoint.before(op),
            operation_insertion_handler=[lambda made: setattr(made, "location", op.location)],
        )

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op`; its only result."""
        return self.builder.insert(op).results[0]

    def float(self, value: float, type: Float32Type | Float64Type | None = None) -> SSAValue:
        """A float constant, `value` rounded to nearest."""
        return self.insert(arith.ConstantOp(FloatAttr(value, type or self.type)))

    def float_like(self, value: float, other: SSAValue) -> SSAValue:
        """A float constant of the type of `other`, which is f32 or f64."""
        assert isinstance(other.type, Float32Type | Float64Type)
        return self.float(value, other.type)

    def int(self, value: int, type: IntegerType | None = None) -> SSAValue:
        """An integer constant; `value` may be written as an unsigned number."""
        wide = i64 if isinstance(self.type, Float64Type) else i32
        return self.insert(arith.ConstantOp(IntegerAttr(value, type or wide, truncate_bits=True)))

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

    def clamp(self, a: SSAValue, low: float, high: float) -> SSAValue:
        """`a`, or the bound that it is past; NaN stays."""
        held = self.at_least(a, low)
        return self.select(self.test(held, "ogt", high), self.float(high), held)

    def at_least(self, a: SSAValue, low: float) -> SSAValue:
        """`a`, or `low` if that is more; NaN stays."""
        return self.select(self.test(a, "olt", low), self.float(low), a)

    def scaled(self, a: SSAValue, power: SSAValue) -> SSAValue:
        """a * 2**power, rounded once, for an i32."""
        name = f"llvm.ldexp.{'f64' if isinstance(a.type, Float64Type) else 'f32'}.i32"
        return self.insert(llvm.CallIntrinsicOp(name, [a, power], [a.type]))

    def horner(self, x: SSAValue, coefficients: Sequence[SSAValue | float]) -> SSAValue:
        """The polynomial of `x` with `coefficients` from the highest power down."""
        values = (c if isinstance(c, SSAValue) else self.float_like(c, x) for c in coefficients)
        total = next(values)
        for coefficient in values:
            total = self.fma(total, x, coefficient)
        return total

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
