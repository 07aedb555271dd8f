"""`permute-register-tile`: which rows and columns a thread computes, so that its warp meets in no bank.

    schedule(#tile.schedule<..., block_n = 128, thread_n = 8>)
becomes
    schedule(#tile.schedule<..., block_n = 128, thread_n = 8, strip_n = 4>)

Without a strip, thread t of the 16 along N computes columns 8 t to 8 t + 7. With strips of 4 it computes
4 t to 4 t + 3 and 64 + 4 t to 64 + 4 t + 3; with strips of 1, columns t, 16 + t, 32 + t and so on.
`register-tile` carries it out. The strip along an axis is the one for which a warp takes the fewest turns in
shared memory, with the best padding; then the one that touches the fewest sectors of memory outside; then the
one that needs the fewest accesses, if neighbours are accessed as vectors of up to `vector` elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...analysis.bank_conflicts import Access, Warp, places_in, sectors, turns, warp_of
from ...analysis.cost import trips
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AccumulateOp, LoadOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import shape_of
from ...dialects.tile import SHARED, LaunchOp, Level, StageOp
from ...index.affine import count_symbols
from .pad_smem import PADS
from .recipe import Recipe, Taken


def position(thread: int, element: int, threads: int, strip: int) -> int:
    """Where an element of a thread's tile stands in the block, along one axis."""
    return element // strip * (threads * strip) + thread * strip + element % strip


@dataclass(frozen=True)
class _Axis:
    """An axis of the launch that register tiles are taken of."""

    value: SSAValue
    tile: int
    threads: int

    @property
    def strips(self) -> list[int]:
        """The strips there may be, the whole tile first."""
        return [s for s in range(self.tile, 0, -1) if self.tile % s == 0]


def _axes(launch: LaunchOp, schedule: ScheduleAttr) -> list[_Axis]:
    """The thread axes of a launch, in order."""
    tiles = {schedule.get(key): schedule.get(f"thread_{key}") or 1 for key in ("m", "n")}
    found: list[_Axis] = []
    for number, (value, axis) in enumerate(zip(launch.body.block.args, launch.axes, strict=True)):
        if axis.level.data is Level.THREAD:
            tile = tiles.get(number, 1)
            found.append(_Axis(value, tile, trips(axis.extent.data) // tile))
    return found


@dataclass(frozen=True)
class _Cost:
    """What an access of all elements of a tile along one axis costs a warp."""

    turns: int = 0
    sectors: int = 0
    accesses: int = 0

    def __add__(self, other: _Cost) -> _Cost:
        return _Cost(
            self.turns + other.turns,
            self.sectors + other.sectors,
            self.accesses + other.accesses,
        )

    @property
    def key(self) -> tuple[int, int, int]:
        """What is compared."""
        return self.turns, self.sectors, self.accesses


class _TileAccess:
    """A load or store, and what it costs the warp whose threads are those of `axes`."""

    def __init__(self, op: Access, axes: Sequence[_Axis]):
        memref = op.memref.type
        assert isinstance(memref, MemRefType)
        self.op = op
        self.axes = axes
        self.warp = warp_of({axis.value: axis.threads for axis in axes})
        self.bytes = storage_bytes(memref.element_type)
        self.shape = [trips(extent) for extent in shape_of(memref)]
        self.is_shared = memref.memory_space == SHARED

    def index(self, strips: Mapping[SSAValue, int], of: _Axis, element: int) -> list[Sequence[int]]:
        """Where the lanes access one element of the tile along an axis, one axis after the other."""
        counters: dict[SSAValue, list[int]] = {}
        for axis in self.axes:
            strip = strips.get(axis.value, axis.tile)
            chosen = element if axis is of else 0
            counters[axis.value] = [
                position(thread, chosen, axis.threads, strip)
                for thread in self.warp.counters[axis.value]
            ]
        return Warp(self.warp.lanes, counters).index(self.op)

    def cost(self, strips: Mapping[SSAValue, int], of: _Axis, vector: int) -> _Cost:
        """What it costs for all elements of the tile along an axis, with the best padding."""
        found: list[_Cost] = []
        elements = [self.index(strips, of, element) for element in range(of.tile)]
        *outer, inner = self.shape
        for pad in PADS if self.is_shared else (0,):
            each = [places_in(element, [*outer, inner + pad]) for element in elements]
            width = min(vector, strips[of.value])
            while width > 1 and not _is_vector(each, width):
                width //= 2
            first = each[:: max(width, 1)]
            count = turns if self.is_shared else sectors
            total = sum(count(places, self.bytes, max(width, 1)) for places in first)
            here = (total, 0) if self.is_shared else (0, total)
            found.append(_Cost(*here, len(first)))
        return min(found, key=lambda cost: cost.key)


def _is_vector(places: Sequence[Sequence[int]], width: int) -> bool:
    """Whether every `width` neighbours of a tile are neighbours in memory, at a multiple of the width."""
    for first in range(0, len(places), width):
        for lane, place in enumerate(places[first]):
            group = [places[first + i][lane] for i in range(width)]
            if place % width or group != list(range(place, place + width)):
                return False
    return True


def _accesses(launch: LaunchOp, axes: Sequence[_Axis]) -> list[_TileAccess]:
    """The accesses of a launch whose places a call does not change."""
    found = ops_of(launch, LoadOp, StoreOp, AccumulateOp)
    return [_TileAccess(op, axes) for op in found if not count_symbols(op.map.data.results)]


def choose_strips(launch: LaunchOp, schedule: ScheduleAttr, vector: int) -> dict[str, int]:
    """The strips along M and N that are worth it, as choices of a schedule."""
    axes = _axes(launch, schedule)
    accesses = _accesses(launch, axes)
    strips: dict[SSAValue, int] = {}
    chosen: dict[str, int] = {}
    for key in ("n", "m"):
        if schedule.get(f"thread_{key}") == 1:
            continue
        value = launch.body.block.args[schedule.get(key) or 0]
        of = next(axis for axis in axes if axis.value is value)
        concerned = [access for access in accesses if value in access.op.indices]
        costs: dict[int, tuple[int, int, int]] = {}
        for strip in of.strips:
            these = {**strips, value: strip}
            costs[strip] = sum((a.cost(these, of, vector) for a in concerned), _Cost()).key
        strips[value] = min(of.strips, key=costs.__getitem__)
        if strips[value] < of.tile:
            chosen[f"strip_{key}"] = strips[value]
    return chosen


def decline_reason(launch: LaunchOp) -> str | None:
    """Why the tiles of a launch are left as they are, or None."""
    schedule = launch.schedule
    if schedule is None or schedule.get("thread_m") is None or schedule.get("thread_n") is None:
        return "the schedule gives threads no tiles"
    if schedule.get("strip_m") is not None or schedule.get("strip_n") is not None:
        return "the schedule has its strips"
    if not any(isinstance(op, StageOp) for op in ops_in(launch)):
        return "nothing is staged"
    if schedule.get("threads") is not None:
        return "the tiles are in registers already"
    if schedule.get("thread_m") == 1 and schedule.get("thread_n") == 1:
        return "each thread computes a single element"
    return None


@dataclass(frozen=True)
class PermuteRegisterTilePass(Recipe):
    """Choose the strips of each launch whose threads compute tiles."""

    name = "permute-register-tile"

    vector: int = 1

    def take(self, launch: LaunchOp) -> Taken | str:
        if (reason := decline_reason(launch)) is not None:
            return reason
        assert launch.schedule is not None
        strips = choose_strips(launch, launch.schedule, self.vector)
        if not strips:
            return "neighbouring elements cost a warp the least"
        launch.schedule = launch.schedule.with_choices(**strips)
        listed = ", ".join(f"strips of {size} along {key[-1]}" for key, size in strips.items())
        return Taken(listed, [])
