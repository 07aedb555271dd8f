"""What LLVM is told of loops: how many vectors of iterations to compute side by side, and where to mask.

Of a loop that folds nothing it computes one vector after the other, as if the core found the next one itself;
of a long chain of operations, such as a polynomial, that is half of what it can do. A loop that begins at
another constant than 0, or at a length of which an `and` left whole vectors, is what another one left beyond
these (`mask-tails`): its last vector is computed under a mask, not element by element.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from .llvm_printer import edges, loop_option


@dataclass(frozen=True)
class Loop:
    """A loop of a function of blocks, which follow one another."""

    blocks: list[Block]
    jump: Operation
    """What goes back to the beginning."""
    starts: list[SSAValue]
    """What its counter, the first of what its first block carries, is at first and after an iteration."""


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
    """The loops in which there is no other one, in their order; loops lie apart or in one another."""
    blocks = list(function.body.blocks)
    places = {block: place for place, block in enumerate(blocks)}
    starts: dict[Block, list[SSAValue]] = {block: [] for block in blocks}
    loops: list[tuple[int, int, Operation]] = []
    for block, place in places.items():
        for target, values in edges(block.last_op):
            starts[target] += values[:1]
            if places[target] <= place and block.last_op is not None:
                loops.append((places[target], place, block.last_op))
    loops.sort(key=lambda loop: (loop[0], -loop[1]))
    return [
        Loop(blocks[first : last + 1], jump, starts[blocks[first]])
        for number, (first, last, jump) in enumerate(loops)
        if number + 1 == len(loops) or loops[number + 1][0] > last
    ]


def is_tail(loop: Loop) -> bool:
    """Whether a loop's counter begins behind whole vectors."""
    return any(_is_behind(start.owner) for start in loop.starts)


def _is_behind(start: Operation | Block) -> bool:
    match start:
        case llvm.ConstantOp(value=IntegerAttr() as number):
            return number.value.data != 0
        case _:
            return isinstance(start, llvm.AndOp)
