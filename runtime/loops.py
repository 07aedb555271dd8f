"""The loops of a plan: steps that run once per turn, on slices of arrays that move with the turn.

    "loops": [{"begin": 2, "end": 4, "trips": "s0", "reversed": false}]
    "places": [{"of": {"buffer": 1}, "loop": 0}, {"of": {"buffer": 3}, "loop": 0, "first": {"argument": 1}}]

Steps 2 and 3 run `s0` times. In turn `t` place 0 is slice `t` of buffer 1 along its leading axis, or slice
`s0 - 1 - t` where the loop is reversed. Place 1 is the slice of buffer 3 of the turn before, and in the first
turn it is argument 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import DeploError
from .plan_parts import ITEM_BYTES, Array, Ref, read_refs
from .sizes import Expression, Extent, evaluate, read_extent, static

SLICE_BYTES = 16
"""What the size of a slice is a multiple of in bytes, so that a GPU may access each in vectors."""


@dataclass(frozen=True)
class Loop:
    """The steps from `begin` to before `end`, which run `trips` times."""

    begin: int
    end: int
    trips: Extent
    reversed: bool

    def at(self, sizes: Sequence[int]) -> Loop:
        """The same where the sizes are known."""
        return Loop(self.begin, self.end, evaluate(self.trips, sizes), self.reversed)


@dataclass(frozen=True)
class Place:
    """A slice of the array `of` along its leading axis, which moves with the turn of loop number `loop`."""

    of: Ref
    loop: int
    first: Ref | None = None
    """If there is one, the slice is that of the turn before, and this array in the first turn."""

    @property
    def arrays(self) -> tuple[Ref, ...]:
        """The arrays that it is, or is a slice of."""
        return (self.of,) if self.first is None else (self.of, self.first)


@dataclass(frozen=True)
class Move:
    """Where a place lies: `start` bytes into its array in the first turn, `stride` further in each turn."""

    place: Place
    start: Extent
    stride: Extent

    def address(self, turn: int, address_of: Callable[[Ref], int]) -> int:
        """Its address in a turn."""
        if self.place.first is not None:
            if turn == 0:
                return address_of(self.place.first)
            turn -= 1
        return address_of(self.place.of) + static(self.start) + turn * static(self.stride)


def read_loop(data: Mapping[str, Any]) -> Loop:
    """A loop from its JSON form."""
    begin, end = int(data["begin"]), int(data["end"])
    return Loop(begin, end, read_extent(data["trips"]), bool(data["reversed"]))


def read_place(data: Mapping[str, Any]) -> Place:
    """A place from its JSON form."""
    refs = read_refs([data["of"], *([data["first"]] if "first" in data else [])])
    return Place(refs[0], int(data["loop"]), *refs[1:])


def slice_of(array: Array) -> Array:
    """What one slice of an array along its leading axis is."""
    return Array(array.dtype, array.shape[1:])


def check_loops(
    loops: Sequence[Loop],
    places: Sequence[Place],
    launches: Sequence[Sequence[Ref] | None],
    array: Callable[[Ref], Array],
) -> None:
    """Raise DeploError unless each loop is of launches, none within another, and each place is a slice.

    `launches` has of each step the arrays that it gets, or None for one that is no launch; `array` gives the
    array that a reference names.
    """
    end = 0
    for loop in loops:
        inside = launches[loop.begin : loop.end]
        if not end <= loop.begin < loop.end <= len(launches) or None in inside:
            raise DeploError(f"not a valid plan: no loop of launches from {loop.begin} to {loop.end}")
        end = loop.end
    for place in places:
        if not 0 <= place.loop < len(loops):
            raise DeploError(f"not a valid plan: there is no loop {place.loop}")
        whole, trips = array(place.of), loops[place.loop].trips
        if not whole.shape or whole.shape[0] != trips:
            raise DeploError(f"not a valid plan: {whole} has no slice for each of {trips} turns")
        if place.first is not None and array(place.first) != slice_of(whole):
            raise DeploError(f"not a valid plan: {array(place.first)} is no slice of {whole}")
    for step, refs in enumerate(launches):
        for place in (places[ref.index] for ref in refs or () if ref.kind == "place"):
            if not loops[place.loop].begin <= step < loops[place.loop].end:
                raise DeploError(f"not a valid plan: step {step} gets a place of another loop")


def check_slices(
    loops: Sequence[Loop], places: Sequence[Place], array: Callable[[Ref], Array]
) -> None:
    """Raise DeploError for a place, of a plan whose sizes are known, that kernels could not read."""
    for place in places:
        loop, slice = loops[place.loop], slice_of(array(place.of))
        if static(loop.trips) < 1 or slice.nbytes % SLICE_BYTES:
            raise DeploError(f"not a valid plan: no {loop.trips} slices of {slice}")


def moves_of(
    loops: Sequence[Loop], places: Sequence[Place], array: Callable[[Ref], Array]
) -> list[Move]:
    """Where the places of a plan lie; expressions where sizes decide that."""
    moves: list[Move] = []
    for place in places:
        loop, whole = loops[place.loop], array(place.of)
        stride = _product(*whole.shape[1:], ITEM_BYTES[whole.dtype])
        if not loop.reversed:
            moves.append(Move(place, 0, stride))
            continue
        last = loop.trips - 1 if isinstance(loop.trips, int) else Expression(f"{loop.trips} - 1")
        moves.append(Move(place, _product(last, stride), _product(-1, stride)))
    return moves


def _product(*factors: Extent) -> Extent:
    if all(isinstance(factor, int) for factor in factors):
        return prod(map(static, factors))
    return Expression(" * ".join(f"({factor})" for factor in factors))


def in_order(
    groups: Sequence[range], loops: Sequence[Loop], begin_turn: Callable[[int, int], None]
) -> Iterator[range]:
    """Yield groups of steps in the order in which they run, those of loops again and again.

    Before each turn, `begin_turn` is called with the numbers of the loop and the turn.
    """
    begins = {loop.begin: number for number, loop in enumerate(loops)}
    position = 0
    while position < len(groups):
        number = begins.get(groups[position].start)
        if number is None:
            yield groups[position]
            position += 1
            continue
        loop = loops[number]
        inside = [group for group in groups[position:] if group.start < loop.end]
        for turn in range(static(loop.trips)):
            begin_turn(number, turn)
            yield from inside
        position += len(inside)

