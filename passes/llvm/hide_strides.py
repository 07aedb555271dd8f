"""`hide-strides`: LLVM makes no vectors of a loop that stores many neighbours in each iteration.

    scf.for %j = %c0 to %c8 step %c1 {
      ...
      loop.store %a, %y[%j * 16]       ...       loop.store %p, %y[%j * 16 + 15]
    }
becomes
    scf.for %j = %c0 to %c8 step %c1 {
      %hidden = ...                              // %j, from assembly code that does nothing
      ...
      loop.store %a, %y[%hidden * 16]  ...       loop.store %p, %y[%hidden * 16 + 15]
    }

LLVM would compute the same place of several iterations at once, and gather and scatter those, an element
at a time and slower than one after the other. Up to `MOST_NEIGHBOURS` it loads whole vectors and shuffles.

Declined are loops around others, and those that store few neighbours or go along memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import linear
from ...dialects.index import linearize
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import StoreOp
from ...dialects.sizes import shape_of
from .kernel_loops import NOT_CONCERNED, change_loops
from .loop_code import opaque

MOST_NEIGHBOURS = 8
"""Neighbours of which LLVM makes vectors by shuffles."""


def _stride(store: StoreOp, counter: SSAValue) -> int:
    """How far apart in memory two iterations store; 0 if that is not known."""
    operands = list(store.indices)
    if counter not in operands:
        return 0
    assert isinstance(store.memref.type, MemRefType)
    place = linear(linearize(store.map.data.results, shape_of(store.memref.type)))
    return 0 if place is None else place.coefficients.get(operands.index(counter), 0)


def _hide(loop: scf.ForOp) -> str | None:
    """Hide the counter of a loop; gives None, or why not."""
    if any(isinstance(op, scf.ForOp) for op in ops_in(loop.body)):
        return NOT_CONCERNED
    counter = loop.body.block.args[0]
    stores = ops_of(loop.body, StoreOp)
    found = Counter((op.memref, _stride(op, counter)) for op in stores)
    if not any(MOST_NEIGHBOURS < count <= stride for (_, stride), count in found.items()):
        return "it stores few neighbours"
    body = list(loop.body.block.ops)
    hidden = opaque(Builder(InsertPoint.at_start(loop.body.block)), counter)
    hidden.name_hint = "hidden"
    inside = {inner for op in body for inner in ops_in(op)}
    counter.replace_uses_with_if(hidden, lambda use: use.operation in inside)
    return None


@dataclass(frozen=True)
class HideStridesPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops of which LLVM makes vectors only along memory."""

    name = "hide-strides"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hide the counters of every kernel's innermost loops that store many neighbours."""
        change_loops(self.name, op, _hide)
