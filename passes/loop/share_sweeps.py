"""`share-sweeps`: reductions over the same range that do not need each other become one loop.

    %a = loop.for %k = 0 to 64 reduce(add) -> f32 { ... loop.yield %p : f32 }
    %b = loop.for %k = 0 to 64 reduce(max) -> f32 { ... loop.yield %q : f32 }
becomes
    %a, %b = loop.for %k = 0 to 64 reduce(add, max) -> f32, f32 { ... loop.yield %p, %q : f32, f32 }

What both read is then loaded once. The second loop moves up to the first, so all that it reads must be
known there.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, StoreOp, YieldOp
from ..decisions import record
from .dedup_loads import dedup_kernel

PASS = "share-sweeps"


def _outer_values(loop: ForOp) -> set[SSAValue]:
    """The values from outside that a loop reads."""
    inside: set[SSAValue] = set()
    read: set[SSAValue] = set()
    for op in ops_in(loop):
        inside.update(op.results)
        inside.update(a for r in op.regions for b in r.blocks for a in b.args)
        read.update(op.operands)
    return read - inside


def _can_share(first: ForOp, second: ForOp) -> bool:
    """Whether `second` may run as part of `first`, which stands before it in the same block."""
    if first.extent != second.extent or first.attributes != second.attributes:
        return False
    if any(isinstance(op, StoreOp) for loop in (first, second) for op in ops_in(loop)):
        return False
    block = first.parent
    assert block is not None
    late: set[Operation] = set()
    op = first
    while op is not None:
        late.add(op)
        op = op.next_op
    return not any(value.owner in late for value in _outer_values(second))


def share(first: ForOp, second: ForOp) -> ForOp:
    """One loop with the results of both, in the place of the first."""
    mine, theirs = first.body.block, second.body.block
    end, other_end = mine.last_op, theirs.last_op
    assert isinstance(end, YieldOp) and isinstance(other_end, YieldOp)
    second.induction_var.replace_all_uses_with(first.induction_var)
    yielded = [*end.arguments, *other_end.arguments]
    for op in list(theirs.ops):
        op.detach()
        if op is not other_end:
            mine.insert_op_before(op, end)
    end.detach()
    end.erase()
    other_end.erase()
    mine.add_op(YieldOp(*yielded))
    joined = ForOp(
        first.extent.data,
        first.detach_region(first.body),
        combiners=[c.data for c in (*first.combiners, *second.combiners)],
        result_types=[*first.res.types, *second.res.types],
    )
    joined.location = first.location
    joined.attributes |= first.attributes
    assert first.parent is not None
    first.parent.insert_op_before(joined, first)
    for old, new in zip((*first.res, *second.res), joined.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for loop in (first, second):
        loop.detach()
        loop.erase()
    return joined


def share_in_block(block: Block) -> int:
    """Join what can be joined in a block and below; gives how many loops disappeared."""
    joined = 0
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                joined += share_in_block(inner)
    sweeps = [op for op in block.ops if isinstance(op, ForOp) and op.res]
    i = 0
    while i < len(sweeps):
        partner = next((s for s in sweeps[i + 1 :] if _can_share(sweeps[i], s)), None)
        if partner is None:
            i += 1
            continue
        sweeps.remove(partner)
        sweeps[i] = share(sweeps[i], partner)
        joined += 1
    return joined


@dataclass(frozen=True)
class ShareSweepsPass(ModulePass):
    """Join reductions of a kernel that run over the same range."""

    name = PASS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            joined = share_in_block(kernel.body.block)
            if joined:
                dedup_kernel(kernel)
                reason = f"{joined} reductions joined the sweep of another"
            else:
                reason = "no two reductions run over one range independently"
            record(PASS, kernel.sym_name.data, joined > 0, reason, kernel)
