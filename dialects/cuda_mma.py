"""`cuda.mma` and `cuda.wgmma`: `mma.sync` and `wgmma.mma_async` of PTX.

%d0, %d1, %d2, %d3 = cuda.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16

%d:32 = cuda.wgmma %xs[%buffer * 4096] by %ws[%buffer * 4096] plus (%c0, ..., %c31) of 64 by 64
  : !cuda.ptr<bf16> by !cuda.ptr<bf16>
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .cuda_memory import pointer_type, verify_offset
from .mma import MmaBase
from .wgmma import verify_element, verify_extents
from .wgmma_base import WgmmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """`mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32`, or two of `m16n8k8` for tf32.

    `mma.py` says whose elements are where.
    """

    name = "cuda.mma"

    SINCE: ClassVar[int] = 80


@irdl_op_definition
class WgmmaOp(WgmmaBase):
    """`wgmma.mma_async.sync.aligned.m64nNk16`, as often as slabs of so many rows and columns need it.

    It begins with a fence and ends when the products are there; `wgmma.py` says whose elements are where.
    """

    name = "cuda.wgmma"

    SINCE: ClassVar[int] = 90

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        assert self.extents is not None
        rows, columns = self.extents.get_values()
        return int(rows), int(columns)

    def verify_(self) -> None:
        if self.extents is None:
            raise VerifyException("says of how many rows and columns")
        verify_offset(self.row_map.data, self.row_indices)
        verify_offset(self.column_map.data, self.column_indices)
        elements = [pointer_type(slab).element for slab in (self.rows, self.columns)]
        verify_element(elements[0])
        if elements[0] != elements[1]:
            raise VerifyException(f"multiplies {elements[0]} by {elements[1]}")
        verify_extents(*self.shape)
