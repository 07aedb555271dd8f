"""Calls on a GPU that are like an earlier one: one check for all arguments, then nothing but launches.

The library's guard says whether arguments are like those of the earlier call, as on a CPU (`prepared.py`).
A launch says where a kernel's parameters are: in a table, which each call fills with its arrays' addresses.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import call, or_
from threading import Lock
from typing import Any

from .arrays import Library
from .loops import in_order, moves_of
from .plan import Plan
from .plan_parts import Array, Ref
from .sizes import static

VECTOR_BYTES = 16
"""What the address of every array is a multiple of, as kernels access so many bytes at once."""

WORD = 8
"""Bytes of a place in the table: an address, or a size, of which a kernel may read the low four alone."""


@dataclass(frozen=True)
class Launch:
    """A launch with everything settled but its arrays."""

    step: int
    """The number of its step in the plan."""
    kernel: str
    function: Any
    blocks: int
    threads: int
    shared_bytes: int
    arrays: tuple[Ref, ...]
    sizes: tuple[int, ...]


class PreparedCall:
    """Runs a plan on tensors like those that `fits` was made of; calls from several threads take turns."""

    def __init__(
        self,
        plan: Plan,
        launches: Sequence[Launch],
        library: Library,
        fits: Callable[..., bool],
    ):
        """A call of these launches, which are those of `plan`, whose sizes are known."""
        self.count = len(plan.arguments)
        self.fits = fits
        self._pointer = library.pointer
        made = [i for i, buffer in enumerate(plan.buffers) if buffer.offset is None]
        placed = [i for i, buffer in enumerate(plan.buffers) if buffer.offset is not None]
        self._makers = [library.maker(plan.buffers[i].array) for i in made]
        arena = Array("i8", (plan.arena_bytes or 0,))
        self._make_arena = library.maker(arena) if placed else None
        self._offsets = [static(plan.buffers[i].offset or 0) for i in placed]
        places = {Ref("argument", i): i for i in range(self.count)}
        places |= {Ref("buffer", i): self.count + n for n, i in enumerate([*made, *placed])}
        self._results = [places[ref] for ref in plan.results]
        sizes = [size for launch in launches for size in launch.sizes]
        self._pack = struct.Struct(f"{len(places)}q").pack_into
        places |= {Ref("place", i): len(places) + i for i in range(len(plan.places))}
        self._table = (ctypes.c_int64 * (len(places) + len(sizes)))(*[0] * len(places), *sizes)
        self._lock = Lock()
        self._loops, self._places = plan.loops, places
        self._moves = moves_of(plan.loops, plan.places, plan.array)
        self._launches: dict[int, tuple[str, Any, int, int, int, ctypes.Array[Any]]] = {}
        self._steps = [range(each.step, each.step + 1) for each in launches]
        first_size = len(places)
        for each in launches:
            positions = [places[ref] for ref in each.arrays]
            positions += range(first_size, first_size + len(each.sizes))
            first_size += len(each.sizes)
            start = ctypes.addressof(self._table)
            told = (ctypes.c_void_p * len(positions))(*[start + WORD * p for p in positions])
            numbers = each.blocks, each.threads, each.shared_bytes
            self._launches[each.step] = (each.kernel, each.function, *numbers, told)

    def _begin_turn(self, loop: int, turn: int) -> None:
        """Put the places of a loop where they are in a turn: kernels launched before have read the table."""
        for number, move in enumerate(self._moves):
            if move.place.loop == loop:
                place = self._places[Ref("place", number)]
                self._table[place] = move.address(turn, lambda ref: self._table[self._places[ref]])

    def run(
        self,
        arguments: Sequence[Any],
        launch: Callable[[str, Any, int, int, int, int], None],
    ) -> tuple[Any, ...] | None:
        """The results for arguments that fit; None if one begins where kernels cannot read vectors.

        `launch` gets a kernel's name and function, blocks, threads, bytes of shared memory, and the address
        of the addresses of its parameters.
        """
        pointer = self._pointer
        addresses = [*map(pointer, arguments)]
        if reduce(or_, addresses, 0) % VECTOR_BYTES:
            return None
        made = [*map(call, self._makers)]
        addresses += map(pointer, made)
        if self._make_arena is not None:
            arena = self._make_arena()
            start = pointer(arena)
            addresses += [start + offset for offset in self._offsets]
        with self._lock:
            self._pack(self._table, 0, *addresses)
            for (step,) in in_order(self._steps, self._loops, self._begin_turn):
                kernel, function, blocks, threads, shared_bytes, told = self._launches[step]
                launch(kernel, function, blocks, threads, shared_bytes, ctypes.addressof(told))
        tensors = [*arguments, *made]
        return tuple([tensors[i] for i in self._results])
