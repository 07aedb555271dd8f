"""What copies while threads compute, in C++ constructs; a part of `lower-to-cuda`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import cuda, kernel
from ...dialects.scalars import storage_bytes


class Lowering(Protocol):
    """What the lowering of an operation is made of; `lower_to_cuda.py` has it."""

    values: dict[SSAValue, SSAValue]

    def address(
        self, memref: SSAValue, exprs: Sequence[AffineExpr], indices: Sequence[SSAValue]
    ) -> tuple[SSAValue, AffineExpr, list[SSAValue]]:
        """The pointer, flat offset and operands of an access."""
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


ASYNC_HANDLERS: dict[type[Operation], Callable[[Lowering, Any], None]] = {
    kernel.AsyncCopyOp: _async_copy,
    kernel.AsyncCommitOp: lambda state, op: state.simple(op, cuda.CpAsyncCommitOp()),
    kernel.AsyncWaitOp: _async_wait,
}
"""How each operation is lowered."""
