"""The `tensor_ir` dialect: whole-tensor programs in three primitives.

    %sq  = tensor_ir.elementwise mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %sum = tensor_ir.reduce add(%sq) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    %bc  = tensor_ir.index_map (i, j) -> %sum[i, 0] : (tensor<4x1xf32>) -> tensor<4x8xf32>

`elementwise` applies one scalar function; its operands have one shape, so broadcasting is an `index_map`.
`reduce` folds axes with one combiner. `index_map` is every change of layout. What these three cannot say
is named: `constant`, `size`, `iota`, `cast`, `gather`, `scatter`,
`sort`, `scan`, which runs a function per step, and `call`, which PyTorch runs.

Extents may be dynamic sizes, named by the types: `tensor<?x4xf32, #sym.extents<s0>>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .calls import OperandAttr, TensorCallOp
from .index import ExtentText
from .index_map import IndexMapOp
from .scalars import (
    Combiner,
    CombinerAttr,
    Function,
    FunctionAttr,
    UpdateAttr,
    infer_result,
    is_integer,
    verify_combiner,
    verify_element,
)
from .sizes import Extent, ExtentAttr, shape_of, tensor_of
from .syntax import (
    TensorTypeText,
    parse_scalar,
    parse_signature,
    parse_tensor_type,
    print_scalar,
    print_signature,
    resolve_scalar,
    scalar_attr,
    tensor_type,
)
from .tensor_ir_indexed import GatherOp, NthElementOp, ScatterOp, SortOp
from .tensor_ir_scan import ScanOp

# --------------------------------------------------------------------------- operations


@irdl_op_definition
class ElementwiseOp(IRDLOperation):
    """Apply one scalar function to each position of operands of one shape.

    ```
    %y = tensor_ir.elementwise mul(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "tensor_ir.elementwise"

    function = prop_def(FunctionAttr)
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, function: Function, inputs: Sequence[SSAValue]):
        element = infer_result(function, [tensor_type(v).element_type for v in inputs])
        super().__init__(
            operands=[inputs],
            properties={"function": FunctionAttr(function)},
            result_types=[tensor_of(element, shape_of(tensor_type(inputs[-1])))],
        )

    def verify_(self) -> None:
        types = [tensor_type(v) for v in self.inputs]
        element = infer_result(self.function.data, [t.element_type for t in types])
        result = tensor_type(self.result)
        verify_element(result.element_type)
        shape = shape_of(result)
        if any(shape_of(t) != shape for t in types):
            raise VerifyException(
                "operands and result must have one shape (broadcast with an index_map), got "
                + ", ".join(str(t) for t in [*types, result])
            )
        if result.element_type != element:
            raise VerifyException(
                f"{self.function.data} gives {element} elements, not {result.element_type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.function.data}")
        printer.print_operands(self.inputs)
        printer.print_op_attributes(self.attributes)
        print_signature(printer, self.inputs, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        function = parser.parse_str_enum(Function)
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        pos = parser.pos
        types, result = parse_signature(parser)
        return cls.create(
            operands=parser.resolve_operands(names, types, pos),
            properties={"function": FunctionAttr(function)},
            result_types=[result],
            attributes=attributes,
        )


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Fold axes with a combiner; a folded axis has extent 1 in the result.

    Folding an empty axis gives the combiner's identity.
    ```
    %s = tensor_ir.reduce add(%x) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
    """

    name = "tensor_ir.reduce"

    combiner = prop_def(CombinerAttr)
    axes = prop_def(DenseArrayBase.constr(i64))
    input = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, combiner: Combiner, input: SSAValue, axes: Sequence[int]):
        source = tensor_type(input)
        shape = [1 if i in axes else n for i, n in enumerate(shape_of(source))]
        super().__init__(
            operands=[input],
            properties={
                "combiner": CombinerAttr(combiner),
                "axes": DenseArrayBase.from_list(i64, sorted(axes)),
            },
            result_types=[tensor_of(source.element_type, shape)],
        )

    def verify_(self) -> None:
        source, result = tensor_type(self.input), tensor_type(self.result)
        verify_combiner(self.combiner.data, source.element_type)
        axes = self.axes.get_values()
        rank = source.get_num_dims()
        if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= rank:
            raise VerifyException(
                f"axes must be increasing and within rank {rank}, got {list(axes)}"
            )
        shape = [1 if i in axes else n for i, n in enumerate(shape_of(source))]
        expected = tensor_of(source.element_type, shape)
        if result != expected:
            raise VerifyException(f"expected result {expected}, got {result}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combiner.data}")
        printer.print_operands([self.input])
        printer.print_string(f" over {list(self.axes.get_values())}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combiner = parser.parse_str_enum(Combiner)
        parser.parse_punctuation("(")
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(")")
        parser.parse_keyword("over")
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parse_tensor_type(parser)
        parser.parse_punctuation("->")
        return cls.create(
            operands=[parser.resolve_operand(name, source)],
            properties={
                "combiner": CombinerAttr(combiner),
                "axes": DenseArrayBase.from_list(i64, axes),
            },
            result_types=[parse_tensor_type(parser)],
            attributes=attributes,
        )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor that holds one value everywhere: `tensor_ir.constant 0.5 : tensor<4xf32>`."""

    name = "tensor_ir.constant"

    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, value: float | bool, type: TensorType):
        super().__init__(
            properties={"value": scalar_attr(value, type.element_type)},
            result_types=[type],
        )

    def verify_(self) -> None:
        result = tensor_type(self.result)
        verify_element(result.element_type)
        shape_of(result)
        if self.value.type != result.element_type:
            raise VerifyException(f"value is {self.value.type}, result holds {result.element_type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_scalar(printer, self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        value, pos = parse_scalar(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        result = parse_tensor_type(parser)
        return cls.create(
            properties={"value": resolve_scalar(parser, value, pos, result.element_type)},
            result_types=[result],
            attributes=attributes,
        )


@irdl_op_definition
class SizeOp(IRDLOperation):
    """A tensor that holds an extent everywhere: `tensor_ir.size s0 * 4 : tensor<8xi64>`."""

    name = "tensor_ir.size"

    extent = prop_def(ExtentAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    custom_directives = (ExtentText, TensorTypeText)
    assembly_format = (
        "custom<ExtentText>($extent) attr-dict `:` custom<TensorTypeText>(type($result))"
    )

    def __init__(self, extent: Extent, type: TensorType):
        super().__init__(properties={"extent": ExtentAttr(extent)}, result_types=[type])

    def verify_(self) -> None:
        result = tensor_type(self.result)
        shape_of(result)
        if not is_integer(result.element_type):
            raise VerifyException(f"counts in integers, not {result.element_type}")


@irdl_op_definition
class IotaOp(IRDLOperation):
    """Each position holds its index along one axis: `tensor_ir.iota 0 : tensor<4xi64>`."""

    name = "tensor_ir.iota"

    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())
    custom_directives = (TensorTypeText,)
    assembly_format = "$axis attr-dict `:` custom<TensorTypeText>(type($result))"

    def __init__(self, axis: int, type: TensorType):
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[type])

    def verify_(self) -> None:
        result = tensor_type(self.result)
        shape_of(result)
        if not is_integer(result.element_type):
            raise VerifyException(f"counts in integers, not {result.element_type}")
        if not 0 <= self.axis.value.data < result.get_num_dims():
            raise VerifyException(f"axis {self.axis.value.data} is not an axis of {result}")


@irdl_op_definition
class CastOp(IRDLOperation):
    """Convert each element: `tensor_ir.cast %x : tensor<4xf32> to tensor<4xf16>`.

    Floats round to nearest even. Float to integer truncates (a value that does not fit gives the
    smallest integer, as on x86); to i1 is `!= 0`, so NaN gives true. Integers wrap.
    """

    name = "tensor_ir.cast"

    input = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, input: SSAValue, element: Attribute):
        super().__init__(
            operands=[input], result_types=[tensor_of(element, shape_of(tensor_type(input)))]
        )

    def verify_(self) -> None:
        source, result = tensor_type(self.input), tensor_type(self.result)
        verify_element(source.element_type)
        verify_element(result.element_type)
        if shape_of(source) != shape_of(result):
            raise VerifyException(f"must keep the shape, got {source} to {result}")


@irdl_op_definition
class CallOp(TensorCallOp):
    """An operator that PyTorch runs, between the kernels that deplo makes.

    ```
    %u, %s = tensor_ir.call "aten.linalg_eigh.default"(input = %x, UPLO = "L")
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    ```
    """

    name = "tensor_ir.call"


TensorIR = Dialect(
    "tensor_ir",
    [
        ElementwiseOp,
        ReduceOp,
        IndexMapOp,
        ConstantOp,
        SizeOp,
        IotaOp,
        CastOp,
        GatherOp,
        ScatterOp,
        SortOp,
        NthElementOp,
        ScanOp,
        CallOp,
    ],
    [FunctionAttr, CombinerAttr, UpdateAttr, OperandAttr],
)
