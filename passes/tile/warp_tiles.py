"""The warps of a block multiply matrices.

    tile.launch (%i = 64 : thread, %j = 32 : thread) {
      %s = loop.for %k_block = 0 to 16 reduce(add) -> f32 {
        %xs = tile.stage ...
        %ws = tile.stage ...
        %c = loop.for %k = 0 to 32 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
becomes, with tiles of 2 by 8 for each thread,
    tile.launch (%i = 32 : thread, %j = 4 : thread) {
      %s:16 = loop.for %k_block = 0 to 16 reduce(add, ...) -> f32, ... {
        %xs = tile.stage ...
        %ws = tile.stage ...
        %c:16 = loop.for %k = 0 to 2 reduce(add, ...) -> f32, ... {
          %a0 = loop.load %xs[%i, %k * 16 + %j * 4]          // four positions of two rows, and of a column
          ...
          %b0 = loop.load %ws[%i mod 8, %k * 16 + %j * 4]
          ...
          %d0, %d1, %d2, %d3 = tile.mma (%a0, ...) by (%b0, ...) : bf16

Each thread computes rows as far apart as there are threads along M, and pairs of columns
(`thread_tiles.py`): then its elements of the result are those that `tile.mma` gives it. A lane multiplies
four positions of K that are neighbours, which one load may have. What follows the sweep is copied for each
element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, UnitAttr, f32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.factors import find_factors
from ...analysis.index import always_holds, operand_ranges, simplify
from ...dialects.inside import ops_in
from ...dialects.kernel import WARP
from ...dialects.loop import ForOp, LoadOp, TestOp, YieldOp
from ...dialects.mma import COLUMNS, DEPTH, LANES, SLOTS
from ...dialects.scalars import Combiner
from ...dialects.sizes import Extent, static_extent
from ...dialects.tile import LaunchOp, Level, StageOp
from ...dialects.tile_mma import MmaOp
from ...index.affine import replace_dims
from ..lower_loops import CHUNK
from .thread_tiles import tile_registers

_ELEMENT = "deplo.element"
"""Marks what stands for the sum of one element until the elements are there."""


@dataclass(frozen=True)
class Product:
    """A staged contraction of short floats, and the launch axes of its rows and columns."""

    launch: LaunchOp
    outer: ForOp
    inner: ForOp
    factors: tuple[tuple[SSAValue, SSAValue], ...]
    """What is multiplied for each sum: first of the rows, then of the columns."""
    m: int
    n: int
    thread_m: int
    thread_n: int

    @property
    def rows(self) -> SSAValue:
        """The counter of rows."""
        return self.launch.body.block.args[self.m]

    @property
    def columns(self) -> SSAValue:
        """The counter of columns."""
        return self.launch.body.block.args[self.n]


def _slice(value: SSAValue, loop: ForOp) -> list[Operation]:
    """The operations in the body of a loop that a value is made of, in order."""
    todo, found = [value], set[Operation]()
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Operation) and owner.parent is loop.body.block:
            found.add(owner)
            todo += owner.operands
    return [op for op in loop.body.block.ops if op in found]


def find_product(launch: LaunchOp, m: int, n: int, thread_m: int, thread_n: int) -> Product | str:
    """The contraction that warps are to multiply, whose threads compute so many rows and columns, along
    these axes; or why they do not."""
    axes = [i for i, axis in enumerate(launch.axes) if axis.level.data is Level.THREAD]
    if axes != [m, n]:
        return "its threads count more than rows and columns"
    block = launch.body.block
    outer = next((o for o in block.ops if isinstance(o, ForOp) and o.res), None)
    inner = outer and next((o for o in outer.body.ops if isinstance(o, ForOp)), None)
    if outer is None or inner is None or not any(isinstance(o, StageOp) for o in outer.body.ops):
        return "its operands are not staged"
    if any(
        isinstance(o.memref.owner, StageOp) and o.memref.owner.parent_op() is not outer
        for o in _loads(inner)
    ):
        return "a slab stays the same for all of K"
    rows, columns = block.args[m], block.args[n]
    others = [op for op in outer.body.ops if op is not inner]
    if (
        CHUNK not in inner.attributes
        or list(outer.yielded) != list(inner.res)
        or outer.combiners != inner.combiners
        or any({rows, columns}.intersection(op.operands) for op in others)
    ):
        return "the sweep does more than add up its chunks"
    height, width = (static_extent(launch.axes.data[axis].extent.data) for axis in axes)
    depth = static_extent(inner.extent.data)
    if width != LANES * thread_n or height // thread_m * LANES % WARP:
        return f"whole warps of {LANES} lanes do not share {height} by {width} elements"
    if depth % DEPTH or thread_m % 2 or thread_n % 2:
        return f"threads of {thread_m} by {thread_n}, chunks of {depth}: no pairs, or no {DEPTH}s"
    pairs = find_factors(inner)
    if isinstance(pairs, str):
        return pairs
    ordered = [_ordered(pair, inner, rows, columns) for pair in pairs]
    if (reason := next((o for o in ordered if isinstance(o, str)), None)) is not None:
        return reason
    factors = tuple(o for o in ordered if not isinstance(o, str))
    return Product(launch, outer, inner, factors, m, n, thread_m, thread_n)


def _loads(loop: ForOp) -> list[LoadOp]:
    return [op for op in ops_in(loop) if isinstance(op, LoadOp)]


def _ordered(
    pair: tuple[SSAValue, SSAValue], inner: ForOp, rows: SSAValue, columns: SSAValue
) -> tuple[SSAValue, SSAValue] | str:
    """Two factors, that of the rows first, or why they are not one of rows and one of columns."""
    read: list[SSAValue] = []
    for factor in pair:
        made_of = _slice(factor, inner)
        for op in made_of:
            counts = {rows, columns, inner.induction_var}.intersection(op.operands)
            if op.regions or (counts and not isinstance(op, LoadOp | TestOp)):
                return f"a factor is made by '{op.name}'"
        read += {i for op in made_of for i in op.operands} & {rows, columns}
    if len(read) != 2 or set(read) != {rows, columns}:
        return "its factors are not one of rows and one of columns"
    return pair if read[0] is rows else (pair[1], pair[0])


class _Fragments:
    """Writes the loads of factors, for a lane's rows, its column and its positions of K."""

    def __init__(self, found: Product, block: Block, threads: int):
        self.found = found
        self.block = block
        self.threads = threads
        self.space = [found.rows, found.columns, block.args[0]]

    def row(self, factor: SSAValue, number: int) -> list[SSAValue]:
        """A factor in one of the thread's rows, at the thread's positions of K."""
        row = AffineExpr.dimension(0) + number * self.threads
        return self._at(factor, {self.found.rows: row})

    def column(self, factor: SSAValue, tile: int) -> list[SSAValue]:
        """A factor in the column that the thread has of some columns, at the same positions."""
        column = AffineExpr.dimension(0) % COLUMNS + tile * COLUMNS
        return self._at(factor, {self.found.columns: column})

    def _at(self, value: SSAValue, where: dict[SSAValue, AffineExpr]) -> list[SSAValue]:
        """A value at the thread's positions of K; loads of neighbours follow each other, as vectors do."""
        lane, step = AffineExpr.dimension(1), AffineExpr.dimension(2)
        copied: list[dict[SSAValue, SSAValue]] = [{} for _ in range(SLOTS)]
        for op in _slice(value, self.found.inner):
            for slot, values in enumerate(copied):
                place = step * DEPTH + lane * SLOTS + slot
                places = {**where, self.found.inner.induction_var: place}
                if (new := self._copy(op, places, values)) is None:
                    continue
                new.location = op.location
                self.block.add_op(new)
                for old, result in zip(op.results, new.results, strict=True):
                    result.name_hint = old.name_hint
                    values[old] = result
        return [values[value] for values in copied]

    def _copy(
        self, op: Operation, places: dict[SSAValue, AffineExpr], values: dict[SSAValue, SSAValue]
    ) -> Operation | None:
        """An operation at a place; None of a condition that always holds there, and of what it chooses."""
        match op:
            case LoadOp():
                return LoadOp(op.memref, *self._moved(op.map.data.results, op.indices, places))
            case TestOp():
                exprs, space = self._moved(op.exprs, op.operands_, places)
                ranges = operand_ranges(space)
                holds = all(always_holds(expr, ranges) for expr in exprs)
                return None if holds else TestOp(exprs, space)
            case arith.SelectOp() if isinstance(op.cond.owner, TestOp) and op.cond not in values:
                values[op.result] = values[op.lhs]
                return None
            case _:
                return op.clone(values)

    def _moved(
        self,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        places: dict[SSAValue, AffineExpr],
    ) -> tuple[list[AffineExpr], list[SSAValue]]:
        space = [*self.space, *(v for v in operands if v not in places)]
        dims = [places.get(v) or AffineExpr.dimension(space.index(v)) for v in operands]
        ranges = operand_ranges(space)
        return [simplify(replace_dims(e, dims), ranges) for e in exprs], space


def _chunk(found: Product, threads: int) -> ForOp:
    """The loop over a chunk of K, with each sum for each element of a thread's tile."""
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = found.inner.induction_var.name_hint
    fragments = _Fragments(found, body, threads)
    flat: list[SSAValue] = []
    for (row_factor, column_factor), product in zip(
        found.factors, found.inner.yielded, strict=True
    ):
        columns = [fragments.column(column_factor, tile) for tile in range(found.thread_n // 2)]
        for number in range(0, found.thread_m, 2):
            rows = [v for row in (number, number + 1) for v in fragments.row(row_factor, row)]
            products = [MmaOp(rows, column) for column in columns]
            for mma in products:
                mma.location = found.inner.location
                for value in mma.products:
                    value.name_hint = product.name_hint
            body.add_ops(products)
            flat += [value for mma in products for value in mma.products[:2]]
            flat += [value for mma in products for value in mma.products[2:]]
    body.add_op(YieldOp(*flat))
    loop = summing(static_extent(found.inner.extent.data) // DEPTH, body, len(flat))
    loop.attributes[CHUNK] = UnitAttr()
    return loop


def summing(extent: Extent, body: Block, count: int) -> ForOp:
    """A loop that adds up so many values in f32."""
    combiners, types = [Combiner.ADD] * count, [f32] * count
    return ForOp(extent, Region(body), combiners=combiners, result_types=types)


def rebuild(
    found: Product,
    strips: Mapping[int, int],
    paired: Mapping[int, int],
    multiply: Callable[[], tuple[list[Operation], list[SSAValue]]],
) -> None:
    """Give each thread its elements, as strips and pairs say, and each of their sums a part for a chunk of K.

    `multiply` makes what multiplies a chunk, once threads have their tiles, and the parts, for each sum one
    element after the other.
    """
    launch, outer = found.launch, found.outer
    block = launch.body.block
    for result in outer.res:
        element = arith.ConstantOp(FloatAttr(0.0, f32))
        element.attributes[_ELEMENT] = UnitAttr()
        block.insert_op_before(element, outer)
        result.replace_all_uses_with(element.result)
    outer.detach()
    tile_registers(launch, {found.m: found.thread_m, found.n: found.thread_n}, strips, paired)
    elements = [op for op in block.ops if _ELEMENT in op.attributes]
    products, parts = multiply()
    body = outer.body.block
    body.insert_ops_before(products, found.inner)
    for op in (body.last_op, found.inner):
        assert op is not None
        op.detach()
        op.erase()
    body.add_op(YieldOp(*parts))
    outer.body.detach_block(body)
    sums = summing(outer.extent.data, body, len(elements))
    sums.location = outer.location
    block.insert_op_before(sums, elements[0])
    size = found.thread_m * found.thread_n
    for number, (op, part, whole) in enumerate(zip(elements, parts, sums.res, strict=True)):
        whole.name_hint = outer.res[number // size].name_hint
        part.name_hint = found.inner.res[number // size].name_hint
        op.results[0].replace_all_uses_with(whole)
        op.detach()
        op.erase()


def use_warps(found: Product) -> None:
    """Let the warps of a launch multiply matrices."""

    def multiply() -> tuple[list[Operation], list[SSAValue]]:
        chunk = _chunk(found, static_extent(found.launch.axes.data[found.m].extent.data))
        return [chunk], list(chunk.res)

    rebuild(found, {found.m: 1, found.n: 2}, {}, multiply)
