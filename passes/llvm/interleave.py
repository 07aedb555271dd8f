"""What LLVM is told of loops: how many vectors of iterations it is to compute side by side.

Of a loop that folds nothing it computes one after the other, as if the core found the next one itself; of a
long chain of operations, such as a polynomial, that is half of what it can do.
"""

from __future__ import annotations

from typing import Any


def interleave(function: Any, count: int) -> None:
    """Have the innermost loops of a function of llvmlite's compute so many vectors of iterations at once."""
    from llvmlite import ir

    wanted = ["llvm.loop.interleave.count", ir.Constant(ir.IntType(32), count)]
    option = function.module.add_metadata(wanted)
    for jump in innermost_jumps(function):
        # What names a loop is a node that has itself as its first operand, so no two are the same.
        name = function.module.add_metadata([f"loop {len(function.module.metadata)}"])
        name.operands = (name, option)
        jump.set_metadata("llvm.loop", name)


def innermost_jumps(function: Any) -> list[Any]:
    """The jumps back of the loops in which there is no other one; a loop's blocks follow one another."""
    places = {block: place for place, block in enumerate(function.blocks)}
    loops = [
        (places[target], place, block.terminator)
        for block, place in places.items()
        if block.terminator.opname == "br"
        for target in block.terminator.operands
        if places.get(target, place + 1) <= place
    ]
    return [
        jump
        for first, last, jump in loops
        if not any(first <= f and e <= last and (f, e) != (first, last) for f, e, _ in loops)
    ]
