"""What every operation of the `torch` dialect shares: argument kinds, text form and checks.

A Torch IR operation is one overload of an ATen operator. Its tensors are operands, in the order of
the operator's schema; every other argument is a property of that name. Text spells both out:

    %s = torch.sum %x {dim = [1], keepdim = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %y = torch.linear %x, %w, none : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
    %c = torch.cat [%a, %b] {dim = 1} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>

An absent optional tensor reads `none`; a list of tensors stands in brackets. A property that equals
the schema's default is not printed. A bare integer is an i64; a float carries its type, f64; a dynamic
size reads `#sym.extent<s0 * 4>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

from typing_extensions import TypeVar
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrConstraint,
    IntConstraint,
    IRDLOperation,
    VarResultDef,
    VerificationContext,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..errors import counted
from .allowed_sizes import allowed_at, allowing
from .scalars import is_element, verify_element
from .sizes import Extent, ExtentAttr, Size, UndecidedSize, shape_of
from .syntax import tensor_type
from .torch_elements import verify_elements
from .torch_syntax import (
    TensorArgument,
    parse_arguments,
    parse_tensors,
    parse_types,
    print_arguments,
    print_tensors,
)

ScalarValue: TypeAlias = bool | int | float
Shape: TypeAlias = tuple[Extent, ...]
_AttributeT = TypeVar("_AttributeT", bound=Attribute)

# --------------------------------------------------------------------------- kinds of arguments


@dataclass(frozen=True)
class Kind(AttrConstraint[_AttributeT]):
    """One kind of schema argument: which attributes stand for it, and how messages name it."""

    expected: str
    accepts: Callable[[Attribute], bool]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not self.accepts(attr):
            raise VerifyException(f"expected {self.expected}, got {attr}")

    def mapping_type_vars(
        self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]
    ) -> Kind[_AttributeT]:
        return self


def _is_integer(attr: Attribute, type: IntegerType) -> bool:
    return isinstance(attr, IntegerAttr) and attr.type == type


def _is_int(attr: Attribute) -> bool:
    return _is_integer(attr, i64)


def _is_bool(attr: Attribute) -> bool:
    return _is_integer(attr, i1)


def _is_float(attr: Attribute) -> bool:
    return isinstance(attr, FloatAttr) and isinstance(attr.type, Float64Type)


def _is_scalar(attr: Attribute) -> bool:
    return _is_extent(attr) or _is_bool(attr) or _is_float(attr)


def _is_ints(attr: Attribute) -> bool:
    return isinstance(attr, DenseArrayBase) and attr.elt_type == i64


def _is_extent(attr: Attribute) -> bool:
    return _is_int(attr) or (isinstance(attr, ExtentAttr) and isinstance(attr.data, Size))


def _is_extents(attr: Attribute) -> bool:
    """A list that holds a size; one of integers alone is a dense array."""
    if not isinstance(attr, ArrayAttr):
        return _is_ints(attr)
    return all(map(_is_extent, attr)) and not all(map(_is_int, attr))


INT: Kind[IntegerAttr] = Kind("an i64 integer", _is_int)
BOOL: Kind[IntegerAttr] = Kind("true or false", _is_bool)
FLOAT: Kind[FloatAttr] = Kind("an f64 float", _is_float)
SCALAR: Kind[IntegerAttr | FloatAttr | ExtentAttr] = Kind("an i64, f64 or i1 number", _is_scalar)
INTS: Kind[DenseArrayBase] = Kind("a list of i64 integers", _is_ints)
EXTENT: Kind[IntegerAttr | ExtentAttr] = Kind("an i64 integer or a size", _is_extent)
EXTENTS: Kind[DenseArrayBase | ArrayAttr[IntegerAttr | ExtentAttr]] = Kind(
    "a list of i64 integers or sizes", _is_extents
)
STR: Kind[StringAttr] = Kind("a string", lambda attr: isinstance(attr, StringAttr))
DTYPE: Kind[Attribute] = Kind("an element type such as f32", is_element)


def argument_attr(value: ScalarValue | Size | str | Sequence[Extent]) -> Attribute:
    """The attribute that stands for a Python argument; a dtype is an attribute already.

    Raises TypeError for anything else.
    """
    match value:
        case Size():
            return ExtentAttr(value)
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list() | tuple() if all(type(v) is int for v in value):
            return DenseArrayBase.from_list(i64, [v for v in value if isinstance(v, int)])
        case list() | tuple() if all(isinstance(v, Size) or type(v) is int for v in value):
            return ArrayAttr([argument_attr(v) for v in value])
        case _:
            raise TypeError(f"no attribute stands for {value!r}")


def value_of(attr: IntegerAttr | FloatAttr | ExtentAttr) -> ScalarValue | Size:
    """What a Scalar attribute stands for: a Python number or a size."""
    if not isinstance(attr, ExtentAttr):
        return number_of(attr)
    return attr.data


def number_of(attr: IntegerAttr | FloatAttr) -> ScalarValue:
    """The Python number that an attribute stands for; an i1 is a bool (xDSL stores true as -1)."""
    if isinstance(attr, IntegerAttr) and attr.type == i1:
        return bool(attr.value.data)
    return attr.value.data


def _extent_of(attr: Attribute) -> Extent:
    if isinstance(attr, ExtentAttr):
        return attr.data
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def _static(name: str, value: Extent) -> int:
    if isinstance(value, Size):
        raise UndecidedSize(f"{name} = {value} is known only at run time")
    return value


# --------------------------------------------------------------------------- the base class


class TorchOp(IRDLOperation):
    """One overload of an ATen operator. Pure: the front end functionalizes what it imports."""

    ATEN: ClassVar[str]
    """The overload's name as PyTorch spells it, such as `add.Tensor`."""

    ELEMENTS: ClassVar[str] = "same"
    """The rule of each result's element type, named in `torch_elements.py`."""

    # ---- arguments as Python values

    def integer(self, name: str) -> int:
        """The integer argument `name`; raises UndecidedSize if it is a dynamic size."""
        value = self.optional_integer(name)
        assert value is not None, name
        return value

    def optional_integer(self, name: str) -> int | None:
        """The integer argument `name`, or None where the program gives none."""
        value = self.optional_extent(name)
        return None if value is None else _static(name, value)

    def flag(self, name: str) -> bool:
        """The bool argument `name`; absent means false."""
        return bool(self.optional_integer(name))

    def integers(self, name: str) -> tuple[int, ...]:
        """The list argument `name`; absent means empty. Raises UndecidedSize if it has dynamic sizes."""
        return tuple(_static(name, value) for value in self.extents(name))

    def extent(self, name: str) -> Extent:
        """The argument `name`, an integer or a dynamic size."""
        value = self.optional_extent(name)
        assert value is not None, name
        return value

    def optional_extent(self, name: str) -> Extent | None:
        """The argument `name`, an integer or a dynamic size, or None where the program gives none."""
        attr = self.properties.get(name)
        return None if attr is None else _extent_of(attr)

    def extents(self, name: str) -> Shape:
        """The list argument `name` of integers and dynamic sizes; absent means empty."""
        attr = self.properties.get(name)
        if attr is None:
            return ()
        if isinstance(attr, ArrayAttr):
            return tuple(_extent_of(item) for item in attr)
        assert isinstance(attr, DenseArrayBase)
        return tuple(int(v) for v in attr.get_values())

    def number(self, name: str) -> ScalarValue:
        """The float or Scalar argument `name`; raises UndecidedSize if it is a dynamic size."""
        value = self.optional_number(name)
        assert value is not None, name
        return value

    def optional_number(self, name: str) -> ScalarValue | None:
        """The float or Scalar argument `name`, or None where the program gives none."""
        value = self.optional_scalar(name)
        if isinstance(value, Size):
            raise UndecidedSize(f"{name} = {value} is known only at run time")
        return value

    def scalar(self, name: str) -> ScalarValue | Size:
        """The Scalar argument `name`, a number or a dynamic size."""
        value = self.optional_scalar(name)
        assert value is not None, name
        return value

    def optional_scalar(self, name: str) -> ScalarValue | Size | None:
        """The Scalar argument `name`, or None where the program gives none."""
        attr = self.properties.get(name)
        return value_of(attr) if isinstance(attr, FloatAttr | IntegerAttr | ExtentAttr) else None

    def string(self, name: str) -> str | None:
        """The string argument `name`, or None where the program gives none."""
        attr = self.properties.get(name)
        return attr.data if isinstance(attr, StringAttr) else None

    # ---- shapes

    def operand_shapes(self) -> list[Shape]:
        """The extents of each tensor operand that is present."""
        return [shape_of(tensor_type(v)) for v in self.operands]

    def result_shape(self) -> Shape | None:
        """The extents that the arguments give the first result; None leaves them unchecked.

        Raises VerifyException for arguments that do not fit, and UndecidedSize where sizes decide that.
        """
        return None

    def verify_(self) -> None:
        for value in (*self.operands, *self.results):
            verify_element(tensor_type(value).element_type)
        if not self.results:
            return
        try:
            with allowing(allowed_at(self)):
                expected = self.result_shape()
        except UndecidedSize as error:
            raise VerifyException(str(error)) from error
        got = shape_of(tensor_type(self.results[0]))
        if expected is not None and expected != got:
            raise VerifyException(
                f"its arguments give a result of shape {list(expected)}, not {list(got)}"
            )
        verify_elements(self, self.ELEMENTS)

    # ---- text

    @classmethod
    def build_op(
        cls,
        tensors: Sequence[TensorArgument],
        arguments: Mapping[str, Attribute],
        result_types: Sequence[Attribute],
    ) -> Self:
        """Make the op from one entry per tensor argument, in schema order, and its properties."""
        definition = cls.get_irdl_definition()
        variadic = bool(definition.results) and isinstance(definition.results[0][1], VarResultDef)
        return cls.build(
            operands=[[] if tensor is None else tensor for tensor in tensors],
            properties=dict(arguments),
            result_types=[list(result_types)] if variadic else list(result_types),
        )

    def tensor_arguments(self) -> list[TensorArgument]:
        """One entry per tensor argument, in schema order: a value, a list, or None if absent."""
        return [getattr(self, name) for name, _ in self.get_irdl_definition().operands]

    def print(self, printer: Printer) -> None:
        definitions = self.get_irdl_definition().properties
        arguments = {
            name: self.properties[name]
            for name, definition in definitions.items()
            if name in self.properties and self.properties[name] != definition.default_value
        }
        print_tensors(printer, self.tensor_arguments())
        print_arguments(printer, arguments | self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        definition = cls.get_irdl_definition()
        pos = parser.pos
        unresolved = parse_tensors(parser, [operand for _, operand in definition.operands])
        properties, attributes = parse_arguments(parser, cls.name, list(definition.properties))
        tensors, results = parse_types(parser, unresolved)
        count = len(definition.results)
        variadic = any(isinstance(result, VarResultDef) for _, result in definition.results)
        if not variadic and len(results) != count:
            expected = counted(count, "result")
            parser.raise_error(f"{cls.name} has {expected}, got {len(results)} types", pos)
        op = cls.build_op(tensors, properties, results)
        op.attributes |= attributes
        return op
