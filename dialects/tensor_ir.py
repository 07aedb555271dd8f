"""The `tensor_ir` dialect: whole-tensor programs in three primitives.

    %sq  = tensor_ir.elementwise mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %sum = tensor_ir.reduce add(%sq) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    %bc  = tensor_ir.index_map (i, j) -> %sum[i, 0] : (tensor<4x1xf32>) -> tensor<4x8xf32>

`elementwise` applies one scalar function; its operands have one shape, so broadcasting is an `index_map`.
`reduce` folds axes with one combiner. `index_map` is every change of layout. What these three cannot say
is named: `constant`, `size`, `iota`, `cast`, `gather`, `scatter`,
`sort`, and `call`, which PyTorch runs.

Extents may be dynamic sizes, named by the types: `tensor<?x4xf32, #sym.extents<s0>>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .allowed_sizes import allowed_at, allowing
from .calls import OperandAttr, TensorCallOp
from .index_map import IndexMapOp
from .scalars import (
    Combiner,
    CombinerAttr,
    Function,
    FunctionAttr,
    Update,
    UpdateAttr,
    infer_result,
    is_integer,
    verify_combiner,
    verify_element,
)
from .sizes import Extent, ExtentAttr, is_at_most, parse_extent, print_extent, shape_of, tensor_of
from .syntax import (
    parse_scalar,
    parse_signature,
    parse_tensor_type,
    print_scalar,
    print_signature,
    resolve_scalar,
    scalar_attr,
    tensor_type,
)

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

    def __init__(self, extent: Extent, type: TensorType):
        super().__init__(properties={"extent": ExtentAttr(extent)}, result_types=[type])

    def verify_(self) -> None:
        result = tensor_type(self.result)
        shape_of(result)
        if not is_integer(result.element_type):
            raise VerifyException(f"counts in integers, not {result.element_type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_extent(printer, self.extent.data)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> SizeOp:
        extent = ExtentAttr(parse_extent(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(
            properties={"extent": extent},
            result_types=[parse_tensor_type(parser)],
            attributes=attributes,
        )


@irdl_op_definition
class IotaOp(IRDLOperation):
    """Each position holds its index along one axis: `tensor_ir.iota 0 : tensor<4xi64>`."""

    name = "tensor_ir.iota"

    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, axis: int, type: TensorType):
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[type])

    def verify_(self) -> None:
        result = tensor_type(self.result)
        shape_of(result)
        if not is_integer(result.element_type):
            raise VerifyException(f"counts in integers, not {result.element_type}")
        if not 0 <= self.axis.value.data < result.get_num_dims():
            raise VerifyException(f"axis {self.axis.value.data} is not an axis of {result}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IotaOp:
        axis = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[parse_tensor_type(parser)],
            attributes=attributes,
        )


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
class GatherOp(IRDLOperation):
    """Pick slices along one axis: axis `a` of the source is replaced by the axes of the indices.

    Indices count from 0; one outside the axis stops the program with an error that names the op.
    ```
    %rows = tensor_ir.gather %table[%ids] along 0
              : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
    ```
    """

    name = "tensor_ir.gather"

    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)

    # Not Pure: removing an unused gather would remove its bounds error.
    assembly_format = (
        "$source `` `[` $indices `]` `along` $axis attr-dict `:`"
        " `(` type($source) `,` type($indices) `)` `->` type($result)"
    )

    def __init__(self, source: SSAValue, indices: SSAValue, axis: int):
        shape = self.result_shape(tensor_type(source), tensor_type(indices), axis)
        super().__init__(
            operands=[source, indices],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[tensor_of(tensor_type(source).element_type, shape)],
        )

    @staticmethod
    def result_shape(source: TensorType, indices: TensorType, axis: int) -> tuple[Extent, ...]:
        """Extents of the result: the indices' axes in place of `axis`."""
        shape = shape_of(source)
        return (*shape[:axis], *shape_of(indices), *shape[axis + 1 :])

    def verify_(self) -> None:
        source, indices = tensor_type(self.source), tensor_type(self.indices)
        verify_element(source.element_type)
        if not is_integer(indices.element_type):
            raise VerifyException(f"indices must be integers, got {indices.element_type}")
        axis = self.axis.value.data
        if not 0 <= axis < source.get_num_dims():
            raise VerifyException(f"axis {axis} is not an axis of {source}")
        expected = tensor_of(source.element_type, self.result_shape(source, indices, axis))
        if self.result.type != expected:
            raise VerifyException(f"expected result {expected}, got {self.result.type}")


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Copy a tensor and then change, in row-major order of the updates, one element for each of them.

    Update `[p, i, q]` changes element `[p, indices[p, i, q], q]`, if axis 1 is the one scattered along.
    An axis of the indices that has extent 1 holds for the updates' whole axis. Indices count from 0; one
    outside the axis stops the program with an error.
    ```
    %y = tensor_ir.scatter add %x[%i] along 0 from %u
           : (tensor<5x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
    ```
    """

    name = "tensor_ir.scatter"

    update = prop_def(UpdateAttr)
    input = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)

    # Not Pure: removing an unused scatter would remove its bounds error.
    assembly_format = (
        "$update $input `` `[` $indices `]` `along` $axis `from` $updates attr-dict `:`"
        " `(` type($input) `,` type($indices) `,` type($updates) `)` `->` type($result)"
    )

    def __init__(
        self, update: Update, input: SSAValue, indices: SSAValue, updates: SSAValue, axis: int
    ):
        super().__init__(
            operands=[input, indices, updates],
            properties={"update": UpdateAttr(update), "axis": IntegerAttr(axis, i64)},
            result_types=[input.type],
        )

    def verify_(self) -> None:
        input, indices, updates = (tensor_type(v) for v in self.operands)
        verify_element(input.element_type)
        if (combiner := self.update.data.combiner) is not None:
            verify_combiner(combiner, input.element_type)
        if not is_integer(indices.element_type):
            raise VerifyException(f"indices must be integers, got {indices.element_type}")
        axis, rank = self.axis.value.data, input.get_num_dims()
        if not 0 <= axis < rank:
            raise VerifyException(f"axis {axis} is not an axis of {input}")
        if updates.get_num_dims() != rank or indices.get_num_dims() != rank:
            raise VerifyException(f"indices and updates must have {rank} axes, as {input} has")
        count = shape_of(updates)[axis]
        shape = tuple(count if i == axis else n for i, n in enumerate(shape_of(input)))
        expected = tensor_of(input.element_type, shape)
        if updates != expected:
            raise VerifyException(f"expected updates {expected}, got {updates}")
        for i, (n, m) in enumerate(zip(shape_of(indices), shape, strict=True)):
            if n != m and (n != 1 or i == axis):
                raise VerifyException(f"indices {indices} do not fit updates {updates}")
        if self.result.type != input:
            raise VerifyException(f"expected result {input}, got {self.result.type}")


@irdl_op_definition
class SortOp(IRDLOperation):
    """The first values along an axis in ascending or descending order, and the positions they come from.

    Equal values keep their order, as do -0.0 and 0.0; NaN is larger than all numbers.
    ```
    %v, %i = tensor_ir.sort %x along 1 : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi64>)
    %w, %j = tensor_ir.sort %x along 0 descending
               : tensor<4x8xf32> -> (tensor<2x8xf32>, tensor<2x8xi64>)
    ```
    """

    name = "tensor_ir.sort"

    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i64))
    descending = opt_prop_def(UnitAttr)
    values = result_def(TensorType)
    positions = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$input `along` $axis (`descending` $descending^)? attr-dict `:`"
        " type($input) `->` `(` type($values) `,` type($positions) `)`"
    )

    def __init__(self, input: SSAValue, axis: int, count: Extent, *, descending: bool = False):
        source = tensor_type(input)
        shape = [count if i == axis else n for i, n in enumerate(shape_of(source))]
        super().__init__(
            operands=[input],
            properties={
                "axis": IntegerAttr(axis, i64),
                "descending": UnitAttr() if descending else None,
            },
            result_types=[tensor_of(source.element_type, shape), tensor_of(i64, shape)],
        )

    def verify_(self) -> None:
        source, values = tensor_type(self.input), tensor_type(self.values)
        infer_result(Function.LT, [source.element_type] * 2)
        axis = self.axis.value.data
        if not 0 <= axis < source.get_num_dims():
            raise VerifyException(f"axis {axis} is not an axis of {source}")
        shape = list(shape_of(source))
        if values.get_num_dims() == len(shape):
            count = shape_of(values)[axis]
            with allowing(allowed_at(self)):
                fits = is_at_most(count, shape[axis])
            if not fits:
                raise VerifyException(f"gives {count} of {shape[axis]} values")
            shape[axis] = count
        expected = tensor_of(source.element_type, shape), tensor_of(i64, shape)
        if (self.values.type, self.positions.type) != expected:
            listed = " and ".join(map(str, expected))
            raise VerifyException(f"expected {listed}, got {values} and {self.positions.type}")


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
        CallOp,
    ],
    [FunctionAttr, CombinerAttr, UpdateAttr, OperandAttr],
)
