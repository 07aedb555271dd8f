"""`tile.launch`: the points of an index space, shared out between blocks, clusters of these and threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IndexType
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .schedule import ScheduleAttr
from .sizes import Extent, static_extent
from .tile_axes import AxisAttr, Level

MAX_THREADS = 1024
"""Threads a block may have on every GPU that CUDA supports (CUDA C++ Programming Guide, table
"Technical Specifications per Compute Capability")."""

MAX_CLUSTER = 8
"""Blocks that run at the same time as one cluster on every GPU that has clusters (CUDA C++ Programming Guide,
"Thread Block Clusters")."""


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
        """Whether its axes are shared out between blocks and threads, or all is decided."""
        decided = self.schedule is not None and self.schedule.settles_threads
        return decided or any(axis.level.data is not Level.THREAD for axis in self.axes)

    @property
    def is_given(self) -> bool:
        """Whether a person said how it is scheduled, all of it."""
        return self.schedule is not None and self.schedule.get("given") is not None

    @property
    def settled(self) -> str | None:
        """Why a pass that decides how a launch is computed leaves it alone; None while it is open."""
        if self.schedule is not None:
            return "it has a schedule already"
        return "the launch is partitioned already" if self.is_partitioned else None

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != len(self.axes) or any(not isinstance(a.type, IndexType) for a in args):
            raise VerifyException(f"body must take one index per axis, {len(self.axes)} in all")
        if _launch_around(self) is not None:
            raise VerifyException("a launch cannot stand in another one")
        self._verify_clusters()
        schedule = self.schedule
        if schedule is None:
            return
        for key in ("m", "n"):
            if (axis := schedule.get(key)) is not None and axis >= len(self.axes):
                said = f"axis {axis} of {len(self.axes)}"
                raise VerifyException(f"schedule says that `{key}` is {said}, counted from 0")
        if schedule.word("vectors") is not None:  # points of a CPU's block
            return
        if schedule.settles_threads or not schedule.choices.data:
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


def enclosing_launch(op: Operation) -> LaunchOp:
    """The launch that `op` stands in; its traits guarantee there is one."""
    launch = _launch_around(op)
    assert launch is not None
    return launch


def _launch_around(op: Operation) -> LaunchOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, LaunchOp):
        parent = parent.parent_op()
    return parent
