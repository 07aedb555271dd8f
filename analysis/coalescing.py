"""How the accesses of a launch suit a GPU's memory, from their index maps alone.

    loop.load %x[%row, %k * 32 + %lane]       // 32 neighbours of 4 bytes: 4 sectors, no more than they fill
    loop.load %x[%lane, %k]                   // a sector for each lane: 32, of which they use an eighth

Global memory is moved in sectors of 32 bytes (CUDA C++ Programming Guide, "Device Memory Accesses"); what a
warp asks for at once is a request. Shared memory gives one word of each of its banks in a turn
(`bank_conflicts.py`). The lockstep machine counts the same while it executes (`interpreter/accesses.py`);
here the first warp of a block stands for all of them, and counters of loops and blocks are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.index import delinearize, linearize
from ..dialects.inside import ops_in
from ..dialects.kernel import WARP
from ..dialects.loop import ForOp, LoadOp, StoreOp
from ..dialects.loop_access import REGISTERS
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import Extent, shape_of, static_shape
from ..dialects.tile import SHARED, LaunchOp, StageOp
from ..index.affine import count_symbols, values_at
from .bank_conflicts import Warp, first_warp, places_of_lanes, slab_shape, turns, warp_of
from .cost import trips
from .slabs import Slab
from .vectors import VECTOR, is_vector

SECTOR = 32
"""Bytes."""

UNKNOWN_SIZE = 1025
"""What a dynamic size counts as: long, and no multiple of anything."""


@dataclass(frozen=True)
class AccessCost:
    """One access: sectors of global memory or turns of shared memory that a request takes, and the least."""

    location: str
    operation: str
    memory: str
    space: str
    cost: int
    least: int
    width: int = 1
    """Neighbouring elements that one instruction accesses."""
    lanes: tuple[int, ...] = ()
    """Where each lane of the first warp begins, in bytes from the beginning of the memory."""


def _width(op: LoadOp | StoreOp) -> int:
    """Neighbours that become one access."""
    loop = op.parent_op()
    if not isinstance(loop, ForOp) or VECTOR not in loop.attributes:
        return 1
    width = loop.extent.data
    if not isinstance(width, int) or loop.induction_var not in op.indices:
        return 1
    return width if is_vector(op, loop.induction_var, width) else 1


def sectors(op: LoadOp | StoreOp, warp: Warp, width: int = 1) -> tuple[int, int]:
    """Sectors that a warp's request of a global access needs, and how many its bytes fill."""
    return _request(_places_of(op, warp), _element_bytes(op), width)


def _places_of(op: LoadOp | StoreOp, warp: Warp) -> Sequence[int]:
    """The element that each lane accesses, by its number in the array."""
    assert isinstance(op.memref.type, MemRefType)
    flat = linearize(op.map.data.results, shape_of(op.memref.type))
    return _places(flat, warp.lanes, warp.dims(op))


def _element_bytes(op: LoadOp | StoreOp) -> int:
    assert isinstance(op.memref.type, MemRefType)
    return storage_bytes(op.memref.type.element_type)


def slab_sectors(slab: Slab, source: MemRefType) -> int:
    """Sectors of the request that copies the first elements of a slab, from where all counters are 0."""
    return _request(_slab_places(slab, source), storage_bytes(source.element_type))[0]


def _slab_places(slab: Slab, source: MemRefType) -> Sequence[int]:
    """The first elements of a slab, one for each lane of a warp, by their numbers in the array."""
    dims = max((d for e in slab.origin for d in e.used_dims()), default=-1) + 1
    skipped = len(slab.origin) - len(slab.shape)
    places = delinearize(AffineExpr.dimension(dims), slab.shape)
    exprs = [
        e + places[axis - skipped] if axis >= skipped else e for axis, e in enumerate(slab.origin)
    ]
    count = min(WARP, slab.elements)
    flat = linearize(exprs, shape_of(source))
    return _places(flat, count, [*[[0] * count] * dims, range(count)])


def _places(flat: AffineExpr, count: int, dims: Sequence[Sequence[int]]) -> Sequence[int]:
    """What an index is in so many lanes, whatever the sizes are."""
    return values_at(flat, count, dims, (UNKNOWN_SIZE,) * count_symbols([flat]))


def _request(places: Sequence[int], size: int, width: int = 1) -> tuple[int, int]:
    """Sectors that hold `width` neighbours of so many bytes from each element on, and how many these fill."""
    touched: set[int] = set()
    for place in places:
        touched.update(range(place * size, (place + width) * size))
    return len({byte // SECTOR for byte in touched}), -(-len(touched) // SECTOR)


def _is_computed_from(value: SSAValue, counter: SSAValue) -> bool:
    """Whether a value is computed from a counter, and is not the counter."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        here = todo.pop()
        if here in seen or not isinstance(here.owner, Operation):
            continue
        seen.add(here)
        todo += here.owner.operands
        if counter in here.owner.operands:
            return True
    return False


Axis = tuple[SSAValue, Extent]
"""A counter, and how far it counts."""


def sectors_of_lane(op: LoadOp | StoreOp, *axes: Axis) -> float:
    """Sectors that each lane adds to a request whose lanes go along the first axis, then the next one.

    An eighth for neighbours of 4 bytes, one for elements that lie apart, next to nothing for an element that
    all lanes read. An index that is itself computed from a counter, as one from a table, may lie anywhere.
    """
    memref = op.memref.type
    assert isinstance(memref, MemRefType)
    if any(_is_computed_from(value, counter) for value in op.indices for counter, _ in axes):
        return 1.0
    size = storage_bytes(memref.element_type)
    flat = linearize(op.map.data.results, shape_of(memref))
    warp = warp_of({counter: max(trips(extent), 1) for counter, extent in reversed(axes)})
    touched: set[int] = set()
    for place in _places(flat, warp.lanes, warp.dims(op)):
        touched.update((place * size // SECTOR, ((place + 1) * size - 1) // SECTOR))
    return len(touched) / warp.lanes


def _in_shared(op: LoadOp | StoreOp, launch: LaunchOp) -> tuple[Sequence[int], int]:
    """Where lanes access shared memory, in elements, and the turns of their request, as the slab lies."""
    stage, size = op.memref.owner, _element_bytes(op)
    if not isinstance(stage, StageOp):
        assert isinstance(op.memref.type, MemRefType)
        places = places_of_lanes(op, launch, static_shape(op.memref.type))
    else:
        shape = slab_shape(op, stage.padding)
        places = places_of_lanes(op, launch, shape, stage.swizzle_bytes)
    return places, turns(places, size)


def access_cost(op: Operation, launch: LaunchOp, warp: Warp) -> AccessCost | None:
    """What an operation of a launch costs as an access of memory; None if it is none, or one of registers."""
    match op:
        case LoadOp() | StoreOp() if isinstance(op.memref.type, MemRefType):
            memory, kind, size = op.memref, op.memref.type, _element_bytes(op)
            if kind.memory_space == REGISTERS:
                return None
            if kind.memory_space == SHARED:
                places, cost = _in_shared(op, launch)
                space, least, width = "shared", 1, 1
            else:
                width, places, space = _width(op), _places_of(op, warp), "global"
                cost, least = _request(places, size, width)
        case StageOp() if isinstance(op.source.type, MemRefType):
            memory, kind, space, width = op.source, op.source.type, "global", 1
            size = storage_bytes(kind.element_type)
            assert isinstance(op.slab.type, MemRefType)
            slab = Slab(list(op.map.data.results), list(static_shape(op.slab.type)), [])
            places = _slab_places(slab, kind)
            cost, least = _request(places, size)
        case _:
            return None
    lanes = tuple(place * size for place in places)
    name = memory.name_hint or "memory"
    return AccessCost(str(op.location), op.name, name, space, cost, least, width, lanes)


def access_costs(launch: LaunchOp) -> Iterator[AccessCost]:
    """The cost of each access of a launch, in order; registers cost nothing."""
    warp = first_warp(launch)
    found = (access_cost(op, launch, warp) for op in ops_in(launch))
    return (cost for cost in found if cost is not None)
