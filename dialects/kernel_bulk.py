"""Operations of `kernel` by which the GPU's copy engine fills shared memory.

    %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
    %full = kernel.mbarriers 2
    ...                                          // thread 0 alone:
      kernel.mbarrier_init %full[0], 1
      kernel.fence
    kernel.barrier
    ...                                          // thread 0 alone:
      kernel.mbarrier_expect_bytes %full[0], 4096
      kernel.bulk_copy %map[%row * 16, 0] to %s[0, 0, 0] barrier %full[0]
        : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
    kernel.mbarrier_wait %full[0] parity[0]

`%map` is an argument of the kernel, which `kernel.tensor_map` makes on the host. A thread that has waited
sees what was copied. Before a slab is filled again, a `kernel.barrier` must follow the last read of it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .alignment import divisor
from .index import linearize, verify_access
from .kernel_async import verify_shared_alignment
from .mbarriers import (
    MAX_BYTES,
    BarrierNumberOp,
    BarriersOp,
    BarrierWaitOp,
    BulkCopyBase,
)
from .scalars import storage_bytes
from .sizes import shape_of
from .tensor_map import TensorMapType, verify_describes
from .tile import MAX_THREADS, SHARED


@irdl_op_definition
class MbarriersOp(BarriersOp):
    """Barriers of a block, to be initialised: `%full = kernel.mbarriers 2`."""

    name = "kernel.mbarriers"

    assembly_format = BarriersOp.FORMAT


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
class MbarrierWaitOp(BarrierWaitOp):
    """Wait until the phase of a parity is complete, and see what was copied in it.

    `kernel.mbarrier_wait %full[%k mod 2] parity[%k floordiv 2 mod 2]`
    """

    name = "kernel.mbarrier_wait"

    assembly_format = BarrierWaitOp.FORMAT


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


@irdl_op_definition
class BulkCopyOp(BulkCopyBase):
    """Start to copy a box of a tensor to shared memory; one thread does it for the block.

    The coordinates are of the box's first element; outside of the tensor there are zeros. The box lies in
    shared memory row by row, its units exchanged as the map's swizzle says. See the dialect's example.
    With `multicast 2` it arrives in both blocks of a cluster, at the same place and barrier of each.
    """

    name = "kernel.bulk_copy"

    assembly_format = BulkCopyBase.FORMAT

    def verify_(self) -> None:
        self.verify_copy()
        type, map = self.destination.type, self.box
        if not isinstance(type, MemRefType) or type.memory_space != SHARED:
            raise VerifyException(f"copies to shared memory, not to {type}")
        verify_access(self.map.data, self.indices, type)
        self._verify_rows(type)
        verify_shared_alignment(self.destination, map.alignment)
        step = divisor(linearize(self.map.data.results, shape_of(type)), self.indices)
        if step * storage_bytes(map.element) % map.alignment:
            raise VerifyException(
                f"the index into {type} is not proven to be a multiple of {map.alignment} bytes"
            )

    def _verify_rows(self, type: MemRefType) -> None:
        """Raise unless the box is whole rows of shared memory, all of an axis or a part of it."""
        map = self.box
        extents = list(map.extents)
        while extents[0] == 1 and len(extents) > 1:
            del extents[0]
        shape = list(shape_of(type))[-len(extents) :]
        if type.element_type != map.element or shape[1:] != extents[1:]:
            raise VerifyException(f"a box of {map} does not fill rows of {type}")
        rows = self.map.data.results[-len(extents)]
        is_part = isinstance(shape[0], int) and len(extents) > 1 and shape[0] % extents[0] == 0
        if shape[0] != extents[0] and not (
            is_part and divisor(rows, self.indices) % extents[0] == 0
        ):
            raise VerifyException(f"a box of {map} does not fill rows of {type}")


@irdl_op_definition
class TensorMapOp(IRDLOperation):
    """On the host, describe a tensor to the copy engine.

    `%m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x64xf32>`
    """

    name = "kernel.tensor_map"

    tensor = operand_def(MemRefType)
    result = result_def(TensorMapType)

    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor) `to` type($result)"

    def __init__(self, tensor: SSAValue, type: TensorMapType):
        super().__init__(operands=[tensor], result_types=[type])

    def verify_(self) -> None:
        assert isinstance(self.tensor.type, MemRefType)
        assert isinstance(self.result.type, TensorMapType)
        verify_describes(self.result.type, self.tensor.type)
