"""What the IRs' calls of PyTorch share: `torch.call`, `tensor_ir.call` and `kernel.call`.

    %u, %s = torch.call "aten.linalg_eigh.default"(self = %x, UPLO = "L")
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)

A call names an overload and its arguments as PyTorch's schema does, in its order; what is left out has the
schema's default. As everywhere in deplo, `self` reads `input`. An argument is a number, a dynamic size, a
string, an element type (a dtype), `none`, a tensor, or a list of these. The tensors are operands of the
operation, and in the `arguments` attribute `#tensor_ir.operand<0>` stands for the first. A device, a layout
and the like are not arguments: PyTorch runs the operator on dense tensors where the program runs. Where the
operator got a view that only exchanges axes, it gets one in the program too, and nothing is copied:

    %y = torch.call "moe.grouped_mm.default"(input = %x, weight = permute(%w, [0, 2, 1]), offs = %o)
      : (tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2xi32>) -> tensor<8x6xf32>

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
    MemRefType,
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

from .part_calls import verify_parts
from .scalars import is_element, verify_element
from .sizes import ExtentAttr
from .syntax import repeated, tensor_type
from .torch_syntax import print_argument

OPAQUE: tuple[Attribute, ...] = (
    ComplexType(f32),
    ComplexType(f64),
)
"""Element types that only calls may read and make: complex64, complex128."""

FALLBACK = "deplo.fallback"
"""The attribute of a module in which operators that deplo does not support may become calls: "eager"."""

SIZE = "deplo.size.default"
"""The call that is no operator of PyTorch's: it makes a tensor of as many elements as its operand says.

    %all = tensor_ir.call "deplo.size.default"(count = %n) : (tensor<1xi64>) -> tensor<?xi8, #sym.extents<s0>>

So a kernel finds a size, and the plan goes on with it. The elements are not set.
"""

REASON = "deplo.reason"
"""The attribute of a call that says why deplo does not compute the operator itself."""


@irdl_attr_definition
class OperandAttr(ParametrizedAttribute):
    """Stands for one of a call's tensors, by its position: `#tensor_ir.operand<0>`.

    `#tensor_ir.operand<0, [1, 0]>` is the view whose axis i is the tensor's axis `axes[i]`.
    """

    name = "tensor_ir.operand"

    position: IntAttr
    axes: ArrayAttr[IntAttr]

    def __init__(self, position: int, axes: Sequence[int] = ()):
        super().__init__(IntAttr(position), ArrayAttr([IntAttr(axis) for axis in axes]))

    @property
    def permutation(self) -> list[int]:
        """The view's axes, as the tensor counts them; empty where the call gets the tensor itself."""
        return [axis.data for axis in self.axes]

    def verify(self) -> None:
        if sorted(self.permutation) != list(range(len(self.axes))):
            raise VerifyException(f"{self.permutation} does not name each axis once")

    @classmethod
    def parse_parameters(cls, parser: Parser) -> Sequence[Attribute]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with parser.in_angle_brackets():
            position = parser.parse_integer(allow_boolean=False, allow_negative=False)
            axes = _parse_axes(parser) if parser.parse_optional_punctuation(",") else ()
        return [IntAttr(position), ArrayAttr([IntAttr(axis) for axis in axes])]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.position.data))
            if self.permutation:
                printer.print_string(f", {self.permutation}")


def _parse_axes(parser: Parser) -> list[int]:
    def axis() -> int:
        return parser.parse_integer(allow_boolean=False, allow_negative=False)

    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, axis)


def operands_in(value: Attribute) -> Iterator[OperandAttr]:
    """What stands for operands in an argument, in order."""
    match value:
        case OperandAttr():
            yield value
        case ArrayAttr() | DictionaryAttr():
            items = value.data.values() if isinstance(value, DictionaryAttr) else value.data
            for item in items:
                yield from operands_in(item)
        case _:
            pass


def verify_call(callee: str, arguments: DictionaryAttr, operands: Sequence[SSAValue]) -> None:
    """Raise unless a call is well formed and names each of its operands once, in order."""
    if callee.count(".") < 2:
        raise VerifyException(f"callee must read namespace.operator.overload, got {callee!r}")
    for name, value in arguments.data.items():
        if not _is_argument(value):
            raise VerifyException(f"argument {name} cannot be {value}")
    named = [each.position.data for each in operands_in(arguments)]
    if named != list(range(len(operands))):
        raise VerifyException(
            f"arguments must name each of its {len(operands)} operands once, in order, got {named}"
        )
    for each, operand in zip(operands_in(arguments), operands, strict=True):
        assert isinstance(operand.type, TensorType | MemRefType)
        rank = operand.type.get_num_dims()
        if each.permutation and len(each.permutation) != rank:
            raise VerifyException(f"{each.permutation} does not name each of {rank} axes once")


def _is_argument(value: Attribute) -> bool:
    match value:
        case ArrayAttr():
            return all(_is_argument(item) for item in value.data)
        case IntegerAttr() | FloatAttr() | StringAttr() | UnitAttr() | OperandAttr() | ExtentAttr():
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
            case OperandAttr() if value.permutation:
                printer.print_string("permute(")
                printer.print_ssa_value(operands[value.position.data])
                printer.print_string(f", {value.permutation})")
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
            return OperandAttr(len(operands) - 1)
        if parser.parse_optional_keyword("permute"):
            with parser.in_parens():
                operands.append(parser.parse_unresolved_operand())
                parser.parse_punctuation(",")
                return OperandAttr(len(operands) - 1, _parse_axes(parser))
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
    if twice := repeated([name for name, _ in entries]):
        parser.raise_error(f"argument {twice} is given twice", pos)
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

    @property
    def call_arguments(self) -> DictionaryAttr:
        """The arguments by name, as `kernel.call` calls them."""
        return self.arguments

    def verify_(self) -> None:
        verify_call(self.callee.data, self.arguments, self.inputs)
        verify_parts(self, self.callee.data, self.arguments, self.inputs, self.result_types)
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
