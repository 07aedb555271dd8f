"""Copies that run while threads compute, products of what they copied, vectors and atomics in C++.

A part of `lower-to-cuda`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.builder import Builder
from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import cuda, kernel
from ...dialects.index import Index
from ...dialects.scalars import storage_bytes
from ...dialects.wgmma_base import SlabAt


class Lowering(Protocol):
    """What the lowering of an operation is made of; `lower_to_cuda.py` has it."""

    values: dict[SSAValue, SSAValue]
    builder: Builder

    def address(
        self, memref: SSAValue, exprs: Sequence[AffineExpr], indices: Sequence[SSAValue]
    ) -> tuple[SSAValue, AffineExpr, list[SSAValue]]:
        """The pointer, flat offset and operands of an access."""
        ...

    def index_of(self, map: AffineMapAttr, indices: Sequence[SSAValue]) -> Index:
        """Index expressions as C++ computes them, and their operands."""
        ...

    def simple(self, op: Operation, new: Operation) -> None:
        """Insert `new` in place of `op`, with its names."""
        ...


def _async_copy(state: Lowering, op: kernel.AsyncCopyOp) -> None:
    memref = op.source.type
    assert isinstance(memref, MemRefType)
    source = state.address(op.source, op.source_map.data.results, op.source_indices)
    destination = state.address(op.destination, op.map.data.results, op.indices)
    size = op.vector.value.data * storage_bytes(memref.element_type)
    condition = None if op.condition is None else state.values[op.condition]
    state.simple(op, cuda.CpAsyncOp(source, destination, size, condition))


def _async_wait(state: Lowering, op: kernel.AsyncWaitOp) -> None:
    state.simple(op, cuda.CpAsyncWaitOp(op.pending.value.data))


def _init(state: Lowering, op: kernel.MbarrierInitOp) -> None:
    index = state.index_of(op.map, op.indices)
    new = cuda.MbarrierInitOp(state.values[op.barriers], index, op.number.value.data)
    state.simple(op, new)


def _expect(state: Lowering, op: kernel.MbarrierExpectBytesOp) -> None:
    index = state.index_of(op.map, op.indices)
    new = cuda.MbarrierExpectTxOp(state.values[op.barriers], index, op.number.value.data)
    state.simple(op, new)


def _mbarrier_wait(state: Lowering, op: kernel.MbarrierWaitOp) -> None:
    index = state.index_of(op.map, op.indices)
    parity = state.index_of(op.parity, op.parity_indices)
    state.simple(op, cuda.MbarrierWaitOp(state.values[op.barriers], index, parity))


def _fence(state: Lowering, op: kernel.FenceOp) -> None:
    if op.cluster is not None:
        state.simple(op, cuda.FenceMbarrierInitOp())
    state.simple(op, cuda.FenceProxyAsyncOp())


def _bulk_copy(state: Lowering, op: kernel.BulkCopyOp) -> None:
    pointer, offset, operands = state.address(op.destination, op.map.data.results, op.indices)
    new = cuda.BulkTensorOp(
        state.values[op.tensor_map],
        state.index_of(op.box_map, op.box_indices),
        pointer,
        ([offset], operands),
        state.values[op.barriers],
        state.index_of(op.barrier_map, op.barrier_indices),
        op.receivers,
    )
    state.simple(op, new)


def _vector_load(state: Lowering, op: kernel.VectorLoadOp) -> None:
    pointer, offset, operands = state.address(op.memref, op.map.data.results, op.indices)
    state.simple(op, cuda.VectorLoadOp(pointer, ([offset], operands), list(op.values.types)))


def _vector_store(state: Lowering, op: kernel.VectorStoreOp) -> None:
    pointer, offset, operands = state.address(op.memref, op.map.data.results, op.indices)
    values = [state.values[v] for v in op.values]
    state.simple(op, cuda.VectorStoreOp(values, pointer, ([offset], operands)))


def _atomic_add(state: Lowering, op: kernel.AtomicAddOp) -> None:
    pointer, offset, operands = state.address(op.memref, op.map.data.results, op.indices)
    state.simple(op, cuda.AtomicAddOp(state.values[op.value], pointer, ([offset], operands)))


def _wgmma(state: Lowering, op: kernel.WgmmaOp) -> None:
    slabs: list[SlabAt] = []
    for memory, map, indices in op.slabs:
        pointer, offset, operands = state.address(memory, map.data.results, indices)
        slabs.append(SlabAt(pointer, ([offset], operands)))
    sums = [state.values[v] for v in op.sums]
    onto = _are_variables(op.sums, sums)
    new = cuda.WgmmaOp(
        slabs[0] if op.rows else [state.values[v] for v in op.held],
        slabs[-1],
        sums,
        op.shape,
        transposed=op.transposed is not None,
        leaving=op.pending or None,
        joined=op.joined is not None,
        onto=onto,
    )
    _put(state, op.products, new)


def _wgmma_wait(state: Lowering, op: kernel.WgmmaWaitOp) -> None:
    sums = [state.values[v] for v in op.sums]
    _put(state, op.results_, cuda.WgmmaWaitOp(sums, _are_variables(op.sums, sums)))


def _are_variables(old: Sequence[SSAValue], new: Sequence[SSAValue]) -> bool:
    """Whether sums are variables that nothing else reads: a product may be added onto them.

    A copy of one whose product is on its way would have the tensor cores wait for each other.
    """
    return all(v.has_one_use() for v in old) and all(
        isinstance(v.owner, cuda.VariableOp) for v in new
    )


def _put(
    state: Lowering, results: Sequence[SSAValue], new: cuda.WgmmaOp | cuda.WgmmaWaitOp
) -> None:
    """Insert an operation whose totals stand for some results."""
    state.builder.insert(new)
    for old, total in zip(results, new.totals, strict=True):
        total.name_hint = total.name_hint or old.name_hint
        state.values[old] = total


COPY_HANDLERS: dict[type[Operation], Callable[[Lowering, Any], None]] = {
    kernel.AsyncCopyOp: _async_copy,
    kernel.AsyncCommitOp: lambda state, op: state.simple(op, cuda.CpAsyncCommitOp()),
    kernel.AsyncWaitOp: _async_wait,
    kernel.MbarriersOp: lambda state, op: state.simple(op, cuda.MbarriersOp(op.count.value.data)),
    kernel.MbarrierInitOp: _init,
    kernel.MbarrierExpectBytesOp: _expect,
    kernel.MbarrierWaitOp: _mbarrier_wait,
    kernel.FenceOp: _fence,
    kernel.BulkCopyOp: _bulk_copy,
    kernel.VectorLoadOp: _vector_load,
    kernel.VectorStoreOp: _vector_store,
    kernel.AtomicAddOp: _atomic_add,
    kernel.WgmmaOp: _wgmma,
    kernel.WgmmaWaitOp: _wgmma_wait,
}
"""How each operation is lowered."""
