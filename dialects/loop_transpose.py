"""`loop.transpose`: squares of an array, rows for columns, as a CPU turns them in vector registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
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
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, index_properties, verify_access
from .sizes import static_shape

SQUARE = 16
"""Rows and columns: what one vector of 4-byte elements holds, a line of the cache."""


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Copy squares of an array, transposed: `%t[a, b]` is `%x[%j + b, %i + a]`.

    The first begins at the index given; their rows count along the dimension `along`, their columns along the
    last. All of them must be inside of the array.
    ```
    %t = loop.transpose %x[%j, %i] along 0 : memref<64x48xf32> -> memref<16x32xf32>
    ```
    """

    name = "loop.transpose"

    E: ClassVar = VarConstraint("E", AnyAttr())

    source = operand_def(MemRefType.constr(E))
    origin = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    along = prop_def(IntegerAttr.constr(i64))
    result = result_def(MemRefType.constr(E))

    traits = traits_def(MemoryReadEffect(), MemoryAllocEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$source `` custom<AffineIndex>($origin, $map) `along` $along attr-dict "
        "`:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        along: int,
        shape: tuple[int, int],
    ):
        assert isinstance(source.type, MemRefType)
        map_attr, operands = index_properties((exprs, operands))
        super().__init__(
            operands=[source, operands],
            properties={
                "map": map_attr,
                "along": IntegerAttr(along, i64),
            },
            result_types=[MemRefType(source.type.element_type, shape)],
        )

    @property
    def dimension(self) -> int:
        """The dimension of the source that the square's rows count along."""
        return self.along.value.data

    def reach(self, axis: int) -> int:
        """How far beyond the index given it reads along an axis of the source."""
        assert isinstance(self.source.type, MemRefType)
        columns, rows = self.shape[0], self.shape[1]
        if axis == self.dimension:
            return rows - 1
        return columns - 1 if axis == self.source.type.get_num_dims() - 1 else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        assert isinstance(self.result.type, MemRefType)
        rows, columns = static_shape(self.result.type)
        return rows, columns

    def verify_(self) -> None:
        verify_access(self.map.data, self.origin, self.source.type)
        assert isinstance(self.source.type, MemRefType) and isinstance(self.result.type, MemRefType)
        shape = static_shape(self.result.type)
        if len(shape) != 2 or not all(shape) or any(extent % SQUARE for extent in shape):
            raise VerifyException(f"the result is made of squares of {SQUARE}, not {shape}")
        last = self.source.type.get_num_dims() - 1
        if not 0 <= self.dimension < last:
            raise VerifyException(
                f"rows count along a dimension before the last, not {self.dimension} of {last + 1}"
            )
