"""What the IRs' calls of PyTorch share: `torch.call`, `tensor_ir.call` and `kernel.call`.

    %u, %s = torch.call "aten.linalg_eigh.default"(self = %x, UPLO = "L")
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)

A call names an overload and its arguments as PyTorch's schema does, in its order; what is left out has the
schema's default. As everywhere in deplo, `self` reads `input`. An argument is a number, a string, an element
type (a dtype), `none`, a tensor, or a list of these. The tensors are operands of the operation, and in the
`arguments` attribute `#tensor_ir.operand<0>` stands for the first. A device, a layout and the like are not
arguments: PyTorch runs the operator on dense tensors where the program runs.

A call may use element types that deplo itself does not compute with (`OPAQUE`), to hand to other calls.
The attribute `deplo.reason` says why an operator that deplo has runs in PyTorch all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    f64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .scalars import is_element, verify_element
from .syntax import tensor_type
from .torch_syntax import print_argument

OPAQUE: tuple[Attribute, ...] = (
    ComplexType(f32),
    ComplexType(f64),
    IntegerType(8, Signedness.UNSIGNED),
)
"""Element types that only calls may read and make: complex64, complex128, uint8."""

FALLBACK = "deplo.fallback"
"""The attribute of a module in which operators that deplo does not support may become calls: "eager"."""

REASON = "deplo.reason"
"""The attribute of a call that says why deplo does not compute the operator itself."""


@irdl_attr_definition
class OperandAttr(ParametrizedAttribute):
    """Stands for one of a call's tensors, by its position: `#tensor_ir.operand<0>`."""

    name = "tensor_ir.operand"

    position: IntAttr

    @classmethod
    def parse_parameters(cls, parser: Parser) -> Sequence[Attribute]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.position.data))


def operands_in(value: Attribute) -> Iterator[int]:
    """The positions of the operands that an argument names, in order."""
    match value:
        case OperandAttr():
            yield value.position.data
        case ArrayAttr() | DictionaryAttr():
            items = value.data.values() if isinstance(value, DictionaryAttr) else value.data
            for item in items:
                yield from operands_in(item)
        case _:
            pass


def verify_call(callee: str, arguments: DictionaryAttr, operands: int) -> None:
    """Raise unless a call is well formed and names each of its operands once, in order."""
    if callee.count(".") < 2:
        raise VerifyException(f"callee must read namespace.operator.overload, got {callee!r}")
    for name, value in arguments.data.items():
        if not _is_argument(value):
            raise VerifyException(f"argument {name} cannot be {value}")
    named = list(operands_in(arguments))
    if named != list(range(operands)):
        raise VerifyException(
            f"arguments must name each of its {operands} operands once, in order, got {named}"
        )


def _is_argument(value: Attribute) -> bool:
    match value:
        case ArrayAttr():
            return all(_is_argument(item) for item in value.data)
        case IntegerAttr() | FloatAttr() | StringAttr() | UnitAttr() | OperandAttr():
            return True
        case _:
            return is_call_element(value)


def is_call_element(element: Attribute) -> bool:
    """Whether tensors of `element` may go into and come out of a call."""
    return is_element(element) or element in OPAQUE


# --------------------------------------------------------------------------- text


def print_call(
    printer: Printer, callee: str, arguments: DictionaryAttr, operands: Sequence[SSAValue]
) -> None:
    """Print ` "aten.cat.default"(tensors = [%a, %b], dim = 1)`."""

    def one(value: Attribute) -> None:
        match value:
            case OperandAttr():
                printer.print_ssa_value(operands[value.position.data])
            case UnitAttr():
                printer.print_string("none")
            case ArrayAttr():
                with printer.in_square_brackets():
                    printer.print_list(value.data, one)
            case _:
                print_argument(printer, value)

    def entry(item: tuple[str, Attribute]) -> None:
        printer.print_identifier_or_string_literal(item[0])
        printer.print_string(" = ")
        one(item[1])

    printer.print_string(" ")
    printer.print_string_literal(callee)
    with printer.in_parens():
        printer.print_list(arguments.data.items(), entry)


def parse_call(parser: Parser) -> tuple[str, DictionaryAttr, list[UnresolvedOperand]]:
    """Parse what `print_call` prints: the callee, its arguments, and the operands they name."""
    operands: list[UnresolvedOperand] = []

    def one() -> Attribute:
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            return OperandAttr(IntAttr(len(operands) - 1))
        if parser.parse_optional_keyword("none"):
            return UnitAttr()
        items = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, one)
        return parser.parse_attribute() if items is None else ArrayAttr(items)

    def entry() -> tuple[str, Attribute]:
        name = parser.parse_optional_str_literal() or parser.parse_identifier()
        parser.parse_punctuation("=")
        return name, one()

    callee = parser.parse_str_literal()
    pos = parser.pos
    entries = parser.parse_comma_separated_list(parser.Delimiter.PAREN, entry)
    names = [name for name, _ in entries]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        parser.raise_error(f"argument {repeated} is given twice", pos)
    return callee, DictionaryAttr(dict(entries)), operands


# --------------------------------------------------------------------------- the operation


class TensorCallOp(IRDLOperation):
    """A call whose tensors are values. Assumed to have effects: calls keep their order."""

    callee = prop_def(StringAttr)
    arguments = prop_def(DictionaryAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(
        self,
        callee: str,
        arguments: Mapping[str, Attribute],
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[inputs],
            properties={"callee": StringAttr(callee), "arguments": DictionaryAttr(dict(arguments))},
            result_types=[list(result_types)],
        )

    def verify_(self) -> None:
        verify_call(self.callee.data, self.arguments, len(self.inputs))
        for value in (*self.operands, *self.results):
            if (element := tensor_type(value).element_type) not in OPAQUE:
                verify_element(element)

    def print(self, printer: Printer) -> None:
        print_call(printer, self.callee.data, self.arguments, self.inputs)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> TensorCallOp:
        callee, arguments, names = parse_call(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        if len(names) != len(signature.inputs):
            parser.raise_error(
                f"{len(names)} operands need as many types, got {len(signature.inputs)}", pos
            )
        inputs = parser.resolve_operands(names, signature.inputs.data, pos)
        op = cls(callee, arguments.data, inputs, signature.outputs.data)
        op.attributes |= attributes.data if attributes else {}
        return op


class CallArguments:
    """Collects a call's arguments: attributes by name, and the operands among them in order."""

    def __init__(self) -> None:
        self.attributes: dict[str, Attribute] = {}
        self.operands: list[SSAValue] = []

    def operand(self, value: SSAValue) -> Attribute:
        """What stands for `value`, which becomes the next operand."""
        self.operands.append(value)
        return OperandAttr(IntAttr(len(self.operands) - 1))
