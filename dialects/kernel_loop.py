"""The loop of a host function: the same launches once per step of the leading axis of arrays.

kernel.loop carried(%h = %h0) slices(%x_t = %x) stacks(%h_t = %hs)
    : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32> {
  kernel.launch @k_step(%h, %x_t, %h_t) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>, memref<4xf32>
}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator
from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, memref_of, shape_of
from .tensor_ir_scan import is_aligned

_GROUPS = ("carried", "slices", "stacks")


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Run the body once per step `t` of the leading axis of the stacks; with `reversed`, the last step first.

    The body's arguments are slices of arrays: of `slices` and of `stacks` slice `t`, and of what is carried
    the slice of the stack of the same number that the step before wrote. In the first step that is the array
    given.
    ```
    kernel.loop carried(%h = %h0) slices(%x_t = %x) stacks(%h_t = %hs)
        : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32> {
      kernel.launch @k_step(%h, %x_t, %h_t) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>, memref<4xf32>
    }
    ```
    """

    name = "kernel.loop"

    reversed = opt_prop_def(UnitAttr)
    carried = var_operand_def(MemRefType)
    slices = var_operand_def(MemRefType)
    stacks = var_operand_def(MemRefType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), NoTerminator())

    def __init__(
        self,
        operands: Sequence[Sequence[SSAValue]],
        body: Region | None = None,
        *,
        reversed: bool = False,
    ):
        """A loop over `carried`, `slices` and `stacks`; without `body`, one that does nothing yet."""
        if body is None:
            body = Region(Block(arg_types=_argument_types([[v.type for v in g] for g in operands])))
        super().__init__(
            operands=[list(group) for group in operands],
            properties={"reversed": UnitAttr() if reversed else None},
            regions=[body],
        )

    @property
    def trips(self) -> Extent:
        """How many steps there are."""
        return shape_of(cast(MemRefType, self.stacks[0].type))[0]

    def array_of(self, argument: BlockArgument) -> SSAValue:
        """The array that an argument of the body is a slice of; of what is carried, the stack."""
        arrays = [*self.stacks[: len(self.carried)], *self.slices, *self.stacks]
        return arrays[argument.index]

    def verify_(self) -> None:
        if not self.stacks or len(self.carried) > len(self.stacks):
            raise VerifyException("must have a stack, and one for each value that it carries")
        sliced = [cast(MemRefType, value.type) for value in (*self.slices, *self.stacks)]
        extents = [shape_of(each)[:1] for each in sliced]
        if any(extent != extents[0] or extent in ((), (0,)) for extent in extents):
            raise VerifyException(
                "slices and stacks need one number of steps, not 0, as their first axis, got "
                + ", ".join(map(str, sliced))
            )
        if not all(is_aligned(each.element_type, shape_of(each)[1:]) for each in sliced):
            raise VerifyException("slices must begin at multiples of 16 bytes")
        expected = _argument_types([self.carried.types, self.slices.types, self.stacks.types])
        if list(self.body.block.arg_types) != expected:
            raise VerifyException(f"its body must take {', '.join(map(str, expected))}")
        stacks = expected[len(self.carried) + len(self.slices) :]
        if expected[: len(self.carried)] != stacks[: len(self.carried)]:
            raise VerifyException("carries what is no slice of the stack of the same number")
        if isinstance(self.parent_op(), LoopOp):
            raise VerifyException("a loop cannot stand in another one")

    def print(self, printer: Printer) -> None:
        arguments = iter(self.body.block.args)
        if self.reversed is not None:
            printer.print_string(" reversed")
        for name in _GROUPS:
            printer.print_string(f" {name}")
            pairs = [(next(arguments), value) for value in getattr(self, name)]
            with printer.in_parens():
                printer.print_list(pairs, lambda pair: _print_pair(printer, *pair))
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        reversed = parser.parse_optional_keyword("reversed") is not None

        def parse_pair() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return argument, parser.parse_unresolved_operand()

        groups: list[list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]]] = []
        for name in _GROUPS:
            parser.parse_keyword(name)
            groups.append(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_pair))
        parser.parse_punctuation(":")
        pos = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        pairs = [pair for group in groups for pair in group]
        if len(types) != len(pairs) or not all(isinstance(type, MemRefType) for type in types):
            parser.raise_error(f"{len(pairs)} arrays need as many memref types", pos)
        values = parser.resolve_operands([name for _, name in pairs], types, pos)
        given = iter(values)
        operands = [[next(given) for _ in group] for group in groups]
        taken = _argument_types([[v.type for v in group] for group in operands])
        arguments = [name.resolve(type) for (name, _), type in zip(pairs, taken, strict=True)]
        body = parser.parse_region(arguments)
        op = cls(operands, body, reversed=reversed)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op.attributes |= attributes.data if attributes else {}
        return op


def loop_around(op: Operation) -> LoopOp | None:
    """The loop in whose body an operation of a host function stands."""
    parent = op.parent_op()
    return parent if isinstance(parent, LoopOp) else None


def _print_pair(printer: Printer, argument: BlockArgument, value: SSAValue) -> None:
    printer.print_block_argument(argument, print_type=False)
    printer.print_string(" = ")
    printer.print_operand(value)


def _argument_types(groups: Sequence[Sequence[Attribute]]) -> list[Attribute]:
    """The types of the body's arguments, of operands of these types."""
    carried, *sliced = groups
    return [*carried, *(_slice_type(type) for group in sliced for type in group)]


def _slice_type(stack: Attribute) -> Attribute:
    memref = cast(MemRefType, stack)
    return memref_of(memref.element_type, shape_of(memref)[1:])
