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

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.ir import (
    BlockArgument,
    Dialect,
    Operation,
    Region,
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
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasAncestor,
    MemoryAllocEffect,
    MemoryReadEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, affine_map, normalize_operands, verify_access
from .loop import ForOp
from .scalars import Combiner, CombinerAttr, verify_combiner
from .schedule import SWIZZLE_BYTES, ScheduleAttr, Transport, TransportAttr
from .sizes import Extent, static_extent, static_shape
from .tile_axes import AxisAttr, Level, LevelAttr
from .tile_mma import MmaOp, WgmmaOp
from .tile_pack import SHARED, PackOp, PackYieldOp

MAX_THREADS = 1024
"""Threads a block may have on every GPU that CUDA supports (CUDA C++ Programming Guide, table
"Technical Specifications per Compute Capability")."""


MAX_BUFFERS = 8
"""Buffers that a slab may have: small ones need many on their way to hide the latency of memory."""

MAX_CLUSTER = 8
"""Blocks that run at the same time as one cluster on every GPU that has clusters (CUDA C++ Programming Guide,
"Thread Block Clusters")."""

PIPELINED = "pipelined"
"""Marks a loop that starts to copy the slabs of later iterations before it computes its own."""


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run the body once for every point of the axes' index space; see the dialect's example."""

    name = "tile.launch"

    axes = prop_def(ArrayAttr[AxisAttr])
    schedule = opt_prop_def(ScheduleAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self, axes: Sequence[AxisAttr], body: Region, schedule: ScheduleAttr | None = None
    ):
        super().__init__(properties={"axes": ArrayAttr(axes), "schedule": schedule}, regions=[body])

    def axis_of(self, value: SSAValue) -> AxisAttr | None:
        """The axis whose counter `value` is, or None."""
        if isinstance(value, BlockArgument) and value.block is self.body.block:
            return self.axes.data[value.index]
        return None

    def extents(self, level: Level) -> list[Extent]:
        """Extents of the axes bound to `level`, in order."""
        return [a.extent.data for a in self.axes if a.level.data is level]

    @property
    def num_blocks(self) -> Extent:
        """Blocks of the grid, those of clusters included."""
        return prod([*self.extents(Level.BLOCK), self.cluster])

    @property
    def cluster(self) -> int:
        """Blocks of a cluster; 1 where each is alone."""
        return prod(static_extent(extent) for extent in self.extents(Level.CLUSTER))

    @property
    def num_threads(self) -> Extent:
        """Threads of a block; a number once the launch has a schedule."""
        return prod(self.extents(Level.THREAD))

    @property
    def is_partitioned(self) -> bool:
        """Whether its axes are shared out between blocks and threads."""
        decided = self.schedule is not None and self.schedule.get("threads") is not None
        return decided or bool(self.extents(Level.BLOCK))

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != len(self.axes) or any(not isinstance(a.type, IndexType) for a in args):
            raise VerifyException(f"body must take one index per axis, {len(self.axes)} in all")
        self._verify_clusters()
        schedule = self.schedule
        if schedule is not None and (
            not schedule.leaves_threads_open or schedule.get("threads") is not None
        ):
            self._verify_threads(schedule)

    def _verify_clusters(self) -> None:
        levels = [axis.level.data for axis in self.axes]
        clusters = self.extents(Level.CLUSTER)
        if not clusters:
            return
        if len(clusters) > 1 or Level.BLOCK in levels[levels.index(Level.CLUSTER) :]:
            raise VerifyException("one axis may be of clusters, behind those of blocks")
        if not isinstance(clusters[0], int) or not 1 <= clusters[0] <= MAX_CLUSTER:
            raise VerifyException(f"a cluster has 1 to {MAX_CLUSTER} blocks, not {clusters[0]}")

    def _verify_threads(self, schedule: ScheduleAttr) -> None:
        threads = self.num_threads
        if not isinstance(threads, int):
            raise VerifyException(f"the number of threads must be constant, got {threads}")
        if threads > MAX_THREADS:
            raise VerifyException(f"{threads} threads exceed the {MAX_THREADS} a block can hold")
        said = schedule.get("threads")
        if said is not None and said != threads:
            raise VerifyException(f"schedule says {said} threads, the axes have {threads}")

    def print(self, printer: Printer) -> None:
        def print_axis(pair: tuple[BlockArgument, AxisAttr]) -> None:
            printer.print_block_argument(pair[0], print_type=False)
            printer.print_string(" = ")
            pair[1].print_parameters(printer)

        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(zip(self.body.block.args, self.axes, strict=True), print_axis)
        if self.schedule is not None:
            printer.print_string(" schedule(")
            printer.print_attribute(self.schedule)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        def parse_axis() -> tuple[Parser.Argument, AxisAttr]:
            counter = parser.parse_argument(expect_type=False).resolve(IndexType())
            parser.parse_punctuation("=")
            return counter, AxisAttr.new(AxisAttr.parse_parameters(parser))

        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_axis)
        schedule = None
        if parser.parse_optional_keyword("schedule"):
            parser.parse_punctuation("(")
            pos = parser.pos
            schedule = parser.parse_attribute()
            if not isinstance(schedule, ScheduleAttr):
                parser.raise_error(f"expected #tile.schedule<...>, got {schedule}", pos, parser.pos)
            parser.parse_punctuation(")")
        body = parser.parse_region([counter for counter, _ in pairs])
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls([axis for _, axis in pairs], body, schedule)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class StageOp(IRDLOperation):
    """Copy a slab of an input into the block's scratchpad; all threads of the block take part.

    The slab starts at the index given and its axes are the trailing axes of the source. The index may
    read block axes, and counters of loops around the copy. What lies outside of the source is 0.
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
        exprs, operands = normalize_operands(exprs, operands)
        slab = MemRefType(source.type.element_type, shape, memory_space=SHARED)
        super().__init__(
            operands=[source, operands],
            properties={"map": AffineMapAttr(affine_map(len(operands), exprs))},
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
        for value in self.origin:
            axis = launch.axis_of(value)
            counts = isinstance(value, BlockArgument) and axis is None
            if not counts and (axis is None or axis.level.data is Level.THREAD):
                raise VerifyException(
                    "the slab's origin may read block axes and loop counters only"
                )
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
        if self.buffers is not None:
            if not 2 <= self.num_buffers <= MAX_BUFFERS:
                raise VerifyException(
                    f"2 to {MAX_BUFFERS} buffers take turns, not {self.num_buffers}"
                )
            if not isinstance(self.parent_op(), ForOp):
                raise VerifyException("buffers take turns in a loop; the copy stands in none")


@irdl_op_definition
class CombineOp(IRDLOperation):
    """Fold one value per thread across thread axes; every thread gets the result.

    ```
    %sum = tile.combine add %p over(%lane) : f32
    ```
    """

    name = "tile.combine"

    T: ClassVar = VarConstraint("T", AnyAttr())

    combiner = prop_def(CombinerAttr)
    value = operand_def(T)
    axes = var_operand_def(IndexType)
    result = result_def(T)

    traits = traits_def(HasAncestor(LaunchOp), Pure())
    assembly_format = "$combiner $value `over` `` `(` $axes `)` attr-dict `:` type($value)"

    def __init__(self, combiner: Combiner, value: SSAValue, axes: Sequence[SSAValue]):
        super().__init__(
            operands=[value, axes],
            properties={"combiner": CombinerAttr(combiner)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        verify_combiner(self.combiner.data, self.value.type)
        if not self.axes:
            raise VerifyException("needs at least one axis to combine over")
        launch = enclosing_launch(self)
        for value in self.axes:
            axis = launch.axis_of(value)
            if axis is None or axis.level.data is not Level.THREAD:
                raise VerifyException("combines over thread axes of the enclosing launch only")


@irdl_op_definition
class PrefixOp(IRDLOperation):
    """Fold the values of the threads before each one along a thread axis; the first gets the identity.

    ```
    %before = tile.prefix add %p over(%lane) : f32
    ```
    """

    name = "tile.prefix"

    T: ClassVar = VarConstraint("T", AnyAttr())

    combiner = prop_def(CombinerAttr)
    value = operand_def(T)
    axis = operand_def(IndexType)
    result = result_def(T)

    traits = traits_def(HasAncestor(LaunchOp), Pure())
    assembly_format = "$combiner $value `over` `` `(` $axis `)` attr-dict `:` type($value)"

    def __init__(self, combiner: Combiner, value: SSAValue, axis: SSAValue):
        super().__init__(
            operands=[value, axis],
            properties={"combiner": CombinerAttr(combiner)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        verify_combiner(self.combiner.data, self.value.type)
        axis = enclosing_launch(self).axis_of(self.axis)
        if axis is None or axis.level.data is not Level.THREAD:
            raise VerifyException("folds along a thread axis of the enclosing launch only")


def enclosing_launch(op: Operation) -> LaunchOp:
    """The launch that `op` stands in; its traits guarantee there is one."""
    parent = op.parent_op()
    while not isinstance(parent, LaunchOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent


Tile = Dialect(
    "tile",
    [LaunchOp, StageOp, PackOp, PackYieldOp, CombineOp, PrefixOp, MmaOp, WgmmaOp],
    [AxisAttr, LevelAttr, ScheduleAttr, TransportAttr],
)
