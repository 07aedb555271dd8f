"""How the warps of a block multiply scores and values; a part of `warp_softmax.py`.

A thread has two rows of the block, and two neighbouring columns of each 8 of a product. By `tile.mma` a warp
multiplies what its threads hold and load. By `tile.wgmma` a warpgroup multiplies what its threads hold by
slabs, as the copy engine lays them: no thread loads keys or values. Both give a thread the same sums, and
what it has of scores is what it then multiplies values by.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.copies import bulk_refusal
from ...analysis.softmax import Softmax
from ...analysis.softmax_factors import Factors
from ...analysis.terms import Term
from ...dialects.loop import LoadOp
from ...dialects.schedule import Transport, TransportAttr
from ...dialects.sizes import shape_of
from ...dialects.tile import StageOp
from ...dialects.tile_mma import MmaOp, WgmmaOp
from ...dialects.wgmma import ROW_BYTES
from ...index.affine import ZERO, replace_dims
from ...machine.matrix_instructions import HALVES

COLUMNS, DEPTH = HALVES.shape[1:]
"""Columns and positions of the reduced axis that a warp multiplies at once."""

LANES, SLOTS = HALVES.lanes, HALVES.slots
"""Threads that share a row, and positions that each of them holds."""

ROWS = HALVES.thread_rows
"""Rows of one thread."""

Pairs = tuple[list[SSAValue], list[SSAValue]]
"""Of each of a thread's rows, what it has of two columns."""

SLAB_WIDTH = ROW_BYTES // 2
"""Short floats in a row of what warpgroups multiply by."""


@dataclass
class Place:
    """Where the body of a block stands: its counters, and which expressions of them are what.

    The last two counters are the thread among those along rows and its lane.
    """

    found: Softmax
    factors: Factors
    columns: int
    """Scores of a row that a chunk has."""
    arrays: dict[object, SSAValue]
    counters: list[SSAValue]
    dims: dict[int, AffineExpr]

    @property
    def thread(self) -> AffineExpr:
        """The thread among those along rows."""
        return AffineExpr.dimension(len(self.counters) - 2)

    @property
    def lane(self) -> AffineExpr:
        """The lane, among those that share a row."""
        return AffineExpr.dimension(len(self.counters) - 1)

    def stage(self, chunk: Block, term: Term, other: int, first: int, extent: int) -> StageOp:
        """The slab of a chunk's columns and of so many places of another dim from the first on."""
        sizes = {self.found.sweep: self.columns, other: extent}
        number = AffineExpr.dimension(len(self.counters))
        start = AffineExpr.constant(first)
        dims = {**self.dims, self.found.sweep: number * self.columns, other: start}
        used = [expr.used_dims() for expr in term.exprs]
        space = [dims.get(i, ZERO) for i in range(max(d for dims in used for d in dims) + 1)]
        exprs = [replace_dims(e, space) for e in term.exprs]
        own = _axes(term, sizes)
        shape = [sizes.get(dim, 1) for dim in own]
        stage = StageOp(self.arrays[term.key], exprs, [*self.counters, chunk.args[0]], shape)
        stage.location = self.found.launch.location
        if stage.source.name_hint:
            stage.slab.name_hint = f"{stage.source.name_hint}_smem"
        return stage


def _axes(term: Term, dims: Container[int]) -> list[int]:
    """Which of some dims goes along each axis of a slab, -1 for none; the first axis has one."""
    along = [next((d for d in e.used_dims() if d in dims), -1) for e in term.exprs]
    return along[next(i for i, dim in enumerate(along) if dim >= 0) :]


class Products(ABC):
    """Multiplies what the threads of a block have, chunk by chunk."""

    mma: ClassVar[int]
    """What the schedule says of them."""

    said: ClassVar[str]
    """Who multiplies, in words."""

    def __init__(self, place: Place):
        self.place = place
        bound = place.found.score.bound
        assert bound is not None
        self.inner = bound

    @abstractmethod
    def positions(self) -> list[AffineExpr]:
        """The positions of the reduced axis of scores at which a thread holds elements of its rows."""

    @abstractmethod
    def start(self, chunk: Block) -> None:
        """Stage what a chunk multiplies by."""

    @abstractmethod
    def scores(self, block: Block, left: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        """Of each 8 columns the scores, from what is held of each row."""

    @abstractmethod
    def values(self, block: Block, weights: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        """Of each 8 columns the sums of values, from the short weights of each row, two of each 8 columns."""


class WarpProducts(Products):
    """By `tile.mma`: threads load what they multiply by, at positions that suit them."""

    mma = 1
    said = "warps"

    def positions(self) -> list[AffineExpr]:
        steps = range(self.place.found.depth // DEPTH)
        return [
            self.place.lane * SLOTS + (step * DEPTH + slot)
            for step in steps
            for slot in range(SLOTS)
        ]

    def start(self, chunk: Block) -> None:
        place, found = self.place, self.place.found
        n = found.product.n
        self._right = place.stage(chunk, place.factors.right, self.inner, 0, found.depth)
        self._value = place.stage(chunk, place.factors.value, n, 0, found.width)
        chunk.add_ops([self._right, self._value])

    def scores(self, block: Block, left: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        return [self._score(block, left, tile) for tile in range(self.place.columns // COLUMNS)]

    def _score(self, block: Block, left: Sequence[Sequence[SSAValue]], tile: int) -> Pairs:
        sums: list[SSAValue] = []
        places = self.positions()
        for step in range(0, len(places), SLOTS):
            column = self.place.thread % COLUMNS + tile * COLUMNS
            columns = [
                self._load(block, self._right, self.place.factors.right, column, position)
                for position in places[step : step + SLOTS]
            ]
            rows = [value for row in left for value in row[step : step + SLOTS]]
            sums = _added(block, MmaOp(rows, columns), sums)
        return sums[:2], sums[2:]

    def values(self, block: Block, weights: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        tiles = range(self.place.found.width // COLUMNS)
        return [self._tile_of_values(block, weights, tile) for tile in tiles]

    def _tile_of_values(
        self, block: Block, weights: Sequence[Sequence[SSAValue]], tile: int
    ) -> Pairs:
        sums: list[SSAValue] = []
        for step in range(self.place.columns // DEPTH):
            # what a lane has of two tiles of scores, four of a row
            rows = [p for row in weights for p in row[SLOTS * step : SLOTS * (step + 1)]]
            column = self.place.thread % COLUMNS + tile * COLUMNS
            columns = [
                self._load(block, self._value, self.place.factors.value, position, column)
                for position in _pairs(self.place.lane, step)
            ]
            sums = _added(block, MmaOp(rows, columns), sums)
        return sums[:2], sums[2:]

    def _load(
        self, block: Block, stage: StageOp, term: Term, column: AffineExpr, other: AffineExpr
    ) -> SSAValue:
        """An element of a slab, at a column of scores and a place along the other dim."""
        sweep = self.place.found.sweep
        dims = _axes(term, {sweep, self.inner, self.place.found.product.n})
        exprs = [column if dim == sweep else ZERO if dim < 0 else other for dim in dims]
        return _insert(block, LoadOp(stage.slab, exprs, self.place.counters))


class WarpgroupProducts(Products):
    """By `tile.wgmma`: the tensor cores read keys and values in slabs of 64 neighbours a row."""

    mma = 2
    said = "warpgroups"

    def positions(self) -> list[AffineExpr]:
        steps = range(self.place.found.depth // DEPTH)
        return [each for step in steps for each in _pairs(self.place.lane, step)]

    def start(self, chunk: Block) -> None:
        place, found = self.place, self.place.found
        n = found.product.n
        self._right = self._slabs(chunk, place.factors.right, self.inner, found.depth)
        self._value = self._slabs(chunk, place.factors.value, n, found.width)

    def _slabs(self, chunk: Block, term: Term, other: int, extent: int) -> list[StageOp]:
        stages = [
            self.place.stage(chunk, term, other, first, SLAB_WIDTH)
            for first in range(0, extent, SLAB_WIDTH)
        ]
        for stage in stages:
            stage.via = TransportAttr(Transport.TMA)
            stage.swizzle = IntegerAttr(ROW_BYTES, i64)
        chunk.add_ops(stages)
        return stages

    def scores(self, block: Block, left: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        count = self.place.columns // COLUMNS * ROWS * 2
        sums: list[SSAValue] = []
        for number, stage in enumerate(self._right):
            first = number * SLAB_WIDTH // DEPTH
            held = _held(left, range(first, first + SLAB_WIDTH // DEPTH))
            sums = _added(block, WgmmaOp(held, stage.slab, count), sums)
        return _by_tile(sums)

    def values(self, block: Block, weights: Sequence[Sequence[SSAValue]]) -> list[Pairs]:
        count = SLAB_WIDTH // COLUMNS * ROWS * 2
        held = _held(weights, range(self.place.columns // DEPTH))
        products = [WgmmaOp(held, stage.slab, count, transposed=True) for stage in self._value]
        return [tile for each in products for tile in _by_tile(_added(block, each, []))]


def fits_warpgroups(found: Softmax, factors: Factors) -> bool:
    """Whether warpgroups can multiply by keys and values."""
    if found.depth % SLAB_WIDTH or found.width % SLAB_WIDTH:
        return False
    bound = found.score.bound
    assert bound is not None
    along = (factors.right, bound), (factors.value, found.product.n)
    return all(_comes_in_rows(term, found.sweep, other) for term, other in along)


def _comes_in_rows(term: Term, sweep: int, other: int) -> bool:
    """Whether the copy engine can fill slabs whose rows are columns of scores."""
    assert isinstance(term.key, SSAValue) and isinstance(term.key.type, TensorType)
    shape = [n for n in shape_of(term.key.type) if isinstance(n, int)]
    if _axes(term, {sweep, other}) != [sweep, other] or len(shape) != len(term.exprs):
        return False
    source = Block(arg_types=[MemRefType(term.type, shape)]).args[0]
    stage = StageOp(source, [ZERO] * len(term.exprs), [], [COLUMNS, SLAB_WIDTH])
    return bulk_refusal(stage, ROW_BYTES) is None


def _pairs(lane: AffineExpr, step: int) -> list[AffineExpr]:
    """The columns that a lane has of each 16: two of each 8."""
    return [
        lane * 2 + (step * DEPTH + half * COLUMNS + which) for half in (0, 1) for which in (0, 1)
    ]


def _held(rows: Sequence[Sequence[SSAValue]], steps: range) -> list[SSAValue]:
    """What a thread holds of its rows in some steps, as `tile.wgmma` takes it."""
    return [v for step in steps for row in rows for v in row[SLOTS * step : SLOTS * (step + 1)]]


def _by_tile(sums: Sequence[SSAValue]) -> list[Pairs]:
    """The sums of a thread, row by row, as those of each 8 columns."""
    half = len(sums) // 2
    return [(list(sums[i : i + 2]), list(sums[half + i : half + i + 2])) for i in range(0, half, 2)]


def _added(block: Block, product: MmaOp | WgmmaOp, sums: Sequence[SSAValue]) -> list[SSAValue]:
    """The products, added to sums if there are any."""
    block.add_op(product)
    if not sums:
        return list(product.products)
    return [
        _insert(block, arith.AddfOp(total, each))
        for total, each in zip(sums, product.products, strict=True)
    ]


def _insert(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]
