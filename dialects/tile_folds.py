"""Folds of `tile` across the threads of a launch: `tile.combine` and `tile.prefix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasAncestor, Pure
from xdsl.utils.exceptions import VerifyException

from .scalars import Combiner, CombinerAttr, verify_combiner
from .tile_axes import Level
from .tile_launch import LaunchOp, enclosing_launch


@irdl_op_definition
class CombineOp(IRDLOperation):
    """Fold one value per thread across thread axes; every thread gets the result.

    ```
    %sum = tile.combine add %p over(%lane) : f32
    ```
    """

    name = "tile.combine"

    T: ClassVar = VarConstraint("T", AnyAttr())

    combiner = prop_def(CombinerAttr)
    value = operand_def(T)
    axes = var_operand_def(IndexType)
    result = result_def(T)

    traits = traits_def(HasAncestor(LaunchOp), Pure())
    assembly_format = "$combiner $value `over` `` `(` $axes `)` attr-dict `:` type($value)"

    def __init__(self, combiner: Combiner, value: SSAValue, axes: Sequence[SSAValue]):
        super().__init__(
            operands=[value, axes],
            properties={"combiner": CombinerAttr(combiner)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        verify_combiner(self.combiner.data, self.value.type)
        if not self.axes:
            raise VerifyException("needs at least one axis to combine over")
        launch = enclosing_launch(self)
        for value in self.axes:
            axis = launch.axis_of(value)
            if axis is None or axis.level.data is not Level.THREAD:
                raise VerifyException("combines over thread axes of the enclosing launch only")


@irdl_op_definition
class PrefixOp(IRDLOperation):
    """Fold the values of the threads before each one along a thread axis; the first gets the identity.

    ```
    %before = tile.prefix add %p over(%lane) : f32
    ```
    """

    name = "tile.prefix"

    T: ClassVar = VarConstraint("T", AnyAttr())

    combiner = prop_def(CombinerAttr)
    value = operand_def(T)
    axis = operand_def(IndexType)
    result = result_def(T)

    traits = traits_def(HasAncestor(LaunchOp), Pure())
    assembly_format = "$combiner $value `over` `` `(` $axis `)` attr-dict `:` type($value)"

    def __init__(self, combiner: Combiner, value: SSAValue, axis: SSAValue):
        super().__init__(
            operands=[value, axis],
            properties={"combiner": CombinerAttr(combiner)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        verify_combiner(self.combiner.data, self.value.type)
        axis = enclosing_launch(self).axis_of(self.axis)
        if axis is None or axis.level.data is not Level.THREAD:
            raise VerifyException("folds along a thread axis of the enclosing launch only")
