"""The axes of a `tile.launch`: an extent, and the level where the points run."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from .sizes import Extent, ExtentAttr, parse_extent, print_extent


class Level(StrEnum):
    """Where the points of a launch axis run: blocks, the blocks of a cluster, the threads of a block."""

    BLOCK = "block"
    CLUSTER = "cluster"
    THREAD = "thread"


@irdl_attr_definition
class LevelAttr(EnumAttribute[Level], SpacedOpaqueSyntaxAttribute):
    """The level of a launch axis: `#tile<level block>`."""

    name = "tile.level"


@irdl_attr_definition
class AxisAttr(ParametrizedAttribute, SpacedOpaqueSyntaxAttribute):
    """One launch axis, an extent and the level it is bound to: `#tile<axis 32 : block>`."""

    name = "tile.axis"

    extent: ExtentAttr
    level: LevelAttr

    def __init__(self, extent: Extent, level: Level):
        super().__init__(ExtentAttr(extent), LevelAttr(level))

    def verify(self) -> None:
        extent = self.extent.data
        if isinstance(extent, int) and extent < 0:
            raise VerifyException(f"axis extent must not be negative, got {extent}")

    def print_parameters(self, printer: Printer) -> None:
        print_extent(printer, self.extent.data)
        printer.print_string(f" : {self.level.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        extent = parse_extent(parser)
        parser.parse_punctuation(":")
        return (ExtentAttr(extent), LevelAttr(parser.parse_str_enum(Level)))
