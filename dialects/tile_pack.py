"""`tile.pack`: an array of a block's scratchpad that is filled with what a body computes.

    %ws = tile.pack (%j = 64, %k = 512) panels 32 : memref<64x512xf32, "shared"> {
      %v = loop.load %w[%j_block * 64 + %j, %k_block * 512 + %k] : memref<2048x2048xf32>
      tile.yield %v : f32
    }

`tile.stage` copies a box of one input as it lies there; this one computes each element, so that an operand of
a contraction can be gathered from a window, masked, widened, or be the result of what was fused into it. All
threads of the block take part.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from .loop import LoadOp
from .sizes import shape_of, static_shape

SHARED = StringAttr("shared")
"""The memory space of a block's scratchpad."""


@irdl_op_definition
class PackYieldOp(AbstractYieldOperation[Attribute]):
    """Gives the element of the enclosing `tile.pack`: `tile.yield %v : f32`."""

    name = "tile.yield"

    traits = lazy_traits_def(lambda: (HasParent(PackOp), IsTerminator(), Pure()))


@irdl_op_definition
class PackOp(IRDLOperation):
    """Fill an array of the scratchpad, rows by positions of a reduced axis, with what a body computes.

    ```
    %xs = tile.pack (%i = 8, %k = 16) pad 16 : memref<8x16xf32, "shared"> {
      %v = loop.load %x[%i_block * 8 + %i, %k] : memref<32x16xf32>
      tile.yield %v : f32
    }
    ```
    What it holds does not depend on how it lies there. Without `panels`, a row lies at once, `pad` elements
    apart from the next one; with it, the elements of so many rows at one position are neighbours, and a
    panel of rows is followed by the next. With `phases 2` every second position of a row lies at once, and
    then the others. With `in_place` nothing is copied: whoever reads an element loads it from the array that
    the body loads it from.
    """

    name = "tile.pack"

    panels = opt_prop_def(IntegerAttr.constr(i64))
    pad = opt_prop_def(IntegerAttr.constr(i64))
    phases = opt_prop_def(IntegerAttr.constr(i64))
    in_place = opt_prop_def(UnitAttr)
    packed = result_def(MemRefType)
    body = region_def("single_block")

    traits = traits_def(MemoryReadEffect(), MemoryAllocEffect())

    def __init__(
        self,
        type: MemRefType,
        body: Region,
        *,
        panels: int | None = None,
        pad: int | None = None,
        phases: int | None = None,
        in_place: bool = False,
    ):
        super().__init__(
            properties={
                "in_place": UnitAttr() if in_place else None,
                "panels": None if panels is None else IntegerAttr(panels, i64),
                "pad": None if pad is None else IntegerAttr(pad, i64),
                "phases": None if phases is None else IntegerAttr(phases, i64),
            },
            result_types=[type],
            regions=[body],
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and positions of each."""
        assert isinstance(self.packed.type, MemRefType)
        return tuple(static_shape(self.packed.type))

    @property
    def panel_rows(self) -> int | None:
        """Rows of a panel, or None if rows lie one after the other."""
        return None if self.panels is None else self.panels.value.data

    @property
    def phase_count(self) -> int:
        """How many positions apart those are that are neighbours."""
        return 1 if self.phases is None else self.phases.value.data

    @property
    def row_stride(self) -> int:
        """Elements from one row to the next, if there are no panels."""
        return self.shape[1] + (0 if self.pad is None else self.pad.value.data)

    @property
    def element(self) -> SSAValue:
        """What the body computes."""
        end = self.body.block.last_op
        assert isinstance(end, PackYieldOp)
        return end.arguments[0]

    @property
    def source(self) -> LoadOp | None:
        """The load whose element the body yields, maybe under a condition, if it computes nothing."""
        value = self.element
        if isinstance(value.owner, scf.IfOp):
            end = value.owner.true_region.block.last_op
            assert isinstance(end, scf.YieldOp)
            (value,) = end.operands
        return value.owner if isinstance(value.owner, LoadOp) else None

    def verify_(self) -> None:
        type = self.packed.type
        assert isinstance(type, MemRefType)
        if type.memory_space != SHARED or type.get_num_dims() != 2:
            raise VerifyException(f'must be rows by positions in memory space "shared", got {type}')
        rows, _ = self.shape
        for name in ("panels", "pad", "phases"):
            value = self.properties.get(name)
            assert value is None or isinstance(value, IntegerAttr)
            if value is not None and value.value.data < 1:
                raise VerifyException(f"{name} must be positive, got {value.value.data}")
        if self.panel_rows is not None and (self.pad is not None or rows % self.panel_rows):
            raise VerifyException(
                f"panels of {self.panel_rows} do not make up {rows} rows unpadded"
            )
        laid_out = [name for name in ("panels", "pad", "phases") if name in self.properties]
        if self.phases is not None and len(laid_out) > 1:
            raise VerifyException(f"rows in phases have no {laid_out[0]}")
        if self.in_place is not None and laid_out:
            raise VerifyException(f"what is read in place has no {laid_out[0]}")
        if any(not isinstance(t, IndexType) for t in self.body.block.arg_types):
            raise VerifyException("the body counts rows and positions with an index each")
        end = self.body.block.last_op
        if len(self.body.block.args) != 2 or not isinstance(end, PackYieldOp):
            raise VerifyException("the body takes two counters and ends with tile.yield")
        if tuple(v.type for v in end.arguments) != (type.element_type,):
            raise VerifyException(f"the body must yield one {type.element_type}")
        if self.in_place is not None and self.source is None:
            raise VerifyException("what is read in place must be an element that the body loads")
        if not _within_launch(self):
            raise VerifyException("stands in no tile.launch")

    def print(self, printer: Printer) -> None:
        def print_axis(pair: tuple[SSAValue, int]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(f" = {pair[1]}")

        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(zip(self.body.block.args, self.shape, strict=True), print_axis)
        if self.panel_rows is not None:
            printer.print_string(f" panels {self.panel_rows}")
        if self.pad is not None:
            printer.print_string(f" pad {self.pad.value.data}")
        if self.phases is not None:
            printer.print_string(f" phases {self.phase_count}")
        if self.in_place is not None:
            printer.print_string(" in_place")
        printer.print_string(" : ")
        printer.print_attribute(self.packed.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> PackOp:
        def parse_axis() -> tuple[Parser.Argument, int]:
            counter = parser.parse_argument(expect_type=False).resolve(IndexType())
            parser.parse_punctuation("=")
            return counter, parser.parse_integer(allow_boolean=False, allow_negative=False)

        pos = parser.pos
        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_axis)
        panels = parser.parse_integer() if parser.parse_optional_keyword("panels") else None
        pad = parser.parse_integer() if parser.parse_optional_keyword("pad") else None
        phases = parser.parse_integer() if parser.parse_optional_keyword("phases") else None
        in_place = parser.parse_optional_keyword("in_place") is not None
        parser.parse_punctuation(":")
        type = parser.parse_type()
        shape = [extent for _, extent in pairs]
        if not isinstance(type, MemRefType) or list(shape_of(type)) != shape:
            parser.raise_error(f"expected a memref of the counters' extents, got {type}", pos)
        body = parser.parse_region([counter for counter, _ in pairs])
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(type, body, panels=panels, pad=pad, phases=phases, in_place=in_place)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


def _within_launch(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent.name != "tile.launch":
        parent = parent.parent_op()
    return parent is not None
