"""Barriers that count bytes and arrivals: what the operations of `kernel` and of `cuda` on them share.

A barrier is in a phase until as many threads have arrived as it was initialised with, and as many bytes as
they said; then the next phase begins. Phases have parity 0, 1, 0, ...; to wait for a parity is to wait until
the phase of that parity, the current one or the one before, is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, i64
from xdsl.ir import Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, Index, index_properties, verify_one_index, verify_operand_count
from .tensor_map import TensorMapType

MAX_BYTES = (1 << 20) - 1
"""Bytes that a barrier can expect in a phase (PTX ISA, "tx-count of an mbarrier object")."""

BARRIER_BYTES = 8
"""Shared memory that a barrier takes (PTX ISA, "mbarrier object")."""

MAX_BARRIERS = 64
"""Barriers of one operation: more than a pipeline has slots."""


@irdl_attr_definition
class MbarriersType(ParametrizedAttribute, TypeAttribute):
    """Barriers in shared memory: `!kernel.mbarriers`."""

    name = "kernel.mbarriers"


def verify_barriers(value: SSAValue) -> None:
    """Raise unless barriers are declared in the same kernel."""
    if not isinstance(value.owner, BarriersOp):
        raise VerifyException("the barrier must be declared in the same kernel")


def verify_clusters(ops: Iterable[Operation], cluster: IntegerAttr | None) -> None:
    """Raise unless copies arrive in all blocks of a kernel's clusters, or in the one that starts them."""
    count = 1 if cluster is None else cluster.value.data
    for op in ops:
        if isinstance(op, BulkCopyBase) and op.receivers not in (1, count):
            raise VerifyException(f"a copy arrives in {op.receivers} blocks of clusters of {count}")


class BarriersOp(IRDLOperation):
    """Declares barriers, not initialised yet."""

    count = prop_def(IntegerAttr.constr(i64))
    result = result_def(MbarriersType)

    traits = traits_def(MemoryAllocEffect())

    FORMAT: ClassVar[str] = "$count attr-dict"

    def __init__(self, count: int):
        super().__init__(
            properties={"count": IntegerAttr(count, i64)}, result_types=[MbarriersType()]
        )

    @property
    def size(self) -> int:
        """Their bytes."""
        return BARRIER_BYTES * self.count.value.data

    def verify_(self) -> None:
        if not 1 <= self.count.value.data <= MAX_BARRIERS:
            raise VerifyException(
                f"declares 1 to {MAX_BARRIERS} barriers, not {self.count.value.data}"
            )


class BarrierNumberOp(IRDLOperation):
    """An operation on one barrier with a number."""

    barriers = operand_def(MbarriersType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    number = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)

    FORMAT: ClassVar[str] = "$barriers `` custom<AffineIndex>($indices, $map) `,` $number attr-dict"

    def __init__(self, barriers: SSAValue, index: Index, number: int):
        map_attr, operands = index_properties(index)
        super().__init__(
            operands=[barriers, operands],
            properties={"map": map_attr, "number": IntegerAttr(number, i64)},
        )

    def verify_numbered(self, what: str, largest: int) -> None:
        """Raise unless the barrier is one and the number in its limits."""
        verify_barriers(self.barriers)
        verify_one_index(self.map, self.indices, "the number of a barrier")
        if not 1 <= self.number.value.data <= largest:
            raise VerifyException(f"{what} 1 to {largest}, not {self.number.value.data}")


class BarrierWaitOp(IRDLOperation):
    """Waits for the phase of a parity."""

    barriers = operand_def(MbarriersType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    parity_indices = var_operand_def(IndexType)
    parity = prop_def(AffineMapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)

    FORMAT: ClassVar[str] = (
        "$barriers `` custom<AffineIndex>($indices, $map) `parity`"
        " custom<AffineIndex>($parity_indices, $parity) attr-dict"
    )

    def __init__(self, barriers: SSAValue, index: Index, parity: Index):
        map_attr, operands = index_properties(index)
        parity_attr, parity_operands = index_properties(parity)
        super().__init__(
            operands=[barriers, operands, parity_operands],
            properties={"map": map_attr, "parity": parity_attr},
        )

    def verify_(self) -> None:
        verify_barriers(self.barriers)
        verify_one_index(self.map, self.indices, "the number of a barrier")
        verify_one_index(self.parity, self.parity_indices, "a parity")


class BulkCopyBase(IRDLOperation):
    """Copies a box of a tensor to shared memory, which completes on a barrier."""

    tensor_map = operand_def()
    box_indices = var_operand_def(IndexType)
    box_map = prop_def(AffineMapAttr)
    destination = operand_def()
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    barriers = operand_def(MbarriersType)
    barrier_indices = var_operand_def(IndexType)
    barrier_map = prop_def(AffineMapAttr)
    multicast = opt_prop_def(IntegerAttr.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)

    FORMAT: ClassVar[str] = (
        "$tensor_map `` custom<AffineIndex>($box_indices, $box_map)"
        " `to` $destination `` custom<AffineIndex>($indices, $map)"
        " `barrier` $barriers `` custom<AffineIndex>($barrier_indices, $barrier_map)"
        " (`multicast` $multicast^)? attr-dict `:` type($tensor_map) `to` type($destination)"
    )

    def __init__(
        self,
        tensor_map: SSAValue,
        box: Index,
        destination: SSAValue,
        index: Index,
        barriers: SSAValue,
        barrier: Index,
        multicast: int = 1,
    ):
        box_attr, box_operands = index_properties(box)
        map_attr, operands = index_properties(index)
        barrier_attr, barrier_operands = index_properties(barrier)
        super().__init__(
            operands=[
                tensor_map,
                box_operands,
                destination,
                operands,
                barriers,
                barrier_operands,
            ],
            properties={
                "box_map": box_attr,
                "map": map_attr,
                "barrier_map": barrier_attr,
                "multicast": IntegerAttr(multicast, i64) if multicast > 1 else None,
            },
        )

    @property
    def receivers(self) -> int:
        """Blocks of the cluster in whose memory it arrives; 1 if it is the block's own alone."""
        return 1 if self.multicast is None else self.multicast.value.data

    @property
    def box(self) -> TensorMapType:
        """What of a tensor it copies."""
        type = self.tensor_map.type
        assert isinstance(type, TensorMapType)
        return type

    def verify_copy(self) -> None:
        """Raise unless the map is one, the coordinates fit it, and the barrier is one."""
        verify_barriers(self.barriers)
        verify_one_index(self.barrier_map, self.barrier_indices, "the number of a barrier")
        verify_operand_count(self.box_map.data, self.box_indices)
        if not isinstance(self.tensor_map.type, TensorMapType):
            raise VerifyException(f"copies by a !kernel.tensor_map, got {self.tensor_map.type}")
        if len(self.box_map.data.results) != len(self.box.extents):
            raise VerifyException(
                f"{len(self.box_map.data.results)} coordinates of a box of rank "
                f"{len(self.box.extents)}"
            )
