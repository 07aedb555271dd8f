"""`cuda.mma` and `cuda.wgmma`: `mma.sync` and `wgmma.mma_async` of PTX.

%d0, %d1, %d2, %d3 = cuda.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16

%d:32 = cuda.wgmma %xs[%buffer * 4096] by %ws[%buffer * 4096] plus (%c0, ..., %c31) of 64 by 64
  : !cuda.ptr<bf16> by !cuda.ptr<bf16>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .cuda_memory import VariableOp, pointer_type, verify_offset
from .mma import MmaBase
from .wgmma import (
    GROUP_ROWS,
    PANEL,
    verify_depth,
    verify_element,
    verify_extents,
    verify_held,
)
from .wgmma_base import WgmmaBase, WgmmaWaitBase


def verify_variables(values: Sequence[SSAValue]) -> None:
    """Raise unless values are variables."""
    if not all(isinstance(value.owner, VariableOp) for value in values):
        raise VerifyException("only what a cuda.variable is can be added onto")


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

    It begins with a fence and ends when the products are there but for those that it is `leaving`; `wgmma.py`
    says whose elements are where.
    """

    name = "cuda.wgmma"

    ONLY: ClassVar[str] = "sm_90a"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        assert self.extents is not None
        rows, columns = self.extents.get_values()
        return int(rows), int(columns)

    def verify_(self) -> None:
        if self.extents is None:
            raise VerifyException("says of how many rows and columns")
        for _, map, indices in self.slabs:
            verify_offset(map.data, indices)
        elements = [pointer_type(slab).element for slab, _, _ in self.slabs]
        verify_element(elements[0])
        if len(set(elements)) > 1:
            raise VerifyException(f"multiplies {elements[0]} by {elements[1]}")
        height, width = self.shape
        verify_extents(height, width)
        if self.rows is None:
            if height != GROUP_ROWS:
                raise VerifyException(
                    f"threads hold {GROUP_ROWS} rows of a warpgroup, not {height}"
                )
            verify_held(self.held, elements[0], self.depth)
        elif self.held:
            raise VerifyException("multiplies a slab of rows or what the threads hold")
        verify_depth(self.depth)
        self.verify_joined()
        if self.onto:
            verify_variables(self.sums)
        if self.transposed and width % PANEL:
            raise VerifyException(f"multiplies panels of {PANEL} columns, got {width}")


@irdl_op_definition
class WgmmaWaitOp(WgmmaWaitBase):
    """`wgmma.wait_group.sync.aligned 0;`: `%d:32 = cuda.wgmma_wait (%c0, ..., %c31)`."""

    name = "cuda.wgmma_wait"

    ONLY: ClassVar[str] = "sm_90a"

    def verify_(self) -> None:
        super().verify_()
        if self.onto:
            verify_variables(self.sums)
