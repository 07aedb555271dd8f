"""`mark-independent`: loops are marked whose iterations are independent where LLVM could not tell.

    scf.for %j = %c0 to %length step %c1 {
      %a = loop.load %x[%i, %j]          loop.store ..., %y[%i, %j]
      %b = loop.load %x[%next, %j]       loop.store ..., %y[%next, %j]
    }
becomes, where %y has rows of a dynamic size,
    scf.for %j = %c0 to %length step %c1 {
      %a = loop.load %x[%i, %j] {deplo.independent}     loop.store ... {deplo.independent}
      ...
    }

An index lies within its extent, so what two iterations write lies apart if some index into it is the same
expression everywhere in the loop and counts with it. LLVM sees addresses only: of rows whose length it does
not know it would compare the ends, in front of an outer loop if it can, over all rows that this goes through.
There they overlap, and the loop would never run with vectors.

Declined are loops with others in them, those where an iteration may touch what another one writes, and those
where all that they touch more than once and write has extents that are numbers: of these LLVM can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...analysis.conditions import Term, terms
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.schedule import INDEPENDENT_ATTRIBUTE
from ...dialects.sizes import shape_of
from .kernel_loops import NOT_CONCERNED, change_loops


def _change(loop: scf.ForOp) -> str | None:
    """Mark the accesses of a loop; gives None, or why not."""
    inside = ops_in(loop.body)
    if any(isinstance(op, scf.ForOp) for op in inside):
        return NOT_CONCERNED
    accesses = [op for op in inside if isinstance(op, LoadOp | StoreOp)]
    written = dict.fromkeys(op.memref for op in accesses if isinstance(op, StoreOp))
    several = [array for array in written if sum(op.memref is array for op in accesses) > 1]
    if not any(_has_sizes(array) for array in several):
        return "it writes nothing of a dynamic size in several places"
    for array in written:
        ways = [set(_ways(op, loop)) for op in accesses if op.memref is array]
        if not set.intersection(*ways):
            return "an iteration may touch what another one writes"
    for op in accesses:
        op.attributes[INDEPENDENT_ATTRIBUTE] = UnitAttr()
    return None


def _has_sizes(array: SSAValue) -> bool:
    if not isinstance(array.type, MemRefType):
        return False
    return any(not isinstance(extent, int) for extent in shape_of(array.type))


def _ways(
    op: LoadOp | StoreOp, loop: scf.ForOp
) -> Iterator[tuple[int, frozenset[tuple[Term, int]], int]]:
    """The dimensions in which an access is another element in each iteration, with its index there."""
    counter = loop.body.block.args[0]
    for dimension, expr in enumerate(op.map.data.results):
        if (found := terms(expr, list(op.indices))) is None:
            continue
        factors, number = found
        others = [v for v in factors if isinstance(v, SSAValue) and v is not counter]
        if counter in factors and not any(_is_inside(value, loop) for value in others):
            yield dimension, frozenset(factors.items()), number


def _is_inside(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is computed in a loop, or carried by it."""
    owner = value.owner
    return loop.is_ancestor(owner if isinstance(owner, Operation) else owner.parent_op() or loop)


@dataclass(frozen=True)
class MarkIndependentPass(ModulePass):
    """Needs kernels as `scf` functions; changes no operation but for the mark."""

    name = "mark-independent"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the innermost loops of every kernel."""
        change_loops(self.name, op, _change)
