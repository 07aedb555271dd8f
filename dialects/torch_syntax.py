"""The text form of `torch` operations: tensors, other arguments in braces, then a signature.

torch.linear %x, %w, none : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
torch.cat [%a, %b] {dim = 1} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import OperandDef, OptOperandDef, VarOperandDef
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

TensorArgument: TypeAlias = SSAValue | Sequence[SSAValue] | None
"""What stands at one tensor argument: a value, a list of values, or nothing."""

UnresolvedArgument: TypeAlias = UnresolvedOperand | list[UnresolvedOperand] | None

SEGMENTS = "operandSegmentSizes"


def print_tensors(printer: Printer, arguments: Sequence[TensorArgument]) -> None:
    """Print ` %a, none, [%b, %c]`."""

    def one(argument: TensorArgument) -> None:
        if argument is None:
            printer.print_string("none")
        elif isinstance(argument, SSAValue):
            printer.print_ssa_value(argument)
        else:
            with printer.in_square_brackets():
                printer.print_list(argument, printer.print_ssa_value)

    if arguments:
        printer.print_string(" ")
        printer.print_list(arguments, one)


def parse_tensors(parser: Parser, definitions: Sequence[OperandDef]) -> list[UnresolvedArgument]:
    """Parse one argument per definition."""
    arguments: list[UnresolvedArgument] = []
    for i, definition in enumerate(definitions):
        if i:
            parser.parse_punctuation(",")
        optional = isinstance(definition, OptOperandDef)
        if optional and parser.parse_optional_keyword("none"):
            arguments.append(None)
        elif isinstance(definition, VarOperandDef) and not optional:
            arguments.append(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, parser.parse_unresolved_operand
                )
            )
        else:
            arguments.append(parser.parse_unresolved_operand())
    return arguments


def print_arguments(printer: Printer, arguments: Mapping[str, Attribute]) -> None:
    """Print ` {dim = [1], eps = 1e-05 : f64}`, or nothing."""
    if not (entries := {k: v for k, v in arguments.items() if k != SEGMENTS}):
        return

    def one(entry: tuple[str, Attribute]) -> None:
        name, value = entry
        printer.print_identifier_or_string_literal(name)
        printer.print_string(" = ")
        print_argument(printer, value)

    printer.print_string(" ")
    with printer.in_braces():
        printer.print_list(entries.items(), one)


def print_argument(printer: Printer, value: Attribute) -> None:
    """Print integers bare, lists in brackets, floats with the fewest digits that give them back."""
    match value:
        case IntegerAttr() if value.type == i64:
            printer.print_string(str(value.value.data))
        case FloatAttr(type=Float64Type()) if math.isfinite(value.value.data):
            mantissa, e, exponent = repr(value.value.data).partition("e")
            digits = mantissa if "." in mantissa else f"{mantissa}.0"
            printer.print_string(f"{digits}{e}{exponent} : f64")
        case DenseArrayBase(elt_type=element) if element == i64:
            integers = cast(DenseArrayBase[IntegerType], value)
            printer.print_string(str(list(integers.get_values())))
        case ArrayAttr(data=items):
            with printer.in_square_brackets():
                printer.print_list(items, lambda item: print_argument(printer, item))
        case _:
            printer.print_attribute(value)


def parse_arguments(
    parser: Parser, op_name: str, known: Sequence[str]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Parse what `print_arguments` prints: properties among `known`, and other attributes.

    A name that is not known must be qualified by a dialect: a misspelt argument is an error.
    """
    names = [name for name in known if name != SEGMENTS]
    pos = parser.pos
    entries = parser.parse_optional_attr_dict()
    properties: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    for name, value in entries.items():
        if name in names:
            properties[name] = _as_list(value)
        elif "." in name:
            attributes[name] = value
        else:
            listed = ", ".join(names) or "none"
            parser.raise_error(f"{op_name} has no argument {name!r}; it has {listed}", pos)
    return properties, attributes


def _as_list(value: Attribute) -> Attribute:
    """`[1, 2]` parses as an array of attributes; an argument holds it as a dense array.

    A list with sizes, or whatever the verifier refuses, stays as it is.
    """
    if not isinstance(value, ArrayAttr):
        return value
    values: list[int] = []
    for item in value.data:
        if not isinstance(item, IntegerAttr) or item.type != i64:
            return value
        values.append(item.value.data)
    return DenseArrayBase.from_list(i64, values)


def parse_types(
    parser: Parser, arguments: Sequence[UnresolvedArgument]
) -> tuple[list[TensorArgument], list[Attribute]]:
    """Parse ` : (types) -> types` and give the operands their types."""
    parser.parse_punctuation(":")
    pos = parser.pos
    signature = parser.parse_function_type()
    flat = [a if isinstance(a, list) else [] if a is None else [a] for a in arguments]
    names = [name for group in flat for name in group]
    if len(names) != len(signature.inputs):
        parser.raise_error(
            f"{len(names)} operands need as many types, got {len(signature.inputs)}", pos
        )
    values = iter(parser.resolve_operands(names, signature.inputs.data, pos))
    tensors: list[TensorArgument] = []
    for argument in arguments:
        if isinstance(argument, list):
            tensors.append([next(values) for _ in argument])
        else:
            tensors.append(None if argument is None else next(values))
    return tensors, list(signature.outputs)
