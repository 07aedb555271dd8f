"""Barriers that count bytes and arrivals, and the operations of `kernel` on them.

    %full = kernel.mbarriers 2
    kernel.mbarrier_init %full[0], 1
    kernel.fence
    kernel.mbarrier_expect_bytes %full[0], 4096
    kernel.mbarrier_wait %full[0] parity[0]

A barrier is in a phase until as many threads have arrived as it was initialised with, and as many bytes as
they said; then the next phase begins. Phases have parity 0, 1, 0, ...; to wait for a parity is to wait until
the phase of that parity, the current one or the one before, is complete.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, Index, Indexed, index_properties, verify_one_index
from .tile import MAX_THREADS

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
    if not isinstance(value.owner, MbarriersOp):
        raise VerifyException("the barrier must be declared in the same kernel")


@irdl_op_definition
class MbarriersOp(IRDLOperation):
    """Barriers of a block, to be initialised: `%full = kernel.mbarriers 2`."""

    name = "kernel.mbarriers"

    count = prop_def(IntegerAttr.constr(i64))
    result = result_def(MbarriersType)

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "$count attr-dict"

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

    INDEXED: ClassVar = (Indexed("indices", "map", "barriers"),)

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


@irdl_op_definition
class MbarrierWaitOp(IRDLOperation):
    """Wait until the phase of a parity is complete, and see what was copied in it.

    `kernel.mbarrier_wait %full[%k mod 2] parity[%k floordiv 2 mod 2]`
    """

    name = "kernel.mbarrier_wait"
    INDEXED: ClassVar = (
        Indexed("indices", "map", "barriers"),
        Indexed("parity_indices", "parity"),
    )

    barriers = operand_def(MbarriersType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    parity_indices = var_operand_def(IndexType)
    parity = prop_def(AffineMapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)

    assembly_format = (
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


@irdl_op_definition
class MbarrierInitOp(BarrierNumberOp):
    """Begin the first phase of a barrier, for so many arrivals in each: `kernel.mbarrier_init %full[0], 1`.

    One thread does it. The others see it after a `kernel.barrier`, the copy engine after a `kernel.fence`.
    """

    name = "kernel.mbarrier_init"

    assembly_format = BarrierNumberOp.FORMAT

    def verify_(self) -> None:
        self.verify_numbered("counts arrivals of", MAX_THREADS)


@irdl_op_definition
class MbarrierExpectBytesOp(BarrierNumberOp):
    """Arrive, and expect so many bytes in this phase: `kernel.mbarrier_expect_bytes %full[0], 4096`."""

    name = "kernel.mbarrier_expect_bytes"

    assembly_format = BarrierNumberOp.FORMAT

    def verify_(self) -> None:
        self.verify_numbered("expects", MAX_BYTES)


@irdl_op_definition
class FenceOp(IRDLOperation):
    """Make what threads wrote to shared memory visible to the copy engine: `kernel.fence`.

    `kernel.fence cluster` makes barriers that were initialised visible to the copies of other blocks, too.
    """

    name = "kernel.fence"

    cluster = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "(`cluster` $cluster^)? attr-dict"

    def __init__(self, cluster: bool = False):
        super().__init__(properties={"cluster": UnitAttr() if cluster else None})
