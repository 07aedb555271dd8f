"""Operations of `arith` and `math` as expressions of C, each with how strongly it binds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.scalars import is_bool
from ..errors import DeploError
from .c_helpers import C_TYPES, UNSIGNED
from .literals import bits_literal, float_literal, integer_literal

ANY, TERNARY, OR, AND, COMPARISON, SUM, PRODUCT, UNARY, POSTFIX = range(9)
"""How strongly operators bind, from not at all. What is mixed in other ways gets parentheses."""


@dataclass(frozen=True)
class Text:
    """An expression, and how strongly its outermost operator binds."""

    code: str
    binds: int = POSTFIX

    def at(self, binds: int) -> str:
        """The expression as an operand of what binds so strongly."""
        return self.code if self.binds >= binds else f"({self.code})"


@dataclass
class Values:
    """Writes expressions; `texts` has those of operands, `helpers` gets the functions that they call."""

    texts: dict[SSAValue, Text] = field(default_factory=dict[SSAValue, Text])
    helpers: set[str] = field(default_factory=set[str])

    def expression(self, op: Operation) -> Text | None:
        """The expression of an operation on values that have texts; None if it is not one."""
        form = _FORMS.get(type(op))
        return None if form is None else form(self, op)

    def operand(self, op: Operation, position: int, binds: int = ANY) -> str:
        """The text of an operand."""
        return self.texts[op.operands[position]].at(binds)

    def call(self, function: str, op: Operation) -> Text:
        """A call of a function with all operands."""
        return Text(f"{function}({', '.join(self.texts[v].code for v in op.operands)})")

    def help(self, name: str, op: Operation) -> Text:
        """A call of a function that the file brings along."""
        self.helpers.add(name)
        return self.call(name, op)


def c_type(type: Attribute) -> str:
    """The C type of a scalar. Raises DeploError if there is none."""
    if str(type) not in C_TYPES:
        raise DeploError(f"values of type {type} have no C form")
    return C_TYPES[str(type)]


def is_half(type: Attribute) -> bool:
    """Whether values of a type are bits in C."""
    return isinstance(type, Float16Type | BFloat16Type)


def literal(op: arith.ConstantOp) -> Text:
    """A constant."""
    value, type = op.value, op.result.type
    if isinstance(value, IntegerAttr):
        number = value.value.data
        text = integer_literal(number, type) if isinstance(type, IntegerType) else str(number)
        return Text(text, UNARY if number < 0 else POSTFIX)
    if not isinstance(value, FloatAttr):
        raise DeploError(f"the constant {value} has no C form")
    number = value.value.data
    if is_half(type):
        return Text(bits_literal(number, type))
    if number != number:
        return Text("NAN")
    if number in (float("inf"), float("-inf")):
        return Text("INFINITY") if number > 0 else Text("-INFINITY", UNARY)
    text = float_literal(number, type)
    return Text(text, UNARY if text.startswith("-") else POSTFIX)


# --------------------------------------------------------------------------- operators


def _infix(operator: str, binds: int) -> Callable[[Values, Operation], Text]:
    def form(values: Values, op: Operation) -> Text:
        left, right = values.operand(op, 0, binds), values.operand(op, 1, binds + 1)
        return Text(f"{left} {operator} {right}", binds)

    return form


def _wrapping(operator: str, binds: int, helper: str) -> Callable[[Values, Operation], Text]:
    """Sums and products: indices never overflow, integers wrap."""
    plain = _infix(operator, binds)

    def form(values: Values, op: Operation) -> Text:
        type = op.operands[0].type
        return (
            plain(values, op)
            if isinstance(type, IndexType)
            else values.help(f"{helper}_{type}", op)
        )

    return form


def _bitwise(operator: str) -> Callable[[Values, Operation], Text]:
    def form(values: Values, op: Operation) -> Text:
        type = op.operands[0].type
        if is_bool(type) and operator == "^" and _is_true(op.operands[1]):
            return Text(f"!{values.operand(op, 0, UNARY)}", UNARY)
        if is_bool(type) and operator != "^":
            binds = AND if operator == "&" else OR
            left, right = values.operand(op, 0, COMPARISON), values.operand(op, 1, COMPARISON)
            if values.texts[op.operands[0]].binds == binds:  # a longer row of the same
                left = values.texts[op.operands[0]].code
            return Text(f"{left} {operator * 2} {right}", binds)
        text = f"{values.operand(op, 0, UNARY)} {operator} {values.operand(op, 1, UNARY)}"
        return Text(text, TERNARY)

    return form


def _is_true(value: SSAValue) -> bool:
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, IntegerAttr)
        and bool(op.value.value.data)
    )


def _helped(helper: str) -> Callable[[Values, Operation], Text]:
    return lambda values, op: values.help(f"{helper}_{op.operands[0].type}", op)


def _function(name: str) -> Callable[[Values, Operation], Text]:
    """A function of `math.h`, whose names for float end in `f`."""
    return lambda values, op: values.call(name + _suffix(op), op)


def _suffix(op: Operation) -> str:
    return "f" if str(op.operands[0].type) == "f32" else ""


def _rsqrt(values: Values, op: Operation) -> Text:
    return Text(f"1.0{_suffix(op)} / {values.call('sqrt' + _suffix(op), op).code}", PRODUCT)


def _select(values: Values, op: Operation) -> Text:
    return conditional(*(values.texts[value] for value in op.operands))


def conditional(condition: Text, yes: Text, no: Text) -> Text:
    """`condition ? yes : no`."""
    return Text(f"{condition.at(OR)} ? {yes.at(OR)} : {no.at(TERNARY)}", TERNARY)


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FLOAT_PREDICATES = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_NOT_FLOAT_PREDICATES = {9: "<=", 10: "<", 11: ">=", 12: ">"}
"""Predicates that hold for NaN, too, with what they are the opposite of."""


def _compare_integers(values: Values, op: arith.CmpiOp) -> Text:
    predicate, type = op.predicate.value.data, op.lhs.type
    if 2 <= predicate < 6 and is_bool(type):
        raise DeploError("a signed comparison of i1 values has no C form")
    cast = f"({UNSIGNED[str(type)]})" if predicate >= 6 and not is_bool(type) else ""
    left, right = (values.operand(op, i, UNARY if cast else SUM) for i in range(2))
    return Text(f"{cast}{left} {_INTEGER_PREDICATES[predicate]} {cast}{right}", COMPARISON)


def _compare_floats(values: Values, op: arith.CmpfOp) -> Text:
    predicate = op.predicate.value.data
    left, right = (values.operand(op, i, SUM) for i in range(2))
    if predicate in _FLOAT_PREDICATES:
        return Text(f"{left} {_FLOAT_PREDICATES[predicate]} {right}", COMPARISON)
    if predicate in _NOT_FLOAT_PREDICATES:
        return Text(f"!({left} {_NOT_FLOAT_PREDICATES[predicate]} {right})", UNARY)
    if predicate in (6, 8):
        text = values.call("islessgreater", op).code
        return Text(text if predicate == 6 else f"!{text}", UNARY)
    if predicate in (7, 14):
        text = values.call("isunordered", op).code
        return Text(text if predicate == 14 else f"!{text}", UNARY)
    return Text("true" if predicate else "false")


# --------------------------------------------------------------------------- conversions


def _cast(values: Values, op: Operation) -> Text:
    return Text(f"({c_type(op.results[0].type)}){values.operand(op, 0, UNARY)}", UNARY)


def _extend_float(values: Values, op: arith.ExtFOp) -> Text:
    if not is_half(op.input.type):
        return _cast(values, op)
    text = values.help(f"f32_of_{op.input.type}", op)
    return text if str(op.result.type) == "f32" else Text(f"(double){text.code}", UNARY)


def _narrow_float(values: Values, op: arith.TruncFOp) -> Text:
    if not is_half(op.result.type):
        return _cast(values, op)
    return values.help(f"{op.result.type}_of_{op.input.type}", op)


def _integer_to_float(values: Values, op: arith.SIToFPOp | arith.UIToFPOp) -> Text:
    source, target = op.input.type, op.result.type
    inner = ""
    if isinstance(op, arith.UIToFPOp) and not is_bool(source):
        inner = f"({UNSIGNED[str(source)]})"
    if not is_half(target):
        return Text(f"({c_type(target)}){inner}{values.operand(op, 0, UNARY)}", UNARY)
    values.helpers.add(f"{target}_of_f32")
    return Text(f"{target}_of_f32((float){inner}{values.operand(op, 0, UNARY)})")


def _extend_unsigned(values: Values, op: arith.ExtUIOp) -> Text:
    inner = "" if is_bool(op.input.type) else f"({UNSIGNED[str(op.input.type)]})"
    return Text(f"({c_type(op.result.type)}){inner}{values.operand(op, 0, UNARY)}", UNARY)


def _extend_signed(values: Values, op: arith.ExtSIOp) -> Text:
    minus = "-" if is_bool(op.input.type) else ""
    return Text(f"{minus}({c_type(op.result.type)}){values.operand(op, 0, UNARY)}", UNARY)


def _truncate(values: Values, op: arith.TruncIOp) -> Text:
    if is_bool(op.result.type):
        return Text(f"({values.operand(op, 0, UNARY)} & 1) != 0", COMPARISON)
    return _cast(values, op)


def _bitcast(values: Values, op: arith.BitcastOp) -> Text:
    source, target = op.input.type, op.result.type
    if is_half(source) or is_half(target):
        return _cast(values, op)
    return values.help(f"{target}_from_bits_of_{source}", op)


_FORMS: dict[type[Operation], Callable[[Values, Any], Text]] = {
    arith.AddfOp: _infix("+", SUM),
    arith.SubfOp: _infix("-", SUM),
    arith.MulfOp: _infix("*", PRODUCT),
    arith.DivfOp: _infix("/", PRODUCT),
    arith.NegfOp: lambda v, op: Text(f"-{v.operand(op, 0, POSTFIX)}", UNARY),
    arith.MaximumfOp: _helped("max"),
    arith.MinimumfOp: _helped("min"),
    arith.AddiOp: _wrapping("+", SUM, "add"),
    arith.SubiOp: _wrapping("-", SUM, "sub"),
    arith.MuliOp: _wrapping("*", PRODUCT, "mul"),
    arith.DivSIOp: _infix("/", PRODUCT),
    arith.RemSIOp: _infix("%", PRODUCT),
    arith.FloorDivSIOp: _helped("floordiv"),
    arith.MaxSIOp: _helped("max"),
    arith.MinSIOp: _helped("min"),
    arith.AndIOp: _bitwise("&"),
    arith.OrIOp: _bitwise("|"),
    arith.XOrIOp: _bitwise("^"),
    arith.ShLIOp: _helped("shl"),
    arith.ShRSIOp: _helped("shr"),
    arith.ShRUIOp: _helped("shru"),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _select,
    arith.ExtFOp: _extend_float,
    arith.TruncFOp: _narrow_float,
    arith.SIToFPOp: _integer_to_float,
    arith.UIToFPOp: _integer_to_float,
    arith.FPToSIOp: _cast,
    arith.ExtUIOp: _extend_unsigned,
    arith.ExtSIOp: _extend_signed,
    arith.TruncIOp: _truncate,
    arith.IndexCastOp: _cast,
    arith.BitcastOp: _bitcast,
    arith.ConstantOp: lambda v, op: literal(op),
    math.RsqrtOp: _rsqrt,
    math.AbsIOp: _helped("abs"),
    **{
        getattr(math, name): _function(function)
        for name, function in {
            "AbsFOp": "fabs",
            "AcosOp": "acos",
            "AcoshOp": "acosh",
            "AsinOp": "asin",
            "AsinhOp": "asinh",
            "AtanOp": "atan",
            "Atan2Op": "atan2",
            "AtanhOp": "atanh",
            "CbrtOp": "cbrt",
            "CeilOp": "ceil",
            "CopySignOp": "copysign",
            "CosOp": "cos",
            "CoshOp": "cosh",
            "ErfOp": "erf",
            "ExpOp": "exp",
            "Exp2Op": "exp2",
            "ExpM1Op": "expm1",
            "FloorOp": "floor",
            "FmaOp": "fma",
            "LogOp": "log",
            "Log10Op": "log10",
            "Log1pOp": "log1p",
            "Log2Op": "log2",
            "PowFOp": "pow",
            "RoundOp": "round",
            "RoundEvenOp": "rint",
            "SinOp": "sin",
            "SinhOp": "sinh",
            "SqrtOp": "sqrt",
            "TanOp": "tan",
            "TanhOp": "tanh",
            "TruncOp": "trunc",
        }.items()
    },
}
"""How each operation is written; all of them only compute."""


def is_expression(op: Operation) -> bool:
    """Whether an operation can be a part of an expression: it computes, and that is all."""
    return type(op) in _FORMS
