"""Whether a GPU's blocks should read an operand in tiles: where a warp's lanes read down its columns.

    tile.launch (%i = 1024 : thread, %j = 512 : thread) {
      %v = loop.load %x[%j, %i]          // 32 lanes, 32 rows: 32 sectors of 32 bytes for 128 bytes
      loop.store %v, %y[%i, %j]          // 4 sectors
    }

A block with 32 positions of each axis can copy 32 rows of 32 elements of `%x`, 4 sectors for 32 elements, and
read them in whichever order. The tile is long along the launch's last axes, which its stores go along, and
along those that an operand's memory goes along. What it saves is counted: the sectors that all accesses of
global memory take for the points of a warp, with and without it (`coalescing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ..dialects.inside import ops_in, ops_of
from ..dialects.kernel import WARP
from ..dialects.loop import ForOp, LoadOp, StoreOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import Size
from ..dialects.tile import LaunchOp
from ..machine.targets import Target
from .bank_conflicts import Warp, warp_of
from .coalescing import sectors, slab_sectors
from .conditions import slope_along
from .cost import trips
from .slabs import Slab, slab_of

EDGES = (64, 32, 16)
"""Positions that a tile may have of an axis, or of several that memory goes along."""

LINE = 128
"""Bytes of a line of the cache. A row of a tile is no longer, except of elements that have no 4 bytes."""

SAVED = 2 / 3
"""What a tile may leave of the sectors: it costs a barrier, and a way through shared memory."""

RESIDENT = 4
"""Blocks whose slabs a multiprocessor is to have room for, so that some copy while others compute."""


@dataclass(frozen=True)
class Tile:
    """How many positions of each axis a block has, how many of them are threads, and what it copies first."""

    sizes: tuple[int, ...]
    threads: tuple[int, ...]
    staged: Mapping[LoadOp, Slab]
    before: float
    after: float
    """Sectors for the points of a warp, as the launch is and in tiles."""

    @property
    def bytes(self) -> int:
        """Shared memory of a block."""
        return sum(slab.bytes(load) for load, slab in self.staged.items())


@dataclass(frozen=True)
class _Problem:
    """A launch of single elements: what it accesses, and along which axes the memory of each load goes.

    Only of loads that are read across: the last axis of the launch is a slower one in their memory.
    """

    launch: LaunchOp
    target: Target
    accesses: Sequence[LoadOp | StoreOp]
    across: Mapping[LoadOp, tuple[int, ...]]

    @property
    def counters(self) -> Sequence[SSAValue]:
        """The counters of the launch's axes."""
        return self.launch.body.block.args

    @property
    def extents(self) -> list[int]:
        """How many positions each axis has, or how many are expected."""
        return [trips(axis.extent.data) for axis in self.launch.axes]

    @property
    def element_bytes(self) -> int:
        """Bytes of the widest element that is read across."""
        return max(storage_bytes(load.result.type) for load in self.across)


def find_tile(launch: LaunchOp, target: Target) -> Tile | str:
    """The tile that saves a launch the most sectors, or why there is none."""
    if any(isinstance(op, ForOp) for op in ops_in(launch)):
        return "its body has loops"
    accesses = ops_of(launch, LoadOp, StoreOp)
    loads = [op for op in accesses if isinstance(op, LoadOp)]
    found = {load: _axes_along(load, launch.body.block.args) for load in loads}
    across = {load: axes for load, axes in found.items() if len(launch.axes) - 1 in axes[1:]}
    if not across:
        return "no operand is read across its rows"
    problem = _Problem(launch, target, accesses, across)
    points, least = prod(problem.extents), target.threads * target.processors
    if points < least:
        return f"{points} elements are too few for {least} threads"
    tiles = [
        tile
        for axes in dict.fromkeys(across.values())
        if (tile := _first_that_fits(problem, axes)) is not None
    ]
    if not tiles:
        return f"{RESIDENT} blocks have no room for their slabs"
    best = min(tiles, key=lambda tile: tile.after)
    if not best.staged:
        return "no slab takes fewer sectors than what is read of it"
    if best.after > best.before * SAVED:
        return f"{best.before:.0f} sectors for a warp's points would become {best.after:.0f}"
    return best


def _axes_along(load: LoadOp, counters: Sequence[SSAValue]) -> tuple[int, ...]:
    """The axes that a load's memory goes along, the fastest first; none if it leaves out elements."""
    if not set(load.indices) <= set(counters):
        return ()
    axes: list[int] = []
    for expr in reversed(load.map.data.results):
        slopes = {
            counters.index(value): abs(slope)
            for value in (load.indices[d] for d in expr.used_dims())
            if (slope := slope_along(expr, load.indices, value))
        }
        if not axes and 1 not in slopes.values():
            return ()
        axes += sorted(slopes, key=lambda axis: (slopes[axis], -axis))
    return tuple(axes)


def _first_that_fits(problem: _Problem, along: Sequence[int]) -> Tile | None:
    """The best tile along some axes with slabs that leave room for other blocks."""
    for sizes in _shapes(problem, along):
        tile = _tile(problem, sizes)
        if tile.bytes * RESIDENT <= problem.target.shared_bytes:
            return tile
    return None


# --------------------------------------------------------------------------- the shape of a tile


def _shapes(problem: _Problem, along: Sequence[int]) -> Iterable[tuple[int, ...]]:
    """Shapes of tiles, the best ones first: as large as give each processor one, then smaller ones."""
    longest = max(LINE // problem.element_bytes, WARP)
    shapes = [_shape(problem.launch, along, edge) for edge in EDGES if edge <= longest]
    enough = [
        shape
        for shape in shapes
        if prod(-(-n // size) for n, size in zip(problem.extents, shape, strict=True))
        >= problem.target.processors
    ]
    return enough or shapes[-1:]


def _shape(launch: LaunchOp, along: Sequence[int], edge: int) -> tuple[int, ...]:
    """Positions of each axis: about `edge` of the last ones and those `along`, or more if these are few."""
    sizes = [1] * len(launch.axes)
    last = range(len(sizes) - 1, -1, -1)
    run = _grow(sizes, launch, last, edge)
    _grow(sizes, launch, along, edge)
    _grow(sizes, launch, last, edge * edge * run // prod(sizes))
    return tuple(sizes)


def _grow(sizes: list[int], launch: LaunchOp, axes: Iterable[int], goal: int) -> int:
    """Give a tile positions of axes, one after the other, until it has so many; gives how many it has.

    An axis has all of its positions, or a power of two of them, which is then the last one.
    """
    run = 1
    for axis in axes:
        extent = launch.axes.data[axis].extent.data
        wanted = max(_power(-(-goal // run)), sizes[axis])
        whole = not isinstance(extent, Size) and extent <= wanted
        sizes[axis] = trips(extent) if whole else min(wanted, _power(trips(extent)))
        run *= sizes[axis]
        if not whole or run >= goal:
            break
    return run


def _power(number: int) -> int:
    """The power of two from a number on."""
    return 1 << max(number - 1, 0).bit_length()


# --------------------------------------------------------------------------- what it costs


def _tile(problem: _Problem, sizes: tuple[int, ...]) -> Tile:
    """A tile of these sizes, in which each load is staged that is read across, if that saves enough."""
    threads = _even_threads(sizes, problem.target.threads)
    warp = _warp(problem, threads)
    local = {value: size for value, size in zip(problem.counters, sizes, strict=True) if size > 1}
    staged: dict[LoadOp, Slab] = {}
    after = 0.0
    for op in problem.accesses:
        cost = _total([op], warp)
        slab = slab_of(op, local) if isinstance(op, LoadOp) and op in problem.across else None
        if slab is not None and isinstance(op, LoadOp) and slab.elements <= prod(sizes):
            copied = _copied(op, slab) * slab.elements / prod(sizes)
            if copied <= cost * SAVED:
                staged[op], cost = slab, copied
        after += cost
    now = _warp(problem, _first_threads(problem.extents, problem.target.threads))
    return Tile(sizes, threads, staged, _total(problem.accesses, now), after)


def _copied(load: LoadOp, slab: Slab) -> float:
    """Sectors that a copy takes for as many elements as a warp has lanes."""
    assert isinstance(load.memref.type, MemRefType)
    return slab_sectors(slab, load.memref.type) * WARP / min(WARP, slab.elements)


def _total(accesses: Iterable[LoadOp | StoreOp], warp: Warp) -> float:
    """Sectors that accesses take for as many points as a whole warp has lanes."""
    return sum(sectors(op, warp)[0] for op in accesses) * WARP / warp.lanes


def _warp(problem: _Problem, threads: Sequence[int]) -> Warp:
    """The first warp, if so many threads count each of the counters."""
    return warp_of(dict(zip(problem.counters, threads, strict=True)))


def _first_threads(extents: Sequence[int], threads: int) -> list[int]:
    """Threads of each axis where they are given to the last axes first, as `blockify-launch` does."""
    given: list[int] = []
    for extent in reversed(extents):
        given.append(min(extent, threads))
        threads //= given[-1]
    return given[::-1]


def _even_threads(sizes: Sequence[int], threads: int) -> tuple[int, ...]:
    """The same for a tile, so that the threads of an axis have, as far as can be, equally much to do."""
    given: list[int] = []
    for size in reversed(sizes):
        most = min(size, threads)
        fewest = range(most // 2 + 1, most + 1)
        given.append(max(fewest, key=lambda n: (-(-(-size // n) * n), n)))
        threads //= given[-1]
    return tuple(given[::-1])
