"""`kernel.mma`, `kernel.wgmma`: warps multiply small matrices, warpgroups slabs, and add to what they have.

%d0, %d1, %d2, %d3 = kernel.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16

%d:32 = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus (%c0, ..., %c31)
  : memref<3x64x64xbf16, "shared"> by memref<3x64x64xbf16, "shared">
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .index import verify_access
from .kernel_async import verify_shared_alignment
from .kernel_device import FuncOp
from .mma import MmaBase
from .sizes import static_shape
from .wgmma import ROW_BYTES, sums_of, verify_extents, verify_slab
from .wgmma_base import WgmmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each lane by one column of each; see `mma.py`.

    All threads of the warp must take part: it is not Pure, so that nothing moves it where some do not.
    """

    name = "kernel.mma"


@irdl_op_definition
class WgmmaOp(WgmmaBase):
    """Multiply the rows of one slab by those of another; see `wgmma.py`.

    A slab is the last two axes of what its index begins in, which is a multiple of 8 rows of it.
    """

    name = "kernel.wgmma"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        types = self.rows.type, self.columns.type
        height, width = (static_shape(t)[-2] for t in types if isinstance(t, MemRefType))
        return height, width

    def verify_(self) -> None:
        for slab, map, indices in (
            (self.rows, self.row_map, self.row_indices),
            (self.columns, self.column_map, self.column_indices),
        ):
            type = slab.type
            if not isinstance(type, MemRefType):
                raise VerifyException(f"multiplies slabs in shared memory, got {type}")
            verify_access(map.data, indices, type)
            verify_shared_alignment(slab, 8 * ROW_BYTES)
            verify_slab(type, type.get_num_dims() - 2)
        verify_extents(*self.shape)
        function = self.parent_op()
        while function is not None and not isinstance(function, FuncOp):
            function = function.parent_op()
        if function is not None:
            sums = sums_of(*self.shape, function.threads.value.data)
            if sums != len(self.sums):
                raise VerifyException(
                    sums if isinstance(sums, str) else f"gives {sums} sums, not {len(self.sums)}"
                )
