"""Vectors and scratch buffers as `llvm` operations: what the register tiles of contractions are made of.

    %v = vector.load %b[%i] : memref<4096xf32>, vector<16xf32>      a `getelementptr` and a `load`
    %w = vector.broadcast %x : f32 to vector<16xf32>                an `insertelement` and a `shufflevector`
    %s = vector.fma %v, %w, %t : vector<16xf32>                     `llvm.intr.fma`
    %b = memref.alloc() {alignment = 64} : memref<4096xf32>         a call of `aligned_alloc`

Buffers have one axis, and vectors begin at multiples of their length, so that accesses are aligned, but for
stores that say they are `anywhere`. Those of more axes, which squares have, need to know their shape:
`convert_to_llvm.py` loads from them. Masked loads, too, begin at any element:

    %m = vector.create_mask %n : vector<16xi1>                      `llvm.get.active.lane.mask`
    %v = vector.maskedload %x[%i], %m, %o : ...                     `llvm.masked.load`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import llvm, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, VectorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.scalars import storage_bytes
from ...dialects.sizes import static_shape
from .accesses import POINTER, constant, element_address, insert, load, memory_type, store
from .scalars import intrinsic, type_suffix

_NOT_FAST: Mapping[str, Attribute] = {"fastmathFlags": llvm.FastMathAttr(None)}

ANYWHERE = "anywhere"
"""The attribute of a store that may begin at any element of a buffer."""

ALLOCATE, RELEASE = "aligned_alloc", "free"
"""Functions of the C library."""


def _element_of(value: SSAValue) -> Attribute:
    assert isinstance(value.type, VectorType)
    return value.type.element_type  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def vector_type(type: Attribute) -> Attribute:
    """The type of a vector in LLVM: bf16 are their bits."""
    assert isinstance(type, VectorType)
    return _in_memory(cast(VectorType, type))


@lru_cache(4096)
def _in_memory(type: VectorType) -> VectorType:
    return VectorType(memory_type(type.element_type), [axis.data for axis in type.shape])


def _load(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.LoadOp)
    element = _element_of(op.result)
    address = element_address(builder, op.base, op.indices[0], element)
    return [load(builder, address, vector_type(op.result.type))]


def load_masked(
    builder: Builder, op: vector.MaskedLoadOp, address: SSAValue, alignment: int
) -> SSAValue:
    """Load those elements from an address on that a mask says; the others need not exist."""
    kind = vector_type(op.result.type)
    arguments = [address, constant(builder, alignment, i32), op.mask, op.pass_thru]
    return intrinsic(builder, f"llvm.masked.load.{type_suffix(kind)}.p0", arguments, kind)


def _create_mask(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.CreateMaskOp)
    kind = op.mask_vector.type
    assert isinstance(kind, VectorType)
    (count,), (lanes,) = op.mask_dim_sizes, kind.shape
    for name, limit in (("smax", 0), ("smin", lanes.data)):
        count = intrinsic(builder, f"llvm.{name}.i64", [count, constant(builder, limit)], i64)
    arguments = [constant(builder, 0), count]
    name = f"llvm.get.active.lane.mask.{type_suffix(kind)}.i64"
    return [intrinsic(builder, name, arguments, kind)]


def _store(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.StoreOp)
    element = _element_of(op.vector)
    address = element_address(builder, op.base, op.indices[0], element)
    alignment = storage_bytes(element) if ANYWHERE in op.attributes else None
    store(builder, op.vector, address, alignment)
    return []


def _broadcast(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.BroadcastOp)
    type = op.vector.type
    kind = vector_type(type)
    undefined = insert(builder, llvm.UndefOp, (), kind)
    first = constant(builder, 0, i32)
    one = insert(builder, llvm.InsertElementOp, (undefined, op.source, first), kind)
    (lanes,) = type.shape
    return [shuffled(builder, one, undefined, [0] * lanes.data)]


def _shuffle(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.ShuffleOp)
    return [shuffled(builder, op.v1, op.v2, op.mask.get_values())]


def shuffled(builder: Builder, a: SSAValue, b: SSAValue, mask: Sequence[int]) -> SSAValue:
    """Insert a shuffle: the elements of two vectors, one after the other, that `mask` numbers."""
    type, lanes = _lanes(_element_of(a), tuple(mask))
    return insert(builder, llvm.ShuffleVectorOp, (a, b), type, lanes)


@lru_cache(4096)
def _lanes(element: Attribute, mask: tuple[int, ...]) -> tuple[Attribute, Mapping[str, Attribute]]:
    """The type of a shuffle's result, and its properties."""
    return VectorType(element, [len(mask)]), {"mask": DenseArrayBase.from_list(i32, mask)}


def _fma(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.FMAOp)
    return [insert(builder, llvm.FMAOp, op.operands, op.lhs.type, _NOT_FAST)]


def allocate(builder: Builder, op: memref.AllocOp) -> SSAValue:
    """Insert a call that allocates a scratch buffer; gives a pointer, or null."""
    type = op.memref.type
    assert isinstance(type, MemRefType)
    alignment = 1 if op.alignment is None else op.alignment.value.data
    arguments = [constant(builder, alignment), _allocated_bytes(builder, op, type, alignment)]
    call = llvm.CallOp(ALLOCATE, *arguments, return_type=POINTER)
    return builder.insert(call).results[0]


def _allocated_bytes(
    builder: Builder, op: memref.AllocOp, type: MemRefType, alignment: int
) -> SSAValue:
    """How long a buffer is, in bytes: a multiple of the alignment, as the C library wants it."""
    element = storage_bytes(type.element_type)
    if not op.dynamic_sizes:
        return constant(builder, -(-element * prod(static_shape(type)) // alignment) * alignment)
    (count,) = op.dynamic_sizes
    exact = builder.insert(llvm.MulOp(count, constant(builder, element))).res
    above = builder.insert(llvm.AddOp(exact, constant(builder, alignment - 1))).res
    return builder.insert(llvm.AndOp(above, constant(builder, -alignment))).res


def _dealloc(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, memref.DeallocOp)
    builder.insert(llvm.CallOp(RELEASE, op.memref))
    return []


def _bitcast(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, llvm.BitcastOp)
    type = op.result.type
    type = vector_type(type) if isinstance(type, VectorType) else type
    return builder.insert(llvm.BitcastOp(op.arg, type)).results


def _copy(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    return builder.insert(op.clone()).results


VECTOR_LOWERINGS: dict[type[Operation], Callable[[Builder, Operation], Sequence[SSAValue]]] = {
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.CreateMaskOp: _create_mask,
    vector.BroadcastOp: _broadcast,
    vector.ShuffleOp: _shuffle,
    vector.FMAOp: _fma,
    memref.DeallocOp: _dealloc,
    llvm.InlineAsmOp: _copy,
    llvm.CallIntrinsicOp: _copy,
    llvm.BitcastOp: _bitcast,
}
"""Operation class -> how it is lowered; operands already have `llvm` types."""


def declarations() -> list[llvm.FuncOp]:
    """What the scratch buffers need of the C library."""
    types = {
        ALLOCATE: llvm.LLVMFunctionType([i64, i64], POINTER),
        RELEASE: llvm.LLVMFunctionType([POINTER], llvm.LLVMVoidType()),
    }
    external = llvm.LinkageAttr("external")
    return [llvm.FuncOp(name, type, linkage=external) for name, type in types.items()]
