"""`hoist-invariants`: what does not depend on a loop's counter is computed in front of the loop.

    loop.for %j = 0 to 8 {
      %id = loop.load %ids[%i] : memref<4xi64>
      %row = loop.checked_index %id below 100 : i64
      %v = loop.load %table[%row, %j] : memref<100x8xf32>
      ...
becomes
    %id = loop.load %ids[%i] : memref<4xi64>
    %row = loop.checked_index %id below 100 : i64
    loop.for %j = 0 to 8 {
      %v = loop.load %table[%row, %j] : memref<100x8xf32>
      ...

Only out of loops that are known to run, since an index may be valid, and a check may fail, inside only; so
nothing leaves an `scf.if`. A free loop that is all its parent does keeps everything: such loops become the
axes of a launch together. Constants stay where they are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, YieldOp
from ..decisions import record
from .dedup_loads import dedup_kernel, is_reusable


def _may_move(op: Operation) -> bool:
    if isinstance(op, arith.ConstantOp | YieldOp):
        return False
    return isinstance(op, CheckedIndexOp | AssertOp) or is_reusable(op)


def _reads(op: Operation, block: Block) -> bool:
    """Whether `op`, or an operation in it, reads what `block` defines."""
    for inner in ops_in(op):
        for value in inner.operands:
            owner = value.owner
            if owner is block:
                return True
            if (
                isinstance(owner, Operation)
                and owner.parent is block
                and not isinstance(owner, arith.ConstantOp)
            ):
                return True
    return False


def _hoist(op: Operation, loop: ForOp) -> None:
    """Move `op` in front of `loop`, and the constants it reads or a copy of them."""
    parent = loop.parent
    assert parent is not None
    for inner in ops_in(op):
        for position, value in enumerate(inner.operands):
            if isinstance(value.owner, arith.ConstantOp) and value.owner.parent is loop.body.block:
                copy = value.owner.clone()
                copy.location = value.owner.location
                copy.result.name_hint = value.name_hint
                parent.insert_op_before(copy, loop)
                inner.operands[position] = copy.result
                if not value.uses:
                    value.owner.detach()
                    value.owner.erase()
    op.detach()
    parent.insert_op_before(op, loop)


def _is_launch_axis(loop: ForOp) -> bool:
    """Whether a free loop is all that is done by the free loop, or the kernel, around it."""
    block = loop.parent
    assert block is not None
    alone = all(op is loop or isinstance(op, YieldOp) for op in block.ops)
    outer = block.parent_op()
    return not loop.res and alone and not (isinstance(outer, ForOp) and outer.res)


def hoist_from(loop: ForOp) -> int:
    """Hoist out of a loop that is known to run; gives how many operations moved."""
    moved = 0
    for op in list(loop.body.block.ops):
        if _is_invariant(op, loop):
            _hoist(op, loop)
            moved += 1
    return moved


def _is_invariant(op: Operation, loop: ForOp) -> bool:
    """Whether an operation of a loop's body does the same in each iteration."""
    return _may_move(op) and not _reads(op, loop.body.block)


def _kept(kernel: KernelOp) -> str:
    """Why no operation of a kernel moved out of a loop."""
    for loop in (o for o in ops_in(kernel) if isinstance(o, ForOp)):
        if any(_is_invariant(op, loop) for op in loop.body.block.ops):
            name = f"%{loop.induction_var.name_hint or 'i'}"
            if loop.never_runs:
                return f"{name} has no iterations"
            return f"{name} is all that its parent does: it becomes an axis of the launch with its body"
    return "nothing is the same each time"


def hoist_block(block: Block) -> int:
    """Hoist out of the loops in a block, innermost first; gives how many operations moved."""
    moved = 0
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                moved += hoist_block(inner)
        if isinstance(op, ForOp) and not op.never_runs and not _is_launch_axis(op):
            moved += hoist_from(op)
    return moved


@dataclass(frozen=True)
class HoistInvariantsPass(ModulePass):
    """Compute in front of a loop what is the same in each of its iterations."""

    name = "hoist-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            moved = hoist_block(kernel.body.block)
            if moved:  # what several loops have in common is one now, which all may follow
                dedup_kernel(kernel)
            reason = f"moved {moved} operations" if moved else _kept(kernel)
            record(self.name, kernel.sym_name.data, moved > 0, reason, kernel)
