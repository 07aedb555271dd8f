"""Fragments of text form that several dialects share: scalars and tensor signatures."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

Scalar = IntegerAttr | FloatAttr
"""A scalar constant: an integer (or bool) or a float attribute."""


def tensor_type(value: SSAValue) -> TensorType:
    """The type of a value that is known to be a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type


def scalar_attr(value: float | bool, element: Attribute) -> Scalar:
    """`value` as an attribute of `element`; floats are rounded to it, integers must fit."""
    if isinstance(element, IntegerType):
        return IntegerAttr(int(value), element)
    assert isinstance(element, AnyFloat)
    return FloatAttr(float(value), element)


def repeated(names: Sequence[str]) -> str | None:
    """The first name that stands there more than once."""
    return next((name for name in names if names.count(name) > 1), None)


def parse_tensor_type(parser: Parser) -> TensorType:
    pos = parser.pos
    parsed = parser.parse_type()
    if not isinstance(parsed, TensorType):
        parser.raise_error(f"expected a tensor type, got {parsed}", pos, parser.pos)
    return parsed  # pyright: ignore[reportUnknownVariableType]


@irdl_custom_directive
class TensorTypeText(CustomDirective):
    """`tensor<4xf32>`: the type of a result; any other is an error at the type."""

    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.result.set(state, (parse_tensor_type(parser),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.result.print(printer, state, op)


def print_signature(printer: Printer, operands: Sequence[SSAValue], result: Attribute) -> None:
    printer.print_string(" : ")
    with printer.in_parens():
        printer.print_list([o.type for o in operands], printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(result)


def parse_signature(parser: Parser) -> tuple[list[Attribute], TensorType]:
    parser.parse_punctuation(":")
    inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    return list(inputs), parse_tensor_type(parser)


def parse_scalar(parser: Parser) -> tuple[int | float, int]:
    """A number, `nan`, `inf` or `-inf`, and where it stands."""
    pos = parser.pos
    for word in ("nan", "inf", "true", "false"):
        if parser.parse_optional_keyword(word):
            return {"nan": float("nan"), "inf": float("inf"), "true": 1, "false": 0}[word], pos
    if parser.parse_optional_punctuation("-"):
        if parser.parse_optional_keyword("inf"):
            return float("-inf"), pos
        return -parser.parse_number(allow_boolean=False), pos
    return parser.parse_number(allow_boolean=False), pos


def print_scalar(printer: Printer, value: Scalar) -> None:
    """Print a scalar so that `parse_scalar` reads the same one back."""
    if isinstance(value, IntegerAttr):
        if value.type == i1:
            printer.print_string("true" if value.value.data else "false")
        else:
            printer.print_string(str(value.value.data))
        return
    number = value.value.data
    if number != number:
        printer.print_string("nan")
    elif number in (float("inf"), float("-inf")):
        printer.print_string("inf" if number > 0 else "-inf")
    else:
        printer.print_string(shortest_float(number, value.type))


def shortest_float(number: float, type: Attribute) -> str:
    """The shortest decimal, always with a point, that reads back as the same number of `type`."""
    text = repr(number)
    if not isinstance(type, Float64Type):
        exact = struct.pack("<f", number)
        candidates = (f"{number:.{digits}g}" for digits in range(1, 10))
        text = next((t for t in candidates if struct.pack("<f", float(t)) == exact), text)
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def resolve_scalar(parser: Parser, value: float, pos: int, element: Attribute) -> Scalar:
    if isinstance(element, IntegerType) and not isinstance(value, int):
        parser.raise_error(f"expected an integer for element type {element}", pos)
    try:
        return scalar_attr(value, element)
    except (VerifyException, OverflowError) as error:
        parser.raise_error(f"{value} does not fit {element}: {error}", pos)
