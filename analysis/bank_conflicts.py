"""How the threads of a warp meet in the banks of shared memory.

Shared memory has 32 banks of four bytes. A warp's load takes as many turns as the most distinct words that
its lanes want from one bank; lanes that want the same word share it (CUDA C++ Programming Guide, "Shared
Memory").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ..dialects.kernel import WARP
from ..dialects.kernel_vector import MAX_VECTOR_BYTES, WIDTHS
from ..dialects.loop import AccumulateOp, LoadOp, StoreOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import static_extent, static_shape
from ..dialects.tensor_map import swizzled
from ..dialects.tile import LaunchOp, Level, StageOp
from ..index.affine import values_at
from .index import operand_ranges, simplify

Access: TypeAlias = LoadOp | StoreOp | AccumulateOp

BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
"""What memory outside the multiprocessor gives at once."""


@dataclass(frozen=True)
class Warp:
    """What the counters of threads are in the lanes of a warp; other counters are 0 in all of them."""

    lanes: int
    counters: Mapping[SSAValue, Sequence[int]]

    def dims(self, op: Access) -> list[Sequence[int]]:
        """What each operand of an access's map is in the lanes."""
        zeros = [0] * self.lanes
        return [self.counters.get(value, zeros) for value in op.indices]

    def index(self, op: Access) -> list[Sequence[int]]:
        """Where the lanes access an array, along an axis after the other; no size says where."""
        dims = self.dims(op)
        return [values_at(expr, self.lanes, dims) for expr in op.map.data.results]


def warp_of(extents: dict[SSAValue, int]) -> Warp:
    """The first warp of threads that count so far; lanes go along the last counter first."""
    count = min(WARP, prod(extents.values()))
    counters: dict[SSAValue, list[int]] = {}
    inner = 1
    for counter, extent in reversed(extents.items()):
        counters[counter] = [lane // inner % extent for lane in range(count)]
        inner *= extent
    return Warp(count, counters)


def first_warp(launch: LaunchOp) -> Warp:
    """The first warp of a launch."""
    arguments = zip(launch.body.block.args, launch.axes, strict=True)
    threads = {v: axis.extent.data for v, axis in arguments if axis.level.data is Level.THREAD}
    return warp_of({value: static_extent(extent) for value, extent in threads.items()})


def loads_of(stage: StageOp) -> list[LoadOp]:
    """The loads of a slab."""
    return [use.operation for use in stage.slab.uses if isinstance(use.operation, LoadOp)]


def vectors_of(loads: Sequence[LoadOp], launch: LaunchOp, pad: int) -> list[tuple[LoadOp, int]]:
    """Loads of a slab, those of neighbours in one block as one: the first of them, and how many they are.

    The C++ compiler loads them at once where their place is a multiple of their number, if rows are `pad`
    elements longer than their content.
    """
    rows: dict[object, dict[int, LoadOp]] = {}
    for load in loads:
        *outer, inner = load.map.data.results
        first = inner.eval([0] * len(load.indices), ())
        base = simplify(inner + -first, operand_ranges(load.indices))
        rows.setdefault((load.parent, tuple(load.indices), *outer, base), {})[first] = load
    found: list[tuple[LoadOp, int]] = []
    for row in rows.values():
        while row:
            first = min(row)
            width = max(w for w in (1, *WIDTHS) if _is_vector(row, first, w, launch, pad))
            found.append((row[first], width))
            for place in range(first, first + width):
                del row[place]
    return found


def _is_vector(
    row: Mapping[int, LoadOp], first: int, width: int, launch: LaunchOp, pad: int
) -> bool:
    """Whether loads of a row, by their number, begin with a vector of so many."""
    if width == 1:
        return True
    load = row[first]
    size = width * storage_bytes(load.result.type)
    if size > MAX_VECTOR_BYTES or any(first + i not in row for i in range(width)):
        return False
    shape = slab_shape(load, pad)
    return shape[-1] % width == 0 and all(p % width == 0 for p in places_of_lanes(load, launch, shape))


def conflict_degree(
    op: LoadOp | StoreOp,
    launch: LaunchOp,
    shape: Sequence[int],
    swizzle: int = 0,
    width: int = 1,
) -> int:
    """Turns that one access of a warp takes if the slab's rows are laid out as `shape` says.

    It is one of `width` elements that are neighbours. With a swizzle so many bytes wide, rows that are longer
    are cut in boxes that lie one after the other. Counters of loops and blocks are the same for all lanes and
    do not matter: they count as 0.
    """
    assert isinstance(op.memref.type, MemRefType)
    size = storage_bytes(op.memref.type.element_type)
    return turns(places_of_lanes(op, launch, shape, swizzle), size, width)


def places_of_lanes(
    op: LoadOp | StoreOp, launch: LaunchOp, shape: Sequence[int], swizzle: int = 0
) -> list[int]:
    """Where each lane of the first warp accesses a slab, in elements."""
    assert isinstance(op.memref.type, MemRefType)
    size = storage_bytes(op.memref.type.element_type)
    places = _boxed(first_warp(launch).index(op), shape, swizzle // size)
    return [swizzled(place * size, swizzle) // size for place in places] if swizzle else places


def turns(places: Sequence[int], size: int, width: int = 1) -> int:
    """Turns that a warp takes whose lanes access `width` elements of `size` bytes from these places on.

    So many lanes are served together as their words fill the banks: of 16-byte vectors, eight.
    """
    words_of_lane = max(width * size // BANK_BYTES, 1)
    together = max(BANKS // words_of_lane, 1)
    total = 0
    for first in range(0, len(places), together):
        wanted: dict[int, set[int]] = {}
        for place in places[first : first + together]:
            start = place * size // BANK_BYTES
            for word in range(start, start + words_of_lane):
                wanted.setdefault(word % BANKS, set()).add(word)
        total += max((len(words) for words in wanted.values()), default=1)
    return max(total, 1)


def sectors(places: Sequence[int], size: int, width: int = 1) -> int:
    """Sectors of memory outside that a warp touches, as in `turns`."""
    return len({(p + i) * size // SECTOR_BYTES for p in places for i in range(width)})


def places_in(index: Sequence[Sequence[int]], shape: Sequence[int]) -> list[int]:
    """Where elements lie in an array, given their places along an axis after the other."""
    places = [0] * len(index[0])
    for along, extent in zip(index, shape, strict=True):
        places = [place * extent + each for place, each in zip(places, along, strict=True)]
    return places


def _boxed(index: Sequence[Sequence[int]], shape: Sequence[int], width: int) -> list[int]:
    """The same in a slab whose rows are cut in boxes of `width`; 0 if they are not."""
    *outer, columns = index
    *extents, row = shape
    if not 0 < width < row:
        return places_in(index, shape)
    boxes, inside = [c // width for c in columns], [c % width for c in columns]
    return places_in([boxes, *outer, inside], [row // width, *extents, width])


def slab_shape(op: LoadOp | StoreOp, pad: int) -> list[int]:
    """The layout of a slab whose rows are `pad` elements longer than their content."""
    assert isinstance(op.memref.type, MemRefType)
    *outer, inner = static_shape(op.memref.type)
    return [*outer, inner + pad]
