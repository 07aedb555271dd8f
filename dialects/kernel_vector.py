"""Operations of `kernel` that access neighbours at once.

    %a, %b = kernel.vector_load %x[%t * 2] : memref<64xf32> -> f32, f32
    kernel.vector_store %b, %a to %y[%t * 2] : f32, f32 to memref<64xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .alignment import verify_aligned
from .index import AffineIndex, Index, Indexed, index_properties, verify_access
from .inside import has_flat_addresses
from .kernel_shared import verify_shared_alignment
from .scalars import storage_bytes
from .tile import SHARED

WIDTHS = (2, 4, 8)
"""Elements that one thread accesses at once, of types that are small enough."""

MAX_VECTOR_BYTES = 16
"""Bytes that one thread accesses at once (CUDA C++ Programming Guide, "Device Memory Accesses")."""


def verify_vector(types: Sequence[Attribute], element: Attribute) -> int:
    """Raise unless values of `types` are a vector of `element`; gives its bytes."""
    if len(types) not in WIDTHS:
        raise VerifyException(f"a vector has 2, 4 or 8 elements, not {len(types)}")
    if any(type != element for type in types):
        raise VerifyException(f"the elements are {element}, got {', '.join(map(str, types))}")
    size = len(types) * storage_bytes(element)
    if size > MAX_VECTOR_BYTES:
        raise VerifyException(f"a vector has at most {MAX_VECTOR_BYTES} bytes, not {size}")
    return size


def _verify(op: VectorLoadOp | VectorStoreOp) -> None:
    memref = op.memref.type
    if not isinstance(memref, MemRefType):
        raise VerifyException(f"accesses a memref, got {memref}")
    verify_access(op.map.data, op.indices, memref)
    size = verify_vector(op.values.types, memref.element_type)
    if not has_flat_addresses(op):
        verify_aligned(op.map.data.results, op.indices, memref, len(op.values))
    if memref.memory_space == SHARED:
        verify_shared_alignment(op.memref, size)


@irdl_op_definition
class VectorLoadOp(IRDLOperation):
    """Read neighbours: `%a, %b = kernel.vector_load %x[%t * 2] : memref<64xf32> -> f32, f32`.

    2, 4 or 8 elements, 16 bytes at most; the index is a multiple of their number.
    """

    name = "kernel.vector_load"
    INDEXED: ClassVar = (Indexed("indices", "map", "memref"),)

    memref = operand_def()
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    values = var_result_def()

    traits = traits_def(MemoryReadEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$memref `` custom<AffineIndex>($indices, $map) attr-dict"
        " `:` type($memref) `->` type($values)"
    )

    def __init__(self, memref: SSAValue, index: Index, types: Sequence[Attribute]):
        map_attr, operands = index_properties(index)
        super().__init__(
            operands=[memref, operands], properties={"map": map_attr}, result_types=[types]
        )

    def verify_(self) -> None:
        _verify(self)


@irdl_op_definition
class VectorStoreOp(IRDLOperation):
    """Write neighbours: `kernel.vector_store %a, %b to %y[%t * 2] : f32, f32 to memref<64xf32>`."""

    name = "kernel.vector_store"
    INDEXED: ClassVar = (Indexed("indices", "map", "memref"),)

    values = var_operand_def()
    memref = operand_def()
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$values `to` $memref `` custom<AffineIndex>($indices, $map) attr-dict"
        " `:` type($values) `to` type($memref)"
    )

    def __init__(self, values: Sequence[SSAValue], memref: SSAValue, index: Index):
        map_attr, operands = index_properties(index)
        super().__init__(operands=[values, memref, operands], properties={"map": map_attr})

    def verify_(self) -> None:
        _verify(self)
