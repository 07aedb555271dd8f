"""The operation of `kernel` that is memory which the threads of a block share.

%s = kernel.shared align 16 : memref<256xf32, "shared">
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, result_def, traits_def
from xdsl.traits import MemoryAllocEffect
from xdsl.utils.exceptions import VerifyException

from .scalars import storage_bytes
from .sizes import static_shape
from .tile import SHARED

MAX_STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory a kernel may declare statically (CUDA C++ Programming Guide, "Shared Memory")."""

MAX_SHARED_BYTES = 227 * 1024
"""Shared memory a block may have on the GPU that has most; above what is static, its launch asks for it."""

MAX_SHARED_ALIGNMENT = 1024
"""The most that any instruction asks of an address: the pattern of the widest swizzle repeats."""


@irdl_op_definition
class SharedOp(IRDLOperation):
    """Memory that the threads of a block share, at a multiple of `align` bytes or of its element's.

    ```
    %s = kernel.shared : memref<256xf32, "shared">
    %t = kernel.shared align 16 : memref<256xf32, "shared">
    ```
    In a `cuda.func`, `kernel.shared at 512 : memref<256xf32, "shared">` is a part of what its launch asks
    for.
    """

    name = "kernel.shared"

    align = opt_prop_def(IntegerAttr.constr(i64))
    offset = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`align` $align^)? (`at` $offset^)? attr-dict `:` type($result)"

    def __init__(self, type: MemRefType, align: int | None = None, offset: int | None = None):
        super().__init__(
            properties={
                "align": None if align is None else IntegerAttr(align, i64),
                "offset": None if offset is None else IntegerAttr(offset, i64),
            },
            result_types=[type],
        )

    @property
    def alignment(self) -> int:
        """Its address is a multiple of so many bytes."""
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        return storage_bytes(shared.element_type) if self.align is None else self.align.value.data

    @property
    def size(self) -> int:
        """Its bytes."""
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        return storage_bytes(shared.element_type) * prod(static_shape(shared))

    @property
    def place(self) -> tuple[int, int] | None:
        """Where it begins and ends in what the launch asks for, in bytes; None if it is declared."""
        if self.offset is None:
            return None
        return self.offset.value.data, self.offset.value.data + self.size

    def verify_(self) -> None:
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        if shared.memory_space != SHARED:
            raise VerifyException('must be in memory space "shared"')
        if not 0 < self.size <= MAX_SHARED_BYTES:
            raise VerifyException(
                f"{self.size} bytes of shared memory; a block may have 1 to {MAX_SHARED_BYTES}"
            )
        verify_shared_align(self.alignment, storage_bytes(shared.element_type))
        if self.place is not None and (self.place[0] < 0 or self.place[0] % self.alignment):
            raise VerifyException(
                f"begins at {self.place[0]}, which is no multiple of its alignment {self.alignment}"
            )


def verify_shared_align(align: int, element: int) -> None:
    """Raise unless shared memory of elements of so many bytes can be aligned to `align`."""
    power_of_two = align > 0 and align & (align - 1) == 0
    if not power_of_two or not element <= align <= MAX_SHARED_ALIGNMENT:
        raise VerifyException(
            f"align must be a power of two from {element} to {MAX_SHARED_ALIGNMENT}, got {align}"
        )


def verify_shared_alignment(value: SSAValue, bytes: int) -> None:
    """Raise unless `value` is shared memory that begins at a multiple of `bytes`."""
    if not isinstance(value.owner, SharedOp):
        raise VerifyException("shared memory must be the result of a kernel.shared")
    if value.owner.alignment % bytes:
        raise VerifyException(
            f"needs shared memory aligned to {bytes} bytes, it is aligned to "
            f"{value.owner.alignment}; declare it with kernel.shared align {bytes}"
        )
