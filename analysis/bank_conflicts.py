"""How the threads of a warp meet in the banks of shared memory.

Shared memory has 32 banks of four bytes. A warp's load takes as many turns as the most distinct words that
its lanes want from one bank; lanes that want the same word share it (CUDA C++ Programming Guide, "Shared
Memory").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ..dialects.kernel import WARP
from ..dialects.kernel_vector import MAX_VECTOR_BYTES, WIDTHS
from ..dialects.loop import LoadOp, StoreOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import static_extent, static_shape
from ..dialects.tensor_map import swizzled
from ..dialects.tile import LaunchOp, Level, StageOp
from .index import operand_ranges, simplify

BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
"""What memory outside the multiprocessor gives at once."""


def lanes(launch: LaunchOp) -> list[dict[int, int]]:
    """For each lane of the first warp, the value of each thread axis, by position among the axes."""
    positions = [i for i, a in enumerate(launch.axes) if a.level.data is Level.THREAD]
    extents = [static_extent(launch.axes.data[i].extent.data) for i in positions]
    listed: list[dict[int, int]] = []
    for lane in range(min(WARP, prod(extents))):
        values: dict[int, int] = {}
        rest = lane
        for position, extent in zip(reversed(positions), reversed(extents), strict=True):
            values[position] = rest % extent
            rest //= extent
        listed.append(values)
    return listed


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
    return shape[-1] % width == 0 and all(p % width == 0 for p in _places(load, launch, shape))


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
    return turns(_places(op, launch, shape, swizzle), size, width)


def _places(
    op: LoadOp | StoreOp, launch: LaunchOp, shape: Sequence[int], swizzle: int = 0
) -> list[int]:
    """Where each lane of the first warp accesses a slab, in elements."""
    assert isinstance(op.memref.type, MemRefType)
    size = storage_bytes(op.memref.type.element_type)
    arguments: list[SSAValue] = list(launch.body.block.args)
    places: list[int] = []
    for values in lanes(launch):
        dims = [values.get(arguments.index(v), 0) if v in arguments else 0 for v in op.indices]
        index = [expr.eval(dims, ()) for expr in op.map.data.results]
        offset = _offset(index, shape, swizzle // size)
        places.append(swizzled(offset * size, swizzle) // size)
    return places


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


def _offset(index: Sequence[int], shape: Sequence[int], width: int) -> int:
    """Where an element lies in a slab whose rows are cut in boxes of `width`; 0 if they are not."""
    *outer, column = index
    *extents, row = shape
    cut = width if 0 < width < row else row
    line = 0
    for position, extent in zip(outer, extents, strict=True):
        line = line * extent + position
    return (column // cut * prod(extents) + line) * cut + column % cut


def slab_shape(op: LoadOp | StoreOp, pad: int) -> list[int]:
    """The layout of a slab whose rows are `pad` elements longer than their content."""
    assert isinstance(op.memref.type, MemRefType)
    *outer, inner = static_shape(op.memref.type)
    return [*outer, inner + pad]
