"""Operations of `cuda` that touch memory or other threads.

%v = cuda.load %x[%row * 2048 + %k] : !cuda.ptr<f32, const>
%buf = cuda.shared 256 : !cuda.ptr<f32>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import (
    Attribute,
    SSAValue,
)
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
)
from xdsl.utils.exceptions import VerifyException

from .cuda_values import (
    PointerType,
)
from .index import AffineIndex, affine_map, normalize_operands, verify_operand_count
from .kernel_barriers import WARP, NamedBarrierBase
from .kernel_device import verify_shared_align
from .scalars import storage_bytes


def pointer_type(value: SSAValue) -> PointerType:
    """The type of a value that is known to be a pointer."""
    assert isinstance(value.type, PointerType)
    return value.type


def offset_properties(
    offset: AffineExpr, operands: Sequence[SSAValue]
) -> tuple[AffineMapAttr, list[SSAValue]]:
    """A flat offset as an operation holds it."""
    exprs, operands = normalize_operands([offset], operands)
    return AffineMapAttr(affine_map(len(operands), exprs)), operands


def verify_offset(index_map: AffineMap, operands: Sequence[SSAValue]) -> None:
    """Raise unless a map is one flat offset over `operands`."""
    verify_operand_count(index_map, operands)
    if len(index_map.results) != 1:
        raise VerifyException(f"an address is one flat offset, got {len(index_map.results)}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """`const float v = x[i * 8 + k];`: `%v = cuda.load %x[%i * 8 + %k] : !cuda.ptr<f32> -> f32`."""

    name = "cuda.load"

    pointer = operand_def(PointerType)
    offset = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def()

    traits = traits_def(MemoryReadEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$pointer `` custom<AffineIndex>($offset, $map) attr-dict"
        " `:` type($pointer) `->` type($result)"
    )

    def __init__(self, pointer: SSAValue, offset: AffineExpr, operands: Sequence[SSAValue]):
        map_attr, operands = offset_properties(offset, operands)
        super().__init__(
            operands=[pointer, operands],
            properties={"map": map_attr},
            result_types=[pointer_type(pointer).element],
        )

    def verify_(self) -> None:
        verify_offset(self.map.data, self.offset)
        if self.result.type != pointer_type(self.pointer).element:
            raise VerifyException(
                f"loads {pointer_type(self.pointer).element}, not {self.result.type}"
            )


@irdl_op_definition
class StoreOp(IRDLOperation):
    """`y[i] = v;`: `cuda.store %v, %y[%i] : f32, !cuda.ptr<f32>`."""

    name = "cuda.store"

    value = operand_def()
    pointer = operand_def(PointerType)
    offset = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)

    traits = traits_def(MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$value `,` $pointer `` custom<AffineIndex>($offset, $map) attr-dict"
        " `:` type($value) `,` type($pointer)"
    )

    def __init__(
        self,
        value: SSAValue,
        pointer: SSAValue,
        offset: AffineExpr,
        operands: Sequence[SSAValue],
    ):
        map_attr, operands = offset_properties(offset, operands)
        super().__init__(operands=[value, pointer, operands], properties={"map": map_attr})

    def verify_(self) -> None:
        verify_offset(self.map.data, self.offset)
        if pointer_type(self.pointer).is_read_only:
            raise VerifyException("stores through a pointer to const")
        if self.value.type != pointer_type(self.pointer).element:
            raise VerifyException(f"stores {self.value.type} to {self.pointer.type}")


@irdl_op_definition
class SharedOp(IRDLOperation):
    """`__shared__ __align__(16) float s[256];`: `%s = cuda.shared 256 align 16 : !cuda.ptr<f32>`.

    `float* const s = (float*)(k_shared + 512);`: `%s = cuda.shared 256 at 512 : !cuda.ptr<f32>` is a part of
    the memory that a launch of the kernel `k` asks for.
    """

    name = "cuda.shared"

    extent = prop_def(IntegerAttr.constr(i64))
    align = opt_prop_def(IntegerAttr.constr(i64))
    offset = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(PointerType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "$extent (`align` $align^)? (`at` $offset^)? attr-dict `:` type($result)"

    def __init__(
        self, extent: int, element: Attribute, align: int | None = None, offset: int | None = None
    ):
        super().__init__(
            properties={
                "extent": IntegerAttr(extent, i64),
                "align": None if align is None else IntegerAttr(align, i64),
                "offset": None if offset is None else IntegerAttr(offset, i64),
            },
            result_types=[PointerType(element)],
        )

    @property
    def alignment(self) -> int:
        """Its address is a multiple of so many bytes."""
        element = storage_bytes(pointer_type(self.result).element)
        return element if self.align is None else self.align.value.data

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.extent.value.data * storage_bytes(pointer_type(self.result).element)

    @property
    def place(self) -> tuple[int, int] | None:
        """Where it begins and ends in what the launch asks for, in bytes; None if it is declared."""
        if self.offset is None:
            return None
        return self.offset.value.data, self.offset.value.data + self.size

    def verify_(self) -> None:
        if self.extent.value.data < 1:
            raise VerifyException(f"extent must be positive, got {self.extent.value.data}")
        if pointer_type(self.result).is_read_only:
            raise VerifyException("shared memory is not const")
        verify_shared_align(self.alignment, storage_bytes(pointer_type(self.result).element))
        if self.place is not None and (self.place[0] < 0 or self.place[0] % self.alignment):
            raise VerifyException(
                f"begins at {self.place[0]}, which is no multiple of its alignment {self.alignment}"
            )


@irdl_op_definition
class RegistersOp(IRDLOperation):
    """`float r[8];`, subscripted by counters of unrolled loops: `%r = cuda.registers 8 : !cuda.ptr<f32>`."""

    name = "cuda.registers"

    extent = prop_def(IntegerAttr.constr(i64))
    result = result_def(PointerType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "$extent attr-dict `:` type($result)"

    def __init__(self, extent: int, element: Attribute):
        super().__init__(
            properties={"extent": IntegerAttr(extent, i64)}, result_types=[PointerType(element)]
        )

    def verify_(self) -> None:
        if self.extent.value.data < 1:
            raise VerifyException(f"extent must be positive, got {self.extent.value.data}")
        if pointer_type(self.result).is_read_only:
            raise VerifyException("an array of registers is not const")


@irdl_op_definition
class SyncthreadsOp(IRDLOperation):
    """`__syncthreads();`: `cuda.syncthreads`."""

    name = "cuda.syncthreads"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class BarSyncOp(NamedBarrierBase):
    """`bar.sync 1, 64;` of PTX, a barrier for some threads: `cuda.bar_sync 1 threads 64`."""

    name = "cuda.bar_sync"

    assembly_format = NamedBarrierBase.FORMAT


@irdl_op_definition
class ShuffleXorOp(IRDLOperation):
    """`__shfl_xor_sync(0xffffffffu, v, 16)`: `%s = cuda.shuffle_xor %v, 16 : f32`."""

    name = "cuda.shuffle_xor"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    lane_mask = prop_def(IntegerAttr.constr(i64))
    result = result_def(T)

    assembly_format = "$value `,` $lane_mask attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, lane_mask: int):
        super().__init__(
            operands=[value],
            properties={"lane_mask": IntegerAttr(lane_mask, i64)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        if self.value.type not in (f32, f64, i32, i64):
            raise VerifyException(f"C++ shuffles 32- and 64-bit values, not {self.value.type}")
        if not 0 < self.lane_mask.value.data < WARP:
            raise VerifyException(f"lane mask must be between 1 and {WARP - 1}")


@irdl_op_definition
class VariableOp(IRDLOperation):
    """A mutable local, `float acc = 0.0f;` or `float v;`: `%acc = cuda.variable %zero : f32`."""

    name = "cuda.variable"

    T: ClassVar = VarConstraint("T", AnyAttr())

    initial = opt_operand_def(T)
    result = result_def(T)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "($initial^)? attr-dict `:` type($result)"

    def __init__(self, type: Attribute, initial: SSAValue | None = None):
        super().__init__(operands=[initial], result_types=[type])


@irdl_op_definition
class AssignOp(IRDLOperation):
    """`acc = v;`: `cuda.assign %acc, %v : f32`."""

    name = "cuda.assign"

    T: ClassVar = VarConstraint("T", AnyAttr())

    variable = operand_def(T)
    value = operand_def(T)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$variable `,` $value attr-dict `:` type($value)"

    def __init__(self, variable: SSAValue, value: SSAValue):
        super().__init__(operands=[variable, value])

    def verify_(self) -> None:
        if not isinstance(self.variable.owner, VariableOp):
            raise VerifyException("assigns to a cuda.variable only")
