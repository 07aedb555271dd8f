"""Whose elements of a matrix are where: the layouts of matrix instructions as numbers.

The positions of several instructions on the same sums follow each other. An operation holds a thread's
elements row by row, those of columns column by column; an instruction wants them in an order of its own.
"""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser

ROWS, COLUMNS, SUMS = 1, 0, 1
"""The axis of a matrix along which an operation goes first: columns are held column by column."""


@cache
def parse_layout(text: str) -> AffineMap:
    """The map that a layout's text says."""
    return Parser(Context(), text).parse_affine_map()


@cache
def elements_of_registers(
    layout: str, count: int, along: int, depth: int = 0, repeats: int = 1
) -> tuple[tuple[int, ...], ...]:
    """Which of its elements, as an operation holds them, a thread has in each of `count` of its registers.

    Of each of `repeats` instructions, with `depth` positions each, a tuple.
    """
    map = parse_layout(layout)
    places: list[tuple[int, int, int, int]] = []
    for repeat in range(repeats):
        for register in range(count):
            place = map.eval([0, register], [])
            places.append((place[1 - along], place[along] + repeat * depth, repeat, register))
    numbers = {place[2:]: number for number, place in enumerate(sorted(places))}
    return tuple(tuple(numbers[r, e] for e in range(count)) for r in range(repeats))
