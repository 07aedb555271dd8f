"""`kernel.mma` and `kernel.wgmma_wait`: warps multiply small matrices; warpgroups are waited for.

%d0, %d1, %d2, %d3 = kernel.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .mma import MmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply the rows that each thread holds by its column; see `mma.py`.

    All threads of the warp must take part: it is not Pure, so that nothing moves it where some do not.
    """

    name = "kernel.mma"


@irdl_op_definition
class WgmmaWaitOp(IRDLOperation):
    """Wait for all products: `%d:32 = kernel.wgmma_wait (%c0, ..., %c31)`.

    The results are their sums, in order.
    """

    name = "kernel.wgmma_wait"

    sums = var_operand_def(f32)
    results_ = var_result_def(f32)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, sums: Sequence[SSAValue]):
        super().__init__(operands=[list(sums)], result_types=[[f32] * len(sums)])

    def verify_(self) -> None:
        if len(self.results_) != len(self.sums):
            raise VerifyException(f"gives {len(self.results_)} of {len(self.sums)} sums")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.sums, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaWaitOp:
        sums = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        op = cls([parser.resolve_operand(value, f32) for value in sums])
        op.attributes |= parser.parse_optional_attr_dict()
        return op
