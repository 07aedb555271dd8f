"""`kernel.mma` and `kernel.wgmma_wait`: warps multiply small matrices; warpgroups are waited for.

%d0, %d1, %d2, %d3 = kernel.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .inside import has_flat_addresses
from .mma import MmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each lane by one column of each; see `mma.py`.

    All threads of the warp must take part: it is not Pure, so that nothing moves it where some do not.
    """

    name = "kernel.mma"


def verify_variables(op: Operation, onto: Attribute | None, sums: Sequence[SSAValue]) -> None:
    """Raise if products are put onto sums that are no variables of C++."""
    if onto is None:
        return
    if not has_flat_addresses(op):
        raise VerifyException("adds to values, which do not change")
    if not all(isinstance(v.owner, Operation) and v.owner.name == "cuda.variable" for v in sums):
        raise VerifyException("only what a cuda.variable is can be added onto")


@irdl_op_definition
class WgmmaWaitOp(IRDLOperation):
    """Wait for all products: `%d:32 = kernel.wgmma_wait (%c0, ..., %c31)`.

    The results are their sums, in order. `kernel.wgmma_wait onto (%c0)` is of variables, which hold them.
    """

    name = "kernel.wgmma_wait"

    sums = var_operand_def(f32)
    onto = opt_prop_def(UnitAttr)
    results_ = var_result_def(f32)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, sums: Sequence[SSAValue], onto: bool = False):
        super().__init__(
            operands=[list(sums)],
            properties={"onto": UnitAttr() if onto else None},
            result_types=[[] if onto else [f32] * len(sums)],
        )

    def verify_(self) -> None:
        if len(self.totals) != len(self.sums):
            raise VerifyException(f"gives {len(self.results_)} of {len(self.sums)} sums")
        verify_variables(self, self.onto, self.sums)

    @property
    def totals(self) -> Sequence[SSAValue]:
        """What holds the sums afterwards."""
        return self.sums if self.onto else self.results_

    def print(self, printer: Printer) -> None:
        printer.print_string(" onto " if self.onto else " ")
        with printer.in_parens():
            printer.print_list(self.sums, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaWaitOp:
        onto = parser.parse_optional_keyword("onto") is not None
        sums = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        op = cls([parser.resolve_operand(value, f32) for value in sums], onto)
        op.attributes |= parser.parse_optional_attr_dict()
        return op
