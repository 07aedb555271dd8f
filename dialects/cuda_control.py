"""The `cuda` dialect's control flow: counted loops and conditions.

cuda.for %k = 0 to 2048 { ... }              // for (int k = 0; k < 2048; ++k) { ... }
cuda.for %k = 0 to %end of 32 { ... }        // for (int k = 0; k < end; ++k) { ... }
cuda.if %c { ... } else { ... }              // if (c) { ... } else { ... }
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, UnitAttr, i1
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, ExtentAttr, parse_extent, print_extent

INDEX = IndexType()


@irdl_op_definition
class ForOp(IRDLOperation):
    """`for (int k = 0; k < 8; ++k) { ... }`: `cuda.for %k = 0 to 8 { ... }`; also `unroll` or `rolled`.

    The compiler is told to unroll it, or not to. An end that is computed is at most the extent.
    """

    name = "cuda.for"

    extent = prop_def(ExtentAttr)
    end = opt_operand_def(INDEX)
    unroll = opt_prop_def(UnitAttr)
    rolled = opt_prop_def(UnitAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: Extent,
        body: Region,
        *,
        unroll: bool = False,
        rolled: bool = False,
        end: SSAValue | None = None,
    ):
        super().__init__(
            operands=[end],
            properties={
                "extent": ExtentAttr(extent),
                "unroll": UnitAttr() if unroll else None,
                "rolled": UnitAttr() if rolled else None,
            },
            regions=[body],
        )

    @property
    def induction_var(self) -> BlockArgument:
        """The counter."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        extent = self.extent.data
        if isinstance(extent, int) and extent < 0:
            raise VerifyException(f"extent must not be negative, got {extent}")
        if tuple(self.body.block.arg_types) != (INDEX,):
            raise VerifyException("body must take exactly the loop counter, an index")
        if self.unroll is not None and self.rolled is not None:
            raise VerifyException("is to be unrolled, or it is not")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_argument(self.induction_var, print_type=False)
        printer.print_string(" = 0 to ")
        if self.end is not None:
            printer.print_ssa_value(self.end)
            printer.print_string(" of ")
        print_extent(printer, self.extent.data)
        hint = (
            "unroll " if self.unroll is not None else "rolled " if self.rolled is not None else ""
        )
        printer.print_string(f" {hint}")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        counter = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_punctuation("=")
        pos = parser.pos
        if parser.parse_integer(allow_boolean=False) != 0:
            parser.raise_error("loops count from 0; put the offset into the index", pos)
        parser.parse_keyword("to")
        end: SSAValue | None = None
        if (named := parser.parse_optional_unresolved_operand()) is not None:
            end = parser.resolve_operand(named, INDEX)
            parser.parse_keyword("of")
        extent = parse_extent(parser)
        unroll = parser.parse_optional_keyword("unroll") is not None
        rolled = not unroll and parser.parse_optional_keyword("rolled") is not None
        body = parser.parse_region((counter,))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(extent, body, unroll=unroll, rolled=rolled, end=end)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class IfOp(IRDLOperation):
    """`if (c) { ... } else { ... }`: `cuda.if %c { ... } else { ... }`."""

    name = "cuda.if"

    condition = operand_def(i1)
    then = region_def("single_block")
    otherwise = region_def()

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, condition: SSAValue, then: Region, otherwise: Region | None = None):
        super().__init__(operands=[condition], regions=[then, otherwise or Region()])

    def verify_(self) -> None:
        if any(region.block.args for region in self.regions if region.blocks):
            raise VerifyException("the blocks of an if take no arguments")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then, print_empty_block=False)
        if self.otherwise.blocks:
            printer.print_string(" else ")
            printer.print_region(self.otherwise, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parser.parse_operand(i1)
        then = parser.parse_region()
        otherwise = parser.parse_region() if parser.parse_optional_keyword("else") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(condition, then, otherwise)
        for region in op.regions[: 1 if otherwise is None else 2]:
            if not region.blocks:
                region.add_block(Block())
        if attributes is not None:
            op.attributes |= attributes.data
        return op
