"""Tensor IR that data decides: which elements are read, which change, which come first.

%rows = tensor_ir.gather %table[%ids] along 0 : (tensor<10x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .allowed_sizes import allowed_at, allowing
from .scalars import (
    Function,
    Update,
    UpdateAttr,
    infer_result,
    is_integer,
    verify_combiner,
    verify_element,
)
from .sizes import Extent, is_at_most, shape_of, tensor_of
from .syntax import tensor_type


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
class NthElementOp(IRDLOperation):
    """The positions along an axis of what would stand at places of its ascending order.

    The order is that of `tensor_ir.sort`. Places count from 0; one outside the axis is the nearest inside.
    ```
    %i = tensor_ir.nth_element %places of %x along 1
           : (tensor<4x1xi64>, tensor<4x8xf32>) -> tensor<4x1xi64>
    ```
    """

    name = "tensor_ir.nth_element"

    places = operand_def(TensorType)
    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i64))
    positions = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$places `of` $input `along` $axis attr-dict `:`"
        " `(` type($places) `,` type($input) `)` `->` type($positions)"
    )

    def __init__(self, places: SSAValue, input: SSAValue, axis: int):
        super().__init__(
            operands=[places, input],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[places.type],
        )

    def verify_(self) -> None:
        places, source = tensor_type(self.places), tensor_type(self.input)
        infer_result(Function.LT, [source.element_type] * 2)
        axis = self.axis.value.data
        if not 0 <= axis < source.get_num_dims():
            raise VerifyException(f"axis {axis} is not an axis of {source}")
        shape = list(shape_of(source))
        if shape[axis] == 0:
            raise VerifyException(f"axis {axis} of {source} has no elements")
        if places.get_num_dims() == len(shape):
            shape[axis] = shape_of(places)[axis]
        for type, what in ((places, "places"), (self.positions.type, "result")):
            if type != (expected := tensor_of(i64, shape)):
                raise VerifyException(f"expected {what} {expected}, got {type}")
