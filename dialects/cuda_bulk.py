"""Operations of `cuda` by which the GPU's copy engine fills shared memory: inline PTX, one instruction each.

    %full = cuda.mbarriers 2
    cuda.mbarrier_init %full[0], 1
    cuda.fence_proxy_async
    cuda.mbarrier_expect_tx %full[0], 4096
    cuda.bulk_tensor %map[%row * 16, 0] to %s[0] barrier %full[0]
      : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
    cuda.mbarrier_wait %full[0] parity[0]

They mean what the operations in `kernel_bulk.py` mean; the destination is a flat offset.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .cuda_async import verify_destination
from .cuda_memory import SharedOp, pointer_type, verify_offset
from .mbarriers import (
    MAX_BYTES,
    BarrierNumberOp,
    BarriersOp,
    BarrierWaitOp,
    BulkCopyBase,
)
from .tile import MAX_THREADS


@irdl_op_definition
class MbarriersOp(BarriersOp):
    """`__shared__ unsigned long long full[2];`: `%full = cuda.mbarriers 2`."""

    name = "cuda.mbarriers"
    SINCE: ClassVar[int] = 80

    assembly_format = BarriersOp.FORMAT


@irdl_op_definition
class MbarrierInitOp(BarrierNumberOp):
    """`mbarrier.init`: `cuda.mbarrier_init %full[0], 1`."""

    name = "cuda.mbarrier_init"
    SINCE: ClassVar[int] = 80

    assembly_format = BarrierNumberOp.FORMAT

    def verify_(self) -> None:
        self.verify_numbered("counts arrivals of", MAX_THREADS)


@irdl_op_definition
class MbarrierExpectTxOp(BarrierNumberOp):
    """`mbarrier.arrive.expect_tx`: `cuda.mbarrier_expect_tx %full[%k mod 2], 4096`."""

    name = "cuda.mbarrier_expect_tx"
    SINCE: ClassVar[int] = 90

    assembly_format = BarrierNumberOp.FORMAT

    def verify_(self) -> None:
        self.verify_numbered("expects", MAX_BYTES)


@irdl_op_definition
class MbarrierWaitOp(BarrierWaitOp):
    """A loop of `mbarrier.try_wait.parity`: `cuda.mbarrier_wait %full[0] parity[%k mod 2]`."""

    name = "cuda.mbarrier_wait"
    SINCE: ClassVar[int] = 90

    assembly_format = BarrierWaitOp.FORMAT


@irdl_op_definition
class FenceProxyAsyncOp(IRDLOperation):
    """`fence.proxy.async.shared::cta`: `cuda.fence_proxy_async`."""

    name = "cuda.fence_proxy_async"
    SINCE: ClassVar[int] = 90

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class FenceMbarrierInitOp(IRDLOperation):
    """`fence.mbarrier_init.release.cluster`: `cuda.fence_mbarrier_init`."""

    name = "cuda.fence_mbarrier_init"
    SINCE: ClassVar[int] = 90

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ClusterSyncOp(IRDLOperation):
    """`barrier.cluster.arrive` and `barrier.cluster.wait`: `cuda.cluster_sync`.

    `cuda.cluster_sync relaxed` arrives with `.relaxed`.
    """

    name = "cuda.cluster_sync"
    SINCE: ClassVar[int] = 90

    relaxed = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "(`relaxed` $relaxed^)? attr-dict"

    def __init__(self, relaxed: UnitAttr | None = None):
        super().__init__(properties={"relaxed": relaxed})


@irdl_op_definition
class BulkTensorOp(BulkCopyBase):
    """`cp.async.bulk.tensor` from global to shared memory; see the file's example.

    With `multicast 2` it is the form with `.multicast::cluster`, for all blocks of the cluster.
    """

    name = "cuda.bulk_tensor"
    SINCE: ClassVar[int] = 90

    assembly_format = BulkCopyBase.FORMAT

    def verify_(self) -> None:
        self.verify_copy()
        verify_offset(self.map.data, self.indices)
        verify_destination(self.destination)
        shared = self.destination.owner
        assert isinstance(shared, SharedOp)
        if pointer_type(self.destination).element != self.box.element:
            raise VerifyException(f"copies {self.box.element} to {self.destination.type}")
        if self.box.count > shared.extent.value.data:
            raise VerifyException(
                f"{self.box} does not fit into {shared.extent.value.data} elements"
            )
        if shared.alignment % self.box.alignment:
            raise VerifyException(
                f"{self.box} needs shared memory aligned to {self.box.alignment} bytes, not "
                f"{shared.alignment}"
            )
