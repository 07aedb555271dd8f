"""`loops-to-branches`: loops and conditions become blocks and branches.

    scf.for %i = %begin to %end step %c1 {        cf.br ^loop(%begin : index)
      ...                                       ^loop(%i: index):
    }                                             %more = arith.cmpi slt, %i, %end : index
                                                  cf.cond_br %more, ^body, ^end
                                                ^body:
                                                  ...

Operations without effects whose results nothing uses are removed. The patterns are those of xDSL's
`convert-scf-to-cf`, whose driver asks each operation twice, which takes four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from ...dialects.inside import ops_in, ops_of
from ...errors import counted
from ..decisions import record
from ..replacing import placed_like

_LOWERINGS: dict[type[Operation], RewritePattern] = {
    scf.ForOp: ForLowering(),
    scf.IfOp: IfLowering(),
}


@dataclass(frozen=True)
class LoopsToBranchesPass(ModulePass):
    """Needs nothing; leaves functions of blocks, in which no operation of `scf` is left."""

    name = "loops-to-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every loop and condition of every function."""
        for function in ops_of(op, func.FuncOp):
            for each in reversed(ops_in(function.body)):
                if is_trivially_dead(each):
                    each.detach()
                    each.erase()
            found = ops_of(function, *_LOWERINGS)
            for each in found:
                rewriter = PatternRewriter(each)
                rewriter.operation_insertion_handler.append(placed_like(each))
                _LOWERINGS[type(each)].match_and_rewrite(each, rewriter)
            said = (
                counted(len(found), "operation") if found else "it has neither loop nor condition"
            )
            record(self.name, function.sym_name.data, bool(found), said, function)
