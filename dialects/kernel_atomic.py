"""The operation of `kernel` by which threads change one element together.

    kernel.atomic_add %v, %y[%i] : f32, memref<32xf32>
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, MemRefType, f32, f64, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, Index, Indexed, index_properties, verify_access

ATOMIC = (f32, f64, i32, i64)
"""Types that every GPU adds atomically (CUDA C++ Programming Guide, "atomicAdd()")."""


@irdl_op_definition
class AtomicAddOp(IRDLOperation):
    """Add to an element that others may add to: `kernel.atomic_add %v, %y[%i] : f32, memref<32xf32>`.

    Floats are added in an order that no run repeats.
    """

    name = "kernel.atomic_add"
    INDEXED: ClassVar = (Indexed("indices", "map", "memref"),)

    value = operand_def()
    memref = operand_def()
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$value `,` $memref `` custom<AffineIndex>($indices, $map) attr-dict"
        " `:` type($value) `,` type($memref)"
    )

    def __init__(self, value: SSAValue, memref: SSAValue, index: Index):
        map_attr, operands = index_properties(index)
        super().__init__(operands=[value, memref, operands], properties={"map": map_attr})

    def verify_(self) -> None:
        memref = self.memref.type
        if not isinstance(memref, MemRefType):
            raise VerifyException(f"accesses a memref, got {memref}")
        verify_access(self.map.data, self.indices, memref)
        if self.value.type not in ATOMIC:
            raise VerifyException(f"adds f32, f64, i32 or i64 atomically, not {self.value.type}")
        if self.value.type != memref.element_type:
            raise VerifyException(f"adds {self.value.type} to elements of {memref.element_type}")
