"""`kernel.mma`, `kernel.wgmma`: warps multiply small matrices, warpgroups slabs, and add to what they have.

%d0, %d1, %d2, %d3 = kernel.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16

%d:32 = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus (%c0, ..., %c31)
  : memref<3x64x64xbf16, "shared"> by memref<3x64x64xbf16, "shared">
%e:64 = kernel.wgmma %xs[%buffer, 0, 0] by %vs[%buffer, 0, 0, 0] transposed plus (%c0, ..., %c63)
  of 64 by 128 : memref<3x64x64xbf16, "shared"> by memref<3x2x64x64xbf16, "shared">
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from ..index.affine import ZERO
from .index import verify_access
from .kernel_async import verify_shared_alignment
from .kernel_device import FuncOp
from .mma import MmaBase
from .sizes import static_shape
from .wgmma import (
    GROUP_ROWS,
    ROW_BYTES,
    WARPGROUP,
    sums_of,
    verify_columns,
    verify_extents,
    verify_held,
    verify_same_depth,
    verify_slab,
)
from .wgmma_base import WgmmaBase, WgmmaWaitBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each lane by one column of each; see `mma.py`.

    All threads of the warp must take part: it is not Pure, so that nothing moves it where some do not.
    """

    name = "kernel.mma"


@irdl_op_definition
class WgmmaOp(WgmmaBase):
    """Multiply the rows of one slab by those of another; see `wgmma.py`.

    A slab is the last two axes of what its index begins in, which is a multiple of 8 rows of it. One in
    panels is the last three, all of them, and the operation says of how many rows and columns.
    """

    name = "kernel.wgmma"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; held rows are those of one warpgroup."""
        if self.extents is not None:
            rows, columns = self.extents.get_values()
            return int(rows), int(columns)
        return self._height, self._verify_panel()[0]

    @property
    def _height(self) -> int:
        if self.rows is None:
            return GROUP_ROWS
        assert isinstance(self.rows.type, MemRefType)
        return static_shape(self.rows.type)[-2]

    def _verify_panel(self) -> tuple[int, int]:
        """Columns and positions of a panel of the slab of columns."""
        columns = self.columns.type
        assert isinstance(columns, MemRefType)
        return verify_columns(columns, columns.get_num_dims() - 2, self.transposed is not None)

    def _verify_columns(self) -> int:
        """The positions of the slab of columns; raises unless the operation has all panels of it."""
        width, depth = self._verify_panel()
        if self.extents is None:
            return depth
        columns = self.columns.type
        assert isinstance(columns, MemRefType)
        panels = columns.get_num_dims() - 3
        if (
            self.transposed is None
            or panels < 0
            or self.shape != (self._height, static_shape(columns)[panels] * width)
            or self.column_map.data.results[panels] != ZERO
        ):
            raise VerifyException(
                "multiplies {} by {} where a transposed slab of ".format(*self.shape)
                + f"columns has all its panels; got {columns}"
            )
        return depth

    def verify_(self) -> None:
        for slab, map, indices in self.slabs:
            type = slab.type
            if not isinstance(type, MemRefType):
                raise VerifyException(f"multiplies slabs in shared memory, got {type}")
            verify_access(map.data, indices, type)
            verify_shared_alignment(slab, 8 * ROW_BYTES)
            verify_slab(type, type.get_num_dims() - 2)
        depth = self._verify_columns()
        if self.rows is None:
            assert isinstance(self.columns.type, MemRefType)
            verify_held(self.held, self.columns.type.element_type, depth)
        elif self.held:
            raise VerifyException("multiplies a slab of rows or what the threads hold")
        else:
            assert isinstance(self.rows.type, MemRefType)
            verify_same_depth(static_shape(self.rows.type)[-1], depth)
        verify_extents(*self.shape)
        if self.onto:
            raise VerifyException("adds to values, which do not change")
        self.verify_joined()
        if self.pending:
            for product in self.products:
                verify_waited(product)
        function = self.parent_op()
        while function is not None and not isinstance(function, FuncOp):
            function = function.parent_op()
        if function is not None:
            height, width = self.shape
            threads = function.threads.value.data
            groups = 1 if self.rows else threads // WARPGROUP
            sums = sums_of(height * groups, width, threads)
            if sums != len(self.sums):
                raise VerifyException(
                    sums if isinstance(sums, str) else f"gives {sums} sums, not {len(self.sums)}"
                )


@irdl_op_definition
class WgmmaWaitOp(WgmmaWaitBase):
    """Wait for all products: `%d:32 = kernel.wgmma_wait (%c0, ..., %c31)`."""

    name = "kernel.wgmma_wait"


def verify_waited(value: SSAValue) -> None:
    """Raise unless nothing reads sums that are on their way but products, loops that go on, and waits."""
    for use in value.uses:
        user, index = use.operation, use.index
        if isinstance(user, WgmmaWaitOp):
            continue
        if isinstance(user, WgmmaOp) and value in user.sums and value not in user.held:
            continue
        loop = user.parent_op()
        if isinstance(user, scf.YieldOp) and isinstance(loop, scf.ForOp):
            again, after = loop.body.block.args[index + 1], loop.res[index]
            if again is not value:
                for each in (again, after):
                    verify_waited(each)
            continue
        raise VerifyException(f"sums that are on their way are read by '{user.name}'")
