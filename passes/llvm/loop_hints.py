"""What LLVM is told of loops: how many vectors of iterations to compute side by side, and where to mask.

Of a loop that folds nothing it computes one vector after the other, as if the core found the next one itself;
of a long chain of operations, such as a polynomial, that is half of what it can do. A loop that begins at
another constant than 0, or at a length of which an `and` left whole vectors, is what another one left beyond
these (`mask-tails`): its last vector is computed under a mask, not element by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.llvm_printer import edges, loop_option


@dataclass(frozen=True)
class Loop:
    """A loop of a function of blocks, which follow one another."""

    blocks: list[Block]
    jump: Operation
    """What goes back to the beginning."""


def loop_options(kernel: llvm.FuncOp, count: int) -> dict[Operation, list[str]]:
    """Options of the innermost loops, by their jumps; with a `count` of 0, LLVM decides how many vectors."""
    options: dict[Operation, list[str]] = {}
    for loop in innermost_loops(kernel):
        if is_tail(loop):
            options[loop.jump] = [
                loop_option("interleave.count", "i32 1"),
                loop_option("vectorize.predicate.enable", "i1 1"),
            ]
        elif count:
            options[loop.jump] = [loop_option("interleave.count", f"i32 {count}")]
    return options


def innermost_loops(function: llvm.FuncOp) -> list[Loop]:
    """The loops in which there is no other one."""
    blocks = list(function.body.blocks)
    places = {block: place for place, block in enumerate(blocks)}
    loops = [
        (places[target], place, block.last_op)
        for block, place in places.items()
        if block.last_op is not None
        for target, _ in edges(block.last_op)
        if places[target] <= place
    ]
    return [
        Loop(blocks[first : last + 1], jump)
        for first, last, jump in loops
        if not any(first <= f and e <= last and (f, e) != (first, last) for f, e, _ in loops)
    ]


def is_tail(loop: Loop) -> bool:
    """Whether a loop's counter, the first of what its first block carries, begins behind whole vectors."""
    return any(_is_behind(start.owner) for start in _starts(loop.blocks[0]))


def _starts(header: Block) -> Iterator[SSAValue]:
    """What a loop's counter is at first, and what it is after an iteration."""
    if not header.args:
        return  # it carries nothing
    for block in header.parent.blocks if header.parent else ():
        yield from (values[0] for target, values in edges(block.last_op) if target is header)


def _is_behind(start: Operation | Block) -> bool:
    match start:
        case llvm.ConstantOp(value=IntegerAttr() as number):
            return number.value.data != 0
        case _:
            return isinstance(start, llvm.AndOp)
