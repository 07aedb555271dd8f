"""Perfect nests of free loops, and their order: iterations are independent, so that any order is right."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.loop import ForOp, KernelOp, YieldOp


def perfect_nest(kernel: KernelOp) -> list[ForOp]:
    """The free loops around the whole body of a kernel, outermost first."""
    loops: list[ForOp] = []
    block = kernel.body.block
    while True:
        ops = [o for o in block.ops if not isinstance(o, YieldOp)]
        if len(ops) != 1 or not isinstance(ops[0], ForOp) or ops[0].res:
            return loops
        loops.append(ops[0])
        block = ops[0].body.block


def permute(loops: list[ForOp], order: Sequence[int]) -> None:
    """Reorder a perfect nest: position p gets the loop that stood at `order[p]`."""
    old = [loop.induction_var for loop in loops]
    uses = [list(counter.uses) for counter in old]
    facts = [(loop.extent, counter.name_hint) for loop, counter in zip(loops, old, strict=True)]
    for place, source in enumerate(order):
        loops[place].extent, old[place].name_hint = facts[source]
        for use in uses[source]:
            use.operation.operands[use.index] = old[place]
