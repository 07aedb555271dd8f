"""`split-loops`: a loop in which a condition changes becomes loops in which it does not.

    loop.for %j = 0 to 1024 {
      %first = loop.test [%j < 512]
      %v = scf.if %first -> (f32) { ... %a[%i, %j] ... } else { ... %b[%i, %j - 512] ... }
      loop.store %v, %y[%i, %j]
    }
becomes
    loop.for %j = 0 to 512 { %v = loop.load %a[%i, %j]  loop.store %v, %y[%i, %j] }
    loop.for %j = 0 to 512 { %v = loop.load %b[%i, %j]  loop.store %v, %y[%i, %j + 512] }

So what concatenates, pads or rotates is made of loops that copy, and a window is tested at the borders only.
A condition that blocks decide, such as `256 * %j_block + %j < 512`, is left to them where their parts do not
straddle its limit.

Declined are GPU targets, reducing loops, loops whose number of iterations is not known, what would become too
many loops or too much code, and rows side by side and strips of columns: `clip-loops` sees to these.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.conditions import Condition, condition
from ...analysis.index import always_holds, never_holds, operand_ranges
from ...analysis.launches import open_kernels
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, TestOp
from ...dialects.sizes import ExtentAttr
from ...dialects.tile import LaunchOp
from ...errors import counted
from ..decisions import record
from ..replacing import decide, replace
from .rewrite_indices import rewrite_index

MOST_PIECES = 6
"""Loops that one loop may become."""
MOST_OPERATIONS = 600
"""Operations of the loops that one loop becomes."""


def _conditions(loop: ForOp) -> list[tuple[TestOp, list[Condition | None]]]:
    """The tests in a loop that depend on its counter, with what is known of their conditions."""
    inner: list[SSAValue] = [o.induction_var for o in ops_in(loop.body) if isinstance(o, ForOp)]
    return [
        (op, [condition(e, op.operands_, loop.induction_var, inner) for e in op.exprs])
        for op in ops_in(loop.body)
        if isinstance(op, TestOp) and loop.induction_var in op.operands_
    ]


def _is_of_rows(loop: ForOp) -> bool:
    """Whether rows come side by side in a loop, or columns in strips, all of them under one condition."""
    launch = loop.parent_op()
    if not isinstance(launch, LaunchOp) or not launch.schedule:
        return False
    if not any(launch.schedule.get(choice) for choice in ("rows", "strip")):
        return False
    test, branch, *others = loop.body.block.ops
    return isinstance(test, TestOp) and isinstance(branch, scf.IfOp) and len(others) == 1


def _places(loop: ForOp) -> list[int] | str:
    """Where to cut a loop, or why not."""
    if _is_of_rows(loop):
        return "rows that come side by side and strips of columns end where the condition does"
    extent = loop.extent.data
    if loop.res or not isinstance(extent, int):
        return "it reduces" if loop.res else "its length is not known"
    known = [c for _, conditions in _conditions(loop) for c in conditions if c is not None]
    if not known:
        return "no condition is one of its counter"
    # A condition that changes often is left as it is; the others are worth a cut all the same.
    few = [(c, places) for c in known if len(places := c.places(extent)) < MOST_PIECES]
    if not few:
        return "a condition changes often"
    places = sorted({place for _, each in few for place in each})
    if not places and not any(c.step for c, _ in few):
        return "no condition changes"
    if len(places) >= MOST_PIECES:
        return f"it would become {len(places) + 1} loops"
    count = len(ops_in(loop)) * (len(places) + 1)
    if count > MOST_OPERATIONS:
        return f"it would become {count} operations"
    return places


def split(loop: ForOp, places: list[int]) -> None:
    """Replace a loop by one for each part between two places."""
    block, extent = loop.parent, loop.extent.data
    assert block is not None and isinstance(extent, int)
    for first, last in zip([0, *places], [*places, extent], strict=True):
        piece = loop.clone()
        block.insert_op_before(piece, loop)
        piece.induction_var.name_hint = loop.induction_var.name_hint
        _decide_by_blocks(piece, first, last)
        piece.extent = ExtentAttr(last - first)
        moved: dict[SSAValue, AffineExpr] = {}
        moved[piece.induction_var] = AffineExpr.dimension(0) + first
        for op in ops_in(piece.body):
            rewrite_index(op, moved, [piece.induction_var])
        fold_tests(piece)
    loop.detach()
    loop.erase()


def _decide_by_blocks(piece: ForOp, first: int, last: int) -> None:
    """Take the counter out of the conditions that need none from `first` to `last`."""
    for test, conditions in _conditions(piece):
        exprs = list(test.exprs)
        for position, each in enumerate(conditions):
            if each is None or any(first < p < last for p in each.places(last)):
                continue
            exprs[position] = each.within(first) or exprs[position]
        if exprs != list(test.exprs):
            replace(test, TestOp(exprs, list(test.operands_)))


def fold_tests(root: Operation) -> None:
    """Replace the tests below `root` whose result is known, and what depends on them."""
    for test in ops_of(root, TestOp):
        if test.parent is None:
            continue  # it stood in a branch that is not taken
        ranges = operand_ranges(test.operands_)
        left = [e for e in test.exprs if not always_holds(e, ranges)]
        never = any(never_holds(e, ranges) for e in left)
        if left and not never:
            if len(left) < len(test.exprs):
                replace(test, TestOp(left, list(test.operands_)))
            continue
        decide(test, holds=not never)


@dataclass(frozen=True)
class SplitLoopsPass(ModulePass):
    """Cut the loops of a CPU's blocks where a condition changes."""

    name = "split-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            fired, reason = _split_kernel(kernel)
            record(self.name, kernel.sym_name.data, fired, reason, kernel, steps=[self])


def _split_kernel(kernel: KernelOp) -> tuple[bool, str]:
    """Cut the loops of a kernel, inner ones first; what came of it."""
    count = pieces = 0
    reasons: dict[str, None] = {}
    for loop in reversed(ops_of(kernel, ForOp)):
        if not any(isinstance(op, TestOp) for op in ops_in(loop.body)):
            continue
        places = _places(loop)
        if isinstance(places, str):
            reasons[f"{loop.induction_var.name_hint or 'a loop'}: {places}"] = None
            continue
        split(loop, places)
        count, pieces = count + 1, pieces + len(places) + 1
    if pieces > count:
        return True, f"{counted(count, 'loop')} became {pieces}"
    if count:
        return True, f"the conditions of {counted(count, 'loop')} are left to the blocks"
    return False, "; ".join(reasons) or "no loop has a condition"
