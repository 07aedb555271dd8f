"""Operations of `kernel` that copy while threads compute.

    kernel.async_copy %x[%row, %lane * 4] to %s[%lane * 4] vector 4
      : memref<32x256xf32> to memref<256xf32, "shared">
    kernel.async_commit
    kernel.async_wait 0
    kernel.barrier

Each thread copies a few neighbours from global to shared memory. What it copied since its last commit is a
group; `async_wait N` waits until at most the N newest groups of the thread are still on their way. The wait
makes the data visible to the thread itself, the barrier to the others. Until then neither the destination
may be touched nor the source overwritten.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, MemRefType, i1, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .alignment import verify_aligned
from .index import AffineIndex, Index, Indexed, index_properties, verify_access
from .inside import has_flat_addresses
from .kernel_shared import verify_shared_alignment
from .scalars import storage_bytes
from .tile import SHARED

COPY_BYTES = (4, 8, 16)
"""Bytes that one thread may copy asynchronously (PTX ISA, "cp.async")."""

MAX_PENDING_GROUPS = 7
"""Groups that may be on their way; deeper pipelines than any GPU's shared memory has use for."""


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """Start to copy neighbours from global to shared memory; where the condition is false, zeros.

    ```
    kernel.async_copy %x[%i, %t * 4] to %s[%t * 4] vector 4 : memref<8x64xf32> to memref<64xf32, "shared">
    kernel.async_copy %x[%i] to %s[%t] vector 1 if %in : memref<8xf32> to memref<64xf32, "shared">
    ```
    """

    name = "kernel.async_copy"
    INDEXED: ClassVar = (
        Indexed("source_indices", "source_map", "source"),
        Indexed("indices", "map", "destination"),
    )

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(MemRefType.constr(T))
    source_indices = var_operand_def(IndexType)
    source_map = prop_def(AffineMapAttr)
    destination = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    vector = prop_def(IntegerAttr.constr(i64))
    condition = opt_operand_def(i1)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$source `` custom<AffineIndex>($source_indices, $source_map) `to`"
        " $destination `` custom<AffineIndex>($indices, $map) `vector` $vector (`if` $condition^)?"
        " attr-dict `:` type($source) `to` type($destination)"
    )

    def __init__(
        self,
        source: SSAValue,
        source_index: Index,
        destination: SSAValue,
        index: Index,
        vector: int,
        condition: SSAValue | None = None,
    ):
        source_map, source_operands = index_properties(source_index)
        map_attr, operands = index_properties(index)
        super().__init__(
            operands=[source, source_operands, destination, operands, condition],
            properties={
                "source_map": source_map,
                "map": map_attr,
                "vector": IntegerAttr(vector, i64),
            },
        )

    @property
    def elements(self) -> int:
        """Elements that one thread copies."""
        return self.vector.value.data

    @property
    def bytes(self) -> int:
        """Bytes that one thread copies."""
        assert isinstance(self.source.type, MemRefType)
        return self.elements * storage_bytes(self.source.type.element_type)

    def verify_(self) -> None:
        source, destination = self.source.type, self.destination.type
        assert isinstance(source, MemRefType)
        assert isinstance(destination, MemRefType)
        verify_access(self.source_map.data, self.source_indices, source)
        verify_access(self.map.data, self.indices, destination)
        if source.memory_space == SHARED or destination.memory_space != SHARED:
            raise VerifyException(
                f"copies from global to shared memory, not from {source} to {destination}"
            )
        vector, size = self.elements, self.bytes
        if size not in COPY_BYTES:
            raise VerifyException(f"a thread copies 4, 8 or 16 bytes, not {size}")
        if not has_flat_addresses(self):
            verify_aligned(self.source_map.data.results, self.source_indices, source, vector)
            verify_aligned(self.map.data.results, self.indices, destination, vector)
        verify_shared_alignment(self.destination, size)


@irdl_op_definition
class AsyncCommitOp(IRDLOperation):
    """Make a group of what this thread copies since its last commit: `kernel.async_commit`."""

    name = "kernel.async_commit"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Wait until at most so many of this thread's groups are on their way: `kernel.async_wait 1`."""

    name = "kernel.async_wait"

    pending = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$pending attr-dict"

    def __init__(self, pending: int):
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= MAX_PENDING_GROUPS:
            raise VerifyException(
                f"leaves 0 to {MAX_PENDING_GROUPS} groups pending, not {self.pending.value.data}"
            )
