"""What LLVM is told of loops: how many vectors of iterations to compute side by side, and where to mask.

Of a loop that folds nothing it computes one vector after the other, as if the core found the next one itself;
of a long chain of operations, such as a polynomial, that is half of what it can do. A loop that begins at
another constant than 0, or at a length of which an `and` left whole vectors, is what another one left beyond
these (`mask-tails`): its last vector is computed under a mask, not element by element.
"""

from __future__ import annotations

from typing import Any


def hint(function: Any, count: int) -> None:
    """Tell of the innermost loops of a function of llvmlite's; with a `count` of 0, LLVM decides how many."""
    for blocks, jump in innermost_loops(function):
        if is_tail(blocks[0]):
            tell(jump, "interleave.count", _number(32, 1))
            tell(jump, "vectorize.predicate.enable", _number(1, 1))
        elif count:
            tell(jump, "interleave.count", _number(32, count))


def _number(bits: int, number: int) -> Any:
    from llvmlite import ir

    return ir.Constant(ir.IntType(bits), number)


def tell(jump: Any, option: str, value: Any) -> None:
    """Tell an option of the loop that a jump goes back to the beginning of."""
    module = jump.module
    told = module.add_metadata([f"llvm.loop.{option}", value])
    if (name := jump.metadata.get("llvm.loop")) is None:
        # What names a loop is a node that has itself as its first operand, so no two are the same.
        name = module.add_metadata([f"loop {len(module.metadata)}"])
        name.operands = (name,)
        jump.set_metadata("llvm.loop", name)
    name.operands = (*name.operands, told)


def innermost_loops(function: Any) -> list[tuple[list[Any], Any]]:
    """The blocks and the jumps back of the loops in which there is no other one.

    A loop's blocks follow one another.
    """
    places = {block: place for place, block in enumerate(function.blocks)}
    loops = [
        (places[target], place, block.terminator)
        for block, place in places.items()
        if block.terminator.opname == "br"
        for target in block.terminator.operands
        if places.get(target, place + 1) <= place
    ]
    return [
        (function.blocks[first : last + 1], jump)
        for first, last, jump in loops
        if not any(first <= f and e <= last and (f, e) != (first, last) for f, e, _ in loops)
    ]


def is_tail(header: Any) -> bool:
    """Whether a loop's counter, the first of what its first block carries, begins behind whole vectors."""
    from llvmlite import ir

    counter = header.instructions[0]
    if counter.opname != "phi":
        return False  # it carries nothing
    starts = [value for value, _ in counter.incomings]
    known = [start for start in starts if isinstance(start, ir.Constant)]
    return any(start.constant for start in known if isinstance(start.type, ir.IntType)) or any(
        isinstance(start, ir.Instruction) and start.opname == "and" for start in starts
    )
