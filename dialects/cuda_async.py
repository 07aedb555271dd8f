"""Operations of `cuda` that copy while threads compute: inline PTX, each one instruction.

    cuda.cp_async %x[%i * 4] to %s[%t * 4] bytes 16 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
    cuda.cp_async_commit
    cuda.cp_async_wait 0

Every operation here says from which compute capability on there is its instruction (`SINCE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, i1, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .cuda_memory import SharedOp, offset_properties, pointer_type, verify_offset
from .cuda_values import PointerType
from .index import AffineIndex
from .kernel_async import COPY_BYTES, MAX_PENDING_GROUPS
from .scalars import storage_bytes


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """`cp.async` from global to shared memory; where the condition is false, zeros.

    ```
    cuda.cp_async %x[%i * 4] to %s[%t * 4] bytes 16 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
    cuda.cp_async %x[%i] to %s[%t] bytes 4 if %in : !cuda.ptr<f32, const> to !cuda.ptr<f32>
    ```
    """

    name = "cuda.cp_async"
    SINCE: ClassVar[int] = 80

    source = operand_def(PointerType)
    source_indices = var_operand_def(IndexType)
    source_map = prop_def(AffineMapAttr)
    destination = operand_def(PointerType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    bytes = prop_def(IntegerAttr.constr(i64))
    condition = opt_operand_def(i1)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$source `` custom<AffineIndex>($source_indices, $source_map) `to`"
        " $destination `` custom<AffineIndex>($indices, $map) `bytes` $bytes (`if` $condition^)?"
        " attr-dict `:` type($source) `to` type($destination)"
    )

    def __init__(
        self,
        source: tuple[SSAValue, AffineExpr, Sequence[SSAValue]],
        destination: tuple[SSAValue, AffineExpr, Sequence[SSAValue]],
        bytes: int,
        condition: SSAValue | None = None,
    ):
        source_map, source_operands = offset_properties(*source[1:])
        map_attr, operands = offset_properties(*destination[1:])
        super().__init__(
            operands=[source[0], source_operands, destination[0], operands, condition],
            properties={
                "source_map": source_map,
                "map": map_attr,
                "bytes": IntegerAttr(bytes, i64),
            },
        )

    @property
    def elements(self) -> int:
        """Elements that one thread copies."""
        return self.bytes.value.data // storage_bytes(pointer_type(self.source).element)

    def verify_(self) -> None:
        verify_offset(self.source_map.data, self.source_indices)
        verify_offset(self.map.data, self.indices)
        verify_destination(self.destination)
        if self.bytes.value.data not in COPY_BYTES:
            raise VerifyException(f"cp.async copies 4, 8 or 16 bytes, not {self.bytes.value.data}")
        source, destination = pointer_type(self.source), pointer_type(self.destination)
        if source.element != destination.element:
            raise VerifyException(f"copies {source.element} to {destination.element}")
        shared = self.destination.owner
        assert isinstance(shared, SharedOp)
        if shared.alignment % self.bytes.value.data:
            raise VerifyException(
                f"cp.async of {self.bytes.value.data} bytes to shared memory aligned to "
                f"{shared.alignment}"
            )


def verify_destination(value: SSAValue) -> None:
    """Raise unless a pointer is shared memory."""
    if not isinstance(value.owner, SharedOp):
        raise VerifyException("the destination must be the result of a cuda.shared")


@irdl_op_definition
class CpAsyncCommitOp(IRDLOperation):
    """`cp.async.commit_group`: `cuda.cp_async_commit`."""

    name = "cuda.cp_async_commit"
    SINCE: ClassVar[int] = 80

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class CpAsyncWaitOp(IRDLOperation):
    """`cp.async.wait_group 1`: `cuda.cp_async_wait 1`."""

    name = "cuda.cp_async_wait"
    SINCE: ClassVar[int] = 80

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
