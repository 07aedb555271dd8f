"""The value-producing operations of the `cuda` dialect: literals, operators, calls, PTX, casts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import (
    Attribute,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import (
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from .index import (
    AffineIndex,
    Conditions,
    affine_map,
    condition,
    normalize_operands,
    verify_operand_count,
)
from .scalars import verify_bits
from .syntax import parse_scalar, print_scalar, resolve_scalar, scalar_attr

INDEX = IndexType()
"""Index values; `int` or `long long`, as the function that they stand in says."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Symbols that may reach C++ text."""

RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
    constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    main TensorMap atomicAdd threadIdx blockIdx blockDim gridDim warpSize""".split()
)
"""Words that are not free for a name in CUDA C++."""

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
    "min.NaN.f32": ((f32, f32), f32),
    "cvt.f32.f16": ((f16,), f32),
    "cvt.rn.f16.f32": ((f32,), f16),
    "cvt.rn.f16.f64": ((f64,), f16),
    "cvt.f64.f16": ((f16,), f64),
    "cvt.rn.bf16.f32": ((f32,), bf16),
    "cvt.f32.bf16": ((bf16,), f32),
}
"""PTX instructions that C++ has no header-free form for: operand types and result type."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to global or shared memory: `!cuda.ptr<f32>`, `!cuda.ptr<f32, const>`."""

    name = "cuda.ptr"

    element: Attribute
    read_only: IntegerAttr

    def __init__(self, element: Attribute, *, read_only: bool = False):
        super().__init__(element, IntegerAttr(int(read_only), i1))

    @property
    def is_read_only(self) -> bool:
        """Whether the pointer is to const."""
        return bool(self.read_only.value.data)

    def verify(self) -> None:
        verify_bits(self.element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            if self.is_read_only:
                printer.print_string(", const")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            read_only = parser.parse_optional_punctuation(",") is not None
            if read_only:
                parser.parse_keyword("const")
        return (element, IntegerAttr(int(read_only), i1))


# --------------------------------------------------------------------------- values


@irdl_op_definition
class ThreadIdxOp(IRDLOperation):
    """`threadIdx.x`: `%t = cuda.thread_idx`."""

    name = "cuda.thread_idx"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class BlockIdxOp(IRDLOperation):
    """`blockIdx.x`: `%b = cuda.block_idx`."""

    name = "cuda.block_idx"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class LiteralOp(IRDLOperation):
    """A literal, written where it is used: `%c = cuda.literal 0.5 : f32`."""

    name = "cuda.literal"

    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, value: float | bool, type: Attribute):
        super().__init__(properties={"value": scalar_attr(value, type)}, result_types=[type])

    def verify_(self) -> None:
        verify_bits(self.result.type)
        if self.value.type != self.result.type:
            raise VerifyException(f"value is {self.value.type}, result {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_scalar(printer, self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LiteralOp:
        value, pos = parse_scalar(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(
            properties={"value": resolve_scalar(parser, value, pos, type)},
            result_types=[type],
            attributes=attributes,
        )


@irdl_op_definition
class IndexOp(IRDLOperation):
    """Index arithmetic: `%row = cuda.index [%b floordiv 74]` is `const int row = b / 74;`.

    Dividends are never negative, so C++ `/` and `%` are floor division and its remainder.
    """

    name = "cuda.index"

    operands_ = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(INDEX)

    traits = traits_def(Pure())
    custom_directives = (AffineIndex,)
    assembly_format = "custom<AffineIndex>($operands_, $map) attr-dict"

    def __init__(self, expr: AffineExpr, operands: Sequence[SSAValue]):
        exprs, operands = normalize_operands([expr], operands)
        super().__init__(
            operands=[operands],
            properties={"map": AffineMapAttr(affine_map(len(operands), exprs))},
            result_types=[INDEX],
        )

    def verify_(self) -> None:
        verify_operand_count(self.map.data, self.operands_)
        if len(self.map.data.results) != 1:
            raise VerifyException(f"expected one expression, got {len(self.map.data.results)}")


@irdl_op_definition
class TestOp(IRDLOperation):
    """Whether all conditions hold: `%in = cuda.test [%i < 4, %j >= 1]`."""

    name = "cuda.test"

    operands_ = var_operand_def(IndexType)
    set = prop_def(AffineSetAttr)
    result = result_def(i1)

    traits = traits_def(Pure())
    custom_directives = (Conditions,)
    assembly_format = "custom<Conditions>($operands_, $set) attr-dict"

    def __init__(self, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]):
        exprs, operands = normalize_operands(exprs, operands)
        super().__init__(
            operands=[operands],
            properties={"set": AffineSetAttr(condition(len(operands), exprs))},
            result_types=[i1],
        )

    def verify_(self) -> None:
        verify_operand_count(self.set.data, self.operands_)
        if not self.set.data.constraints:
            raise VerifyException("needs at least one condition")


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
        if any(t in (f16, bf16) for t in (self.input.type, self.result.type)):
            raise VerifyException("f16 and bf16 are converted by PTX instructions")
