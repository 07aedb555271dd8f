"""Operations of `cuda` that access neighbours at once, as a vector of C++, or one element with others.

%a, %b = cuda.vector_load %x[%t * 2] : !cuda.ptr<f32, const> -> f32, f32
cuda.vector_store %b, %a to %y[%t * 2] : f32, f32 to !cuda.ptr<f32>
cuda.atomic_add %a, %y[%t] : f32, !cuda.ptr<f32>
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .cuda_memory import SharedOp, verify_offset
from .cuda_values import PointerType
from .kernel_atomic import AtomicAddBase
from .kernel_vector import VectorLoadBase, VectorStoreBase, verify_vector


def _verify(op: VectorLoadOp | VectorStoreOp) -> PointerType:
    pointer, owner = op.memref.type, op.memref.owner
    if not isinstance(pointer, PointerType):
        raise VerifyException(f"accesses memory by a pointer, got {pointer}")
    verify_offset(op.map.data, op.indices)
    size = verify_vector(op.values.types, pointer.element)
    if isinstance(owner, SharedOp) and owner.alignment % size:
        raise VerifyException(f"{size} bytes of shared memory aligned to {owner.alignment}")
    return pointer


@irdl_op_definition
class VectorLoadOp(VectorLoadBase):
    """`const float2 v = *reinterpret_cast<const float2*>(&x[t * 2]);`: its values are `v.x` and `v.y`.

    Elements that C++ has no vector of as many of are taken out of words, each as a value of its own.
    """

    name = "cuda.vector_load"

    assembly_format = VectorLoadBase.FORMAT

    def verify_(self) -> None:
        _verify(self)


@irdl_op_definition
class VectorStoreOp(VectorStoreBase):
    """`*reinterpret_cast<float2*>(&y[t * 2]) = float2{a, b};`."""

    name = "cuda.vector_store"

    assembly_format = VectorStoreBase.FORMAT

    def verify_(self) -> None:
        if _verify(self).is_read_only:
            raise VerifyException("stores through a pointer to const")


@irdl_op_definition
class AtomicAddOp(AtomicAddBase):
    """`atomicAdd(&y[t], v);`: `cuda.atomic_add %v, %y[%t] : f32, !cuda.ptr<f32>`."""

    name = "cuda.atomic_add"

    assembly_format = AtomicAddBase.FORMAT

    def verify_(self) -> None:
        pointer = self.memref.type
        if not isinstance(pointer, PointerType) or pointer.is_read_only:
            raise VerifyException(f"adds through a pointer that is not to const, got {pointer}")
        verify_offset(self.map.data, self.indices)
        self.verify_element(pointer.element)
