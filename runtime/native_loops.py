"""The loops of a plan for native calls: how places move between launches, without a word from Python.

Behind the arrays of a call stand numbers, by position: the addresses of the places, and what moves them. A
`NativeMoves` in front of a loop's launches puts the places where they are in the first turn; one behind them
moves them on and goes back, as often as there are turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from .loops import Loop, Move
from .plan_parts import Ref
from .sizes import Extent

NO_COUNTER = -1


@dataclass(frozen=True)
class NativeMoves:
    """Additions of numbers of a call, in order, by position: `values[to] = values[from] + values[add]`.

    Then the number at `counter` becomes one less, and as long as it is positive, the call goes on `back`
    launches before this.
    """

    moves: tuple[tuple[int, int, int], ...]
    counter: int = NO_COUNTER
    back: int = 0

    def words(self, back: int) -> list[int]:
        """What `deplo_run` is told: 0 in place of a launch's driver; it goes back by `back` words."""
        return [0, back, self.back, self.counter, len(self.moves), *chain(*self.moves)]


@dataclass(frozen=True)
class NativeLoops:
    """The numbers behind the arrays, and what comes in front of, and behind, which steps."""

    numbers: tuple[Extent, ...] = ()
    before: dict[int, NativeMoves] | None = None
    behind: dict[int, NativeMoves] | None = None

    def around(self, step: int) -> tuple[list[NativeMoves], list[NativeMoves]]:
        """What comes in front of, and behind, a step."""
        found = (self.before or {}).get(step), (self.behind or {}).get(step)
        before, behind = ([] if each is None else [each] for each in found)
        return before, behind


def native_loops(
    loops: Sequence[Loop], moves: Sequence[Move], position: Callable[[Ref], int], first: int
) -> NativeLoops:
    """The loops of a plan, whose places are the numbers from position `first` on.

    `position` says where an array's address is.
    """
    numbers: list[Extent] = [0] * len(moves)
    before: dict[int, NativeMoves] = {}
    behind: dict[int, NativeMoves] = {}

    def number(value: Extent) -> int:
        numbers.append(value)
        return first + len(numbers) - 1

    zero = number(0)
    for n, loop in enumerate(loops):
        begin: list[tuple[int, int, int]] = []
        advance: list[tuple[int, int, int]] = []
        for place, move in enumerate(moves):
            if move.place.loop != n:
                continue
            mine, of = first + place, position(move.place.of)
            start, stride = number(move.start), number(move.stride)
            if move.place.first is None:
                begin.append((mine, of, start))
                advance.append((mine, mine, stride))
            else:
                slice = number(0)
                begin += [(mine, position(move.place.first), zero), (slice, of, start)]
                advance += [(mine, slice, zero), (slice, slice, stride)]
        before[loop.begin] = NativeMoves(tuple(begin))
        count = number(loop.trips)
        behind[loop.end - 1] = NativeMoves(tuple(advance), count, loop.end - loop.begin)
    return NativeLoops(tuple(numbers), before, behind) if loops else NativeLoops()
