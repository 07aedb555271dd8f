"""The `tile` dialect: a kernel's schedule on an abstract parallel machine.

    tile.launch (%row = 32 : block, %lane = 256 : thread) schedule(#tile.schedule<threads = 256>) {
      %xs = tile.stage %x[%row, 0] : memref<32x2048xf32> -> memref<2048xf32, "shared">
      %p = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %xs[%k * 256 + %lane] : memref<2048xf32, "shared">
        loop.yield %v : f32
      }
      %sum = tile.combine add %p over(%lane) : f32
      ...
    }

Three facts about hardware and no more: a grid of parallel threads, grouped in blocks, each block with a
fast scratchpad. A launch stands inside a `loop.kernel` in place of its outer loops. On a CPU a block is a
unit of work for the thread pool and has one thread. The blocks along a `cluster` axis run at the same time,
and can copy to each other's scratchpads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.ir import (
    BlockArgument,
    Dialect,
    Operation,
    SSAValue,
)
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    HasAncestor,
    MemoryAllocEffect,
    MemoryReadEffect,
)
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, index_properties, verify_access
from .inside import ops_in
from .loop import ForOp
from .schedule import SWIZZLE_BYTES, ScheduleAttr, Transport, TransportAttr
from .sizes import static_shape
from .tile_axes import AxisAttr, Level, LevelAttr
from .tile_folds import CombineOp, PrefixOp
from .tile_launch import MAX_CLUSTER, MAX_THREADS, LaunchOp, enclosing_launch
from .tile_mma import MmaOp, WgmmaOp
from .tile_pack import SHARED, PackOp, PackYieldOp
from .wgmma import ROW_BYTES

MAX_BUFFERS = 8
"""Buffers that a slab may have: small ones need many on their way to hide the latency of memory."""


PIPELINED = "pipelined"
"""Marks a loop that starts to copy the slabs of later iterations before it computes its own."""


def arguments_behind(values: Iterable[SSAValue]) -> set[BlockArgument]:
    """The axes, counters and arrays that values are computed from."""
    found: set[BlockArgument] = set()
    todo, seen = list(values), set[SSAValue]()
    while todo:
        value = todo.pop()
        if isinstance(value, BlockArgument):
            found.add(value)
        elif value not in seen and isinstance(value.owner, Operation):
            seen.add(value)
            todo += [operand for op in ops_in(value.owner) for operand in op.operands]
    return found


@irdl_op_definition
class StageOp(IRDLOperation):
    """Copy a slab of an input into the block's scratchpad; all threads of the block take part.

    The slab starts at the index given and its axes are the trailing axes of the source. The index may
    read block axes, counters of loops around the copy, and what is computed from these. What lies outside of
    the source is 0.
    ```
    %xs = tile.stage %x[%row, 0] : memref<32x2048xf32> -> memref<2048xf32, "shared">
    %ws = tile.stage %w[%j, 0] pad 1 : memref<64x16xf32> -> memref<32x16xf32, "shared">
    %ks = tile.stage %k[%j, %c * 16] pad 4 buffers 3 via cp_async
      : memref<64x512xf32> -> memref<32x16xf32, "shared">
    ```
    What it means does not depend on the rest, which says how: with `pad`, rows lie that many elements further
    apart than they are long; with `buffers`, the iterations of the loop around it fill as many slabs in turn;
    `via` says who copies, the threads themselves if it is absent; with `swizzle`, units of 16 bytes are
    exchanged within rows of so many bytes, which the copy engine can. A slab that is `multicast 2` is the
    same for both blocks of a cluster: each has the copy engine bring half of its rows to both of them.
    """

    name = "tile.stage"

    E: ClassVar = VarConstraint("E", AnyAttr())

    source = operand_def(MemRefType.constr(E))
    origin = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    pad = opt_prop_def(IntegerAttr.constr(i64))
    buffers = opt_prop_def(IntegerAttr.constr(i64))
    via = opt_prop_def(TransportAttr)
    swizzle = opt_prop_def(IntegerAttr.constr(i64))
    multicast = opt_prop_def(IntegerAttr.constr(i64))
    slab = result_def(MemRefType.constr(E))

    traits = traits_def(HasAncestor(LaunchOp), MemoryReadEffect(), MemoryAllocEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$source `` custom<AffineIndex>($origin, $map) (`pad` $pad^)? "
        "(`buffers` $buffers^)? (`via` $via^)? (`swizzle` $swizzle^)? "
        "(`multicast` $multicast^)? attr-dict `:` type($source) `->` type($slab)"
    )

    def __init__(
        self,
        source: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        shape: Sequence[int],
    ):
        assert isinstance(source.type, MemRefType)
        map_attr, operands = index_properties((exprs, operands))
        slab = MemRefType(source.type.element_type, shape, memory_space=SHARED)
        super().__init__(
            operands=[source, operands],
            properties={"map": map_attr},
            result_types=[slab],
        )

    @property
    def padding(self) -> int:
        """Elements that a row is longer than its content."""
        return 0 if self.pad is None else self.pad.value.data

    @property
    def num_buffers(self) -> int:
        """Slabs that take turns; 1 if there is but one."""
        return 1 if self.buffers is None else self.buffers.value.data

    @property
    def transport(self) -> Transport:
        """Who copies."""
        return Transport.SYNC if self.via is None else self.via.data

    @property
    def swizzle_bytes(self) -> int:
        """The width of the rows within which units are exchanged; 0 if none are."""
        return 0 if self.swizzle is None else self.swizzle.value.data

    @property
    def receivers(self) -> int:
        """Blocks in which each of its copies arrives; 1 if that is the block's own alone."""
        return 1 if self.multicast is None else self.multicast.value.data

    def verify_(self) -> None:
        verify_access(self.map.data, self.origin, self.source.type)
        source, slab = self.source.type, self.slab.type
        assert isinstance(source, MemRefType)
        assert isinstance(slab, MemRefType)
        if slab.memory_space != SHARED:
            raise VerifyException('the slab must be in memory space "shared"')
        self._verify_how()
        if slab.get_num_dims() > source.get_num_dims():
            raise VerifyException(f"slab {slab} has more axes than its source {source}")
        launch = enclosing_launch(self)
        for value in arguments_behind(self.origin):
            axis = launch.axis_of(value)
            if axis is not None and axis.level.data is Level.THREAD:
                raise VerifyException("the slab's origin differs between the threads of a block")
            if axis is not None and axis.level.data is Level.CLUSTER and self.multicast:
                raise VerifyException("what is multicast is the same for all blocks of a cluster")
        if self.multicast:
            self._verify_parts(launch.cluster)

    def _verify_parts(self, count: int) -> None:
        """Raise unless each of so many blocks has a part of the rows to bring."""
        assert isinstance(self.slab.type, MemRefType)
        rows = static_shape(self.slab.type)[0]
        if self.receivers != count or count == 1:
            raise VerifyException(f"is multicast to {self.receivers} blocks of clusters of {count}")
        if rows % count or self.slab.type.get_num_dims() == 1:
            raise VerifyException(f"{count} blocks of a cluster cannot share {rows} rows evenly")
        if self.transport is not Transport.TMA:
            raise VerifyException("only what goes by tma can be multicast")

    def _verify_how(self) -> None:
        """Raise unless what says how it is done fits together."""
        if self.pad is not None and self.pad.value.data < 1:
            raise VerifyException(f"pad must be positive, got {self.pad.value.data}")
        if self.transport is Transport.TMA and self.pad is not None:
            raise VerifyException("the copy engine leaves no room between rows; pad must be absent")
        if self.swizzle is not None:
            if self.swizzle_bytes not in SWIZZLE_BYTES:
                raise VerifyException(f"swizzle is 32, 64 or 128 bytes, not {self.swizzle_bytes}")
            if self.transport is not Transport.TMA:
                raise VerifyException("only what goes by tma can be swizzled")
        multiplied = any(isinstance(use.operation, WgmmaOp) for use in self.slab.uses)
        if multiplied and self.swizzle_bytes != ROW_BYTES:
            raise VerifyException(f"warpgroups multiply it, and read rows of swizzle {ROW_BYTES}")
        if self.buffers is not None:
            if not 2 <= self.num_buffers <= MAX_BUFFERS:
                raise VerifyException(
                    f"2 to {MAX_BUFFERS} buffers take turns, not {self.num_buffers}"
                )
            if not isinstance(self.parent_op(), ForOp):
                raise VerifyException("buffers take turns in a loop; the copy stands in none")


Tile = Dialect(
    "tile",
    [LaunchOp, StageOp, PackOp, PackYieldOp, CombineOp, PrefixOp, MmaOp, WgmmaOp],
    [AxisAttr, LevelAttr, ScheduleAttr, TransportAttr],
)

__all__ = [
    "MAX_BUFFERS",
    "MAX_CLUSTER",
    "MAX_THREADS",
    "PIPELINED",
    "SHARED",
    "AxisAttr",
    "CombineOp",
    "LaunchOp",
    "Level",
    "PackOp",
    "PackYieldOp",
    "PrefixOp",
    "StageOp",
    "Tile",
    "arguments_behind",
    "enclosing_launch",
]
