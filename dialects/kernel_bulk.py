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

from collections.abc import Iterable
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, MemRefType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .alignment import divisor
from .index import (
    AffineIndex,
    Index,
    Indexed,
    index_properties,
    linearize,
    verify_access,
    verify_one_index,
    verify_operand_count,
)
from .inside import has_flat_addresses
from .kernel_shared import verify_shared_alignment
from .mbarriers import MbarriersType, verify_barriers
from .scalars import storage_bytes
from .sizes import shape_of, static_shape
from .tensor_map import TensorMapType, verify_describes
from .tile import SHARED


@irdl_op_definition
class BulkCopyOp(IRDLOperation):
    """Start to copy a box of a tensor to shared memory; one thread does it for the block.

    The coordinates are of the box's first element; outside of the tensor there are zeros. The box lies in
    shared memory row by row, its units exchanged as the map's swizzle says. See the dialect's example.
    With `multicast 2` it arrives in both blocks of a cluster, at the same place and barrier of each.
    """

    name = "kernel.bulk_copy"
    INDEXED: ClassVar = (
        Indexed("indices", "map", "destination"),
        Indexed("box_indices", "box_map"),
        Indexed("barrier_indices", "barrier_map", "barriers"),
    )

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

    assembly_format = (
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

    def verify_(self) -> None:
        self._verify_copy()
        type, map = self.destination.type, self.box
        if not isinstance(type, MemRefType) or type.memory_space != SHARED:
            raise VerifyException(f"copies to shared memory, not to {type}")
        verify_access(self.map.data, self.indices, type)
        if type.element_type != map.element:
            raise VerifyException(f"a box of {map} does not fill rows of {type}")
        verify_shared_alignment(self.destination, map.alignment)
        if has_flat_addresses(self):
            if map.count > prod(static_shape(type)):
                raise VerifyException(f"{map} does not fit into {type}")
            return
        self._verify_rows(type)
        step = divisor(linearize(self.map.data.results, shape_of(type)), self.indices)
        if step * storage_bytes(map.element) % map.alignment:
            raise VerifyException(
                f"the index into {type} is not proven to be a multiple of {map.alignment} bytes"
            )

    def _verify_copy(self) -> None:
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

    def _verify_rows(self, type: MemRefType) -> None:
        """Raise unless the box is whole rows of shared memory, all of an axis or a part of it."""
        map = self.box
        extents = list(map.extents)
        while extents[0] == 1 and len(extents) > 1:
            del extents[0]
        shape = list(shape_of(type))[-len(extents) :]
        if shape[1:] != extents[1:]:
            raise VerifyException(f"a box of {map} does not fill rows of {type}")
        rows = self.map.data.results[-len(extents)]
        is_part = isinstance(shape[0], int) and len(extents) > 1 and shape[0] % extents[0] == 0
        if shape[0] != extents[0] and not (
            is_part and divisor(rows, self.indices) % extents[0] == 0
        ):
            raise VerifyException(f"a box of {map} does not fill rows of {type}")


def verify_clusters(ops: Iterable[Operation], cluster: IntegerAttr | None) -> None:
    """Raise unless copies arrive in all blocks of a kernel's clusters, or in the one that starts them."""
    count = 1 if cluster is None else cluster.value.data
    for op in ops:
        if isinstance(op, BulkCopyOp) and op.receivers not in (1, count):
            raise VerifyException(f"a copy arrives in {op.receivers} blocks of clusters of {count}")


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
