"""`kernel.wgmma`: warpgroups multiply slabs somewhere in shared memory and add to what they have.

    %d:32 = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus (%c0, ..., %c31)
      : memref<3x64x64xbf16, "shared"> by memref<3x64x64xbf16, "shared">
    %e:32 = kernel.wgmma (%a0, ..., %a15) by %vs[%buffer, 0, 0] transposed plus (%c0, ..., %c31)
      : bf16 by memref<3x32x64xbf16, "shared">

    %f:64 = kernel.wgmma %xs[%buffer, 0, 0] by %vs[%buffer, 0, 0, 0] transposed plus (%c0, ..., %c63)
      of 64 by 128 : memref<3x64x64xbf16, "shared"> by memref<3x2x64x64xbf16, "shared">

`wgmma.py` says whose elements are where. The panels of a transposed slab are an axis in front of its rows. A
product that is `leaving 1` goes on while the threads do, and when its operation ends at most one is not done,
itself. Sums that are on their way are those of another product, or of the loop around it, until they are
waited for:

    %g:32 = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus (%c0, ..., %c31) leaving 1 : ...
    %h:32 = kernel.wgmma_wait (%g#0, ..., %g#31)

One that is `joined` to the next begins with it: the threads wait for neither of them alone.

In a `cuda.func` a slab is a part of one row of elements, so that `of 64 by 64` says how large it is:

    %g:32 = kernel.wgmma %xs[%buffer * 4096] by %ws[%buffer * 2048] plus (...) of 64 by 64 leaving 1 : ...
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..index.affine import ZERO
from .index import verify_access
from .inside import has_flat_addresses
from .kernel_mma import WgmmaWaitOp
from .kernel_shared import verify_shared_alignment
from .loop_access import LoadOp, StoreOp, in_registers, stays_in_registers
from .sizes import static_shape
from .wgmma import (
    GROUP_ROWS,
    PANEL,
    ROW_BYTES,
    WARPGROUP,
    sums_of,
    verify_columns,
    verify_depth,
    verify_element,
    verify_extents,
    verify_held,
    verify_same_depth,
    verify_slab,
)
from .wgmma_base import WgmmaBase


def _slab(memory: SSAValue) -> MemRefType:
    """What a slab is a part of."""
    assert isinstance(memory.type, MemRefType)
    return memory.type


@irdl_op_definition
class WgmmaOp(WgmmaBase):
    """Multiply the rows of one slab, or those that the threads hold, by another slab; see `wgmma.py`.

    A slab is the last two axes of what its index begins in, which is a multiple of 8 rows of it. One in
    panels is the last three, all of them, and the operation says of how many rows and columns. All threads
    of the block must take part.
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
        return static_shape(_slab(self.rows))[-2]

    def _verify_panel(self) -> tuple[int, int]:
        """Columns and positions of a panel of the slab of columns."""
        columns = _slab(self.columns)
        return verify_columns(columns, columns.get_num_dims() - 2, self.transposed is not None)

    def _verify_columns(self) -> int:
        """The positions of the slab of columns; raises unless the operation has all panels of it."""
        width, depth = self._verify_panel()
        if self.extents is None:
            return depth
        columns = _slab(self.columns)
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
            if not isinstance(slab.type, MemRefType):
                raise VerifyException(f"multiplies slabs in shared memory, got {slab.type}")
            verify_access(map.data, indices, slab.type)
            verify_shared_alignment(slab, 8 * ROW_BYTES)
        depth = self._verify_flat() if has_flat_addresses(self) else self._verify_slabs()
        if self.rows is None:
            verify_held(self.held, _slab(self.columns).element_type, depth)
        elif self.held:
            raise VerifyException("multiplies a slab of rows or what the threads hold")
        verify_extents(*self.shape)
        self._verify_joined()
        if self.pending:
            for product in self.products:
                verify_waited(product)
        self._verify_sums()

    def _verify_flat(self) -> int:
        """The positions of slabs that are parts of one row of elements; raises if there are no such slabs."""
        if self.extents is None:
            raise VerifyException("says of how many rows and columns")
        elements = [_slab(slab).element_type for slab, _, _ in self.slabs]
        verify_element(elements[0])
        if len(set(elements)) > 1:
            raise VerifyException(f"multiplies {elements[0]} by {elements[1]}")
        height, width = self.shape
        if self.rows is None and height != GROUP_ROWS:
            raise VerifyException(f"threads hold {GROUP_ROWS} rows of a warpgroup, not {height}")
        verify_depth(self.depth)
        if self.transposed and width % PANEL:
            raise VerifyException(f"multiplies panels of {PANEL} columns, got {width}")
        return self.depth

    def _verify_slabs(self) -> int:
        """The positions of slabs that are the last axes of theirs; raises if they cannot be multiplied."""
        for slab, _, _ in self.slabs:
            verify_slab(_slab(slab), _slab(slab).get_num_dims() - 2)
        depth = self._verify_columns()
        if self.rows is not None:
            verify_same_depth(static_shape(_slab(self.rows))[-1], depth)
        return depth

    def _verify_sums(self) -> None:
        """Raise unless there are as many sums as each thread of the function gets."""
        function = self.parent_op()
        while function is not None and not function.has_trait(SymbolOpInterface):
            function = function.parent_op()
        threads = None if function is None else function.properties.get("threads")
        if not isinstance(threads, IntegerAttr):
            return
        (height, width), count = self.shape, threads.value.data
        groups = 1 if self.rows else count // WARPGROUP
        sums = sums_of(height * groups, width, count)
        if sums != len(self.sums):
            raise VerifyException(
                sums if isinstance(sums, str) else f"gives {sums} sums, not {len(self.sums)}"
            )

    def _verify_joined(self) -> None:
        """Raise unless a product that is joined to the next has one, and none waits for a part of some."""
        if self.joined is not None:
            after = self.next_op
            while after is not None and not isinstance(after, WgmmaOp):
                after = after.next_op if stays_in_registers(after) else None
            if after is None:
                raise VerifyException("is joined to a product that does not follow it")
        elif self.pending % (self.joined_to_it + 1):
            raise VerifyException(
                f"leaves {self.pending} of products that begin {self.joined_to_it + 1} at a time"
            )


def verify_waited(value: SSAValue) -> None:
    """Raise unless nothing reads sums that are on their way but products, loops that go on, and waits.

    Sums that lie in registers are on their way until a wait stands between the products and who reads them.
    """
    for use in value.uses:
        user, index = use.operation, use.index
        if isinstance(user, WgmmaWaitOp):
            continue
        if isinstance(user, WgmmaOp) and value in user.sums and value not in user.held:
            continue
        if isinstance(user, StoreOp) and in_registers(user.memref):
            for other in user.memref.uses:
                reader = other.operation
                if isinstance(reader, LoadOp) and not _follows_wait(reader):
                    _verify_goes_on(reader.result)
            continue
        loop = user.parent_op()
        if isinstance(user, scf.YieldOp) and isinstance(loop, scf.ForOp):
            again, after = loop.body.block.args[index + 1], loop.res[index]
            if again is not value:
                for each in (again, after):
                    verify_waited(each)
            continue
        raise VerifyException(f"sums that are on their way are read by '{user.name}'")


def _verify_goes_on(value: SSAValue) -> None:
    """Raise unless an element of registers whose sum is on its way is read by products and waits alone."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, WgmmaOp) and value in user.held:
            raise VerifyException("sums that are on their way are multiplied")
        if not isinstance(user, WgmmaOp | WgmmaWaitOp):
            raise VerifyException(f"sums that are on their way are read by '{user.name}'")


def _follows_wait(op: Operation) -> bool:
    """Whether all products were waited for since the last one began, whichever way leads here."""
    at: Operation | None = op
    while at is not None:
        before = at.prev_op
        while before is not None:
            if isinstance(before, WgmmaWaitOp) or (
                isinstance(before, WgmmaOp) and not before.pending and before.joined is None
            ):
                return True
            if any(isinstance(each, WgmmaOp) for each in before.walk()):
                return False
            before = before.prev_op
        at = at.parent_op()
        if isinstance(at, scf.ForOp) and any(isinstance(each, WgmmaOp) for each in at.walk()):
            return False
    return False
