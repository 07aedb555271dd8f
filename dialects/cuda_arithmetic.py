"""Values of the `cuda` dialect that are computed from others: operators, calls, PTX instructions, casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, bf16, f16, f32, f64, i1, tf32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

BINARY_OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

UNARY_OPERATORS = ("-", "~", "!")

CALLS: dict[str, int] = {
    name + suffix: arity
    for arity, names in (
        (1, "exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan tanh erf floor ceil rint trunc"),
        (1, "fabs"),
        (2, "pow atan2 fmod copysign"),
        (3, "fma"),
    )
    for name in names.split()
    for suffix in ("f", "")
} | {"__fsub_rn": 2, "__dsub_rn": 2}
"""C++ math functions that may be called, with the number of arguments; an `f` suffix is float's.

`__fsub_rn(a, b)` is `a - b` of floats, `__dsub_rn` of doubles, that no compiler fuses with a product.
"""


def is_float_call(callee: str) -> bool:
    """Whether a function of `CALLS` takes and gives float, not double."""
    return callee == "__fsub_rn" or (callee.endswith("f") and callee != "erf")


PTX: dict[str, tuple[tuple[Attribute, ...], Attribute]] = {
    "max.NaN.f32": ((f32, f32), f32),
    "ex2.approx.ftz.f32": ((f32,), f32),
    "min.NaN.f32": ((f32, f32), f32),
    "cvt.f32.f16": ((f16,), f32),
    "cvt.rn.f16.f32": ((f32,), f16),
    "cvt.rn.f16.f64": ((f64,), f16),
    "cvt.f64.f16": ((f16,), f64),
    "cvt.rn.bf16.f32": ((f32,), bf16),
    "cvt.f32.bf16": ((bf16,), f32),
    "cvt.rna.tf32.f32": ((f32,), tf32),
    "mov.b32": ((tf32,), f32),
}
"""PTX instructions that C++ has no header-free form for: operand types and result type."""


@irdl_op_definition
class UnaryOp(IRDLOperation):
    """A prefix operator: `%n = cuda.unary "-" %a : f32`."""

    name = "cuda.unary"

    T: ClassVar = VarConstraint("T", AnyAttr())

    operator = prop_def(StringAttr)
    operand = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$operator $operand attr-dict `:` type($operand)"

    def __init__(self, operator: str, operand: SSAValue):
        super().__init__(
            operands=[operand],
            properties={"operator": StringAttr(operator)},
            result_types=[operand.type],
        )

    def verify_(self) -> None:
        if self.operator.data not in UNARY_OPERATORS:
            raise VerifyException(f"{self.operator.data!r} is not a prefix operator of C++")


@irdl_op_definition
class BinaryOp(IRDLOperation):
    """An infix operator: `%s = cuda.binary "+" %a, %b : (f32, f32) -> f32`."""

    name = "cuda.binary"

    T: ClassVar = VarConstraint("T", AnyAttr())

    operator = prop_def(StringAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$operator $lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"
    )

    def __init__(self, operator: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(
            operands=[lhs, rhs],
            properties={"operator": StringAttr(operator)},
            result_types=[i1 if operator in COMPARISONS else lhs.type],
        )

    def verify_(self) -> None:
        operator = self.operator.data
        if operator not in (*BINARY_OPERATORS, *COMPARISONS):
            raise VerifyException(f"{operator!r} is not an infix operator of C++")
        expected = i1 if operator in COMPARISONS else self.lhs.type
        if self.result.type != expected:
            raise VerifyException(f"{operator!r} gives {expected}, not {self.result.type}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """The conditional operator `c ? a : b`: `%s = cuda.select %c, %a, %b : f32`."""

    name = "cuda.select"

    T: ClassVar = VarConstraint("T", AnyAttr())

    condition = operand_def(i1)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$condition `,` $lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[condition, lhs, rhs], result_types=[lhs.type])


@irdl_op_definition
class CallOp(IRDLOperation):
    """A C++ math function: `%e = cuda.call "expf"(%x) : (f32) -> f32`."""

    name = "cuda.call"

    callee = prop_def(StringAttr)
    arguments = var_operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    )

    def __init__(self, callee: str, arguments: Sequence[SSAValue]):
        super().__init__(
            operands=[arguments],
            properties={"callee": StringAttr(callee)},
            result_types=[arguments[0].type],
        )

    def verify_(self) -> None:
        callee = self.callee.data
        if callee not in CALLS:
            raise VerifyException(f"{callee!r} is not a C++ math function deplo calls")
        if len(self.arguments) != CALLS[callee]:
            raise VerifyException(f"{callee} takes {CALLS[callee]} arguments")
        expected = f32 if is_float_call(callee) else f64
        if any(t != expected for t in (*self.arguments.types, self.result.type)):
            raise VerifyException(f"{callee} takes and gives {expected}")


@irdl_op_definition
class PtxOp(IRDLOperation):
    """One inline PTX instruction: `%h = cuda.ptx "cvt.rn.f16.f32" %x : (f32) -> f16`."""

    name = "cuda.ptx"

    instruction = prop_def(StringAttr)
    arguments = var_operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$instruction $arguments attr-dict `:` functional-type($arguments, $result)"

    def __init__(self, instruction: str, arguments: Sequence[SSAValue]):
        super().__init__(
            operands=[arguments],
            properties={"instruction": StringAttr(instruction)},
            result_types=[PTX[instruction][1]],
        )

    def verify_(self) -> None:
        signature = PTX.get(self.instruction.data)
        if signature is None:
            raise VerifyException(f"{self.instruction.data!r} is not a PTX instruction deplo uses")
        if (tuple(self.arguments.types), self.result.type) != signature:
            listed = ", ".join(map(str, signature[0]))
            raise VerifyException(
                f"{self.instruction.data} takes ({listed}) and gives {signature[1]}"
            )


@irdl_op_definition
class CastOp(IRDLOperation):
    """A C-style cast: `%i = cuda.cast %x : f32 to i32`; a float must fit the integer."""

    name = "cuda.cast"

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, input: SSAValue, type: Attribute):
        super().__init__(operands=[input], result_types=[type])

    def verify_(self) -> None:
        if any(t in (f16, bf16, tf32) for t in (self.input.type, self.result.type)):
            raise VerifyException("f16, bf16 and tf32 are converted by PTX instructions")
