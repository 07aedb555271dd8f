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

The instruction is a row of `machine/matrix_instructions.py` that multiplies
the contraction's types; tiles of threads and chunks of K are multiples of its matrices. Above, these are 16
by 8 by 16. Each thread computes rows as far apart as there are threads along M, and pairs of columns
(`thread_tiles.py`): then its elements of the result are those that `tile.mma` gives it. A lane multiplies
positions of K that are neighbours, which one load may have. What follows the sweep is copied for each
element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.factors import find_factors
from ...analysis.index import always_holds, operand_ranges, simplify
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, LoadOp, TestOp, YieldOp
from ...dialects.scalars import Combiner
from ...dialects.sizes import Extent, static_extent
from ...dialects.tile import LaunchOp, Level, StageOp
from ...dialects.tile_mma import MmaOp
from ...index.affine import replace_dims
from ...machine.matrix_instructions import MatrixInstruction
from ..loop.scalar_code import emit_constant
from ..lower_loops import CHUNK
from .thread_tiles import tile_registers

_ELEMENT = "deplo.element"
"""Marks what stands for the sum of one element until the elements are there."""


@dataclass(frozen=True)
class Product:
    """A staged contraction that an instruction multiplies, and the launch axes of its rows and columns."""

    launch: LaunchOp
    outer: ForOp
    inner: ForOp
    factors: tuple[tuple[SSAValue, SSAValue], ...]
    """What is multiplied for each sum: first of the rows, then of the columns."""
    row: MatrixInstruction
    """The instruction that multiplies it."""
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


def find_product(
    launch: LaunchOp,
    instructions: Sequence[MatrixInstruction],
    positions: tuple[int, int],
    tile: tuple[int, int],
) -> Product | str:
    """The contraction that the first of some instructions that fits is to multiply, or why none does.

    Its rows and columns are axes at these positions; each thread computes a tile of so many.
    """
    (m, n), (thread_m, thread_n) = positions, tile
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
    multiplied = find_factors(inner, instructions)
    if isinstance(multiplied, str):
        return multiplied
    height, width = (static_extent(launch.axes.data[axis].extent.data) for axis in axes)
    chunk = height, width, static_extent(inner.extent.data)
    misfits = {row: row.misfit(chunk, (thread_m, thread_n)) for row in multiplied.rows}
    row = next((row for row, reason in misfits.items() if reason is None), None)
    if row is None:
        return next(reason for reason in misfits.values() if reason is not None)
    ordered = [_ordered(pair, inner, rows, columns) for pair in multiplied.pairs]
    if (reason := next((o for o in ordered if isinstance(o, str)), None)) is not None:
        return reason
    factors = tuple(o for o in ordered if not isinstance(o, str))
    return Product(launch, outer, inner, factors, row, m, n, thread_m, thread_n)


def _loads(loop: ForOp) -> list[LoadOp]:
    return ops_of(loop, LoadOp)


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
        row = self.found.row
        column = AffineExpr.dimension(0) % row.groups + tile * row.shape[1]
        return self._at(factor, {self.found.columns: column})

    def _at(self, value: SSAValue, where: dict[SSAValue, AffineExpr]) -> list[SSAValue]:
        """A value at the thread's positions of K; loads of neighbours follow each other, as vectors do."""
        lane, step = AffineExpr.dimension(1), AffineExpr.dimension(2)
        row = self.found.row
        copied: list[dict[SSAValue, SSAValue]] = [{} for _ in range(row.slots)]
        for op in _slice(value, self.found.inner):
            for slot, values in enumerate(copied):
                place = step * row.depth + lane * row.slots + slot
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
    fragments, row = _Fragments(found, body, threads), found.row
    flat: list[SSAValue] = []
    tiles = found.thread_n // row.thread_columns
    for (row_factor, column_factor), product in zip(
        found.factors, found.inner.yielded, strict=True
    ):
        columns = [fragments.column(column_factor, tile) for tile in range(tiles)]
        for first in range(0, found.thread_m, row.thread_rows):
            numbers = range(first, first + row.thread_rows)
            rows = [v for number in numbers for v in fragments.row(row_factor, number)]
            products = [MmaOp(rows, column) for column in columns]
            for mma in products:
                mma.location = found.inner.location
                for value in mma.products:
                    value.name_hint = product.name_hint
            body.add_ops(products)
            for each in range(row.thread_rows):
                own = slice(each * row.thread_columns, (each + 1) * row.thread_columns)
                flat += [value for mma in products for value in mma.products[own]]
    body.add_op(YieldOp(*flat))
    loop = summing(static_extent(found.inner.extent.data) // row.depth, body, flat)
    loop.attributes[CHUNK] = UnitAttr()
    return loop


def operations_behind(op: Operation, block: Block) -> list[Operation]:
    """The operations of a block that compute what one of them reads, in order."""
    found: set[Operation] = set()
    todo = [op]
    while todo:
        read = (value.owner for inner in ops_in(todo.pop()) for value in inner.operands)
        new = {o for o in read if isinstance(o, Operation) and o.parent is block} - found
        found |= new
        todo += new
    return [each for each in block.ops if each in found]


def summing(extent: Extent, body: Block, values: Sequence[SSAValue]) -> ForOp:
    """A loop that adds up some values."""
    combiners, types = [Combiner.ADD] * len(values), [value.type for value in values]
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
        element = emit_constant(Builder(InsertPoint.before(outer)), 0, result.type)
        assert isinstance(element.owner, Operation)
        element.owner.attributes[_ELEMENT] = UnitAttr()
        result.replace_all_uses_with(element)
    shared = operations_behind(outer, block)
    for op in (outer, *shared):
        op.detach()
    tile_registers(launch, {found.m: found.thread_m, found.n: found.thread_n}, strips, paired)
    assert block.first_op is not None
    block.insert_ops_before(shared, block.first_op)
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
    sums = summing(outer.extent.data, body, parts)
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

    rebuild(found, {found.m: 1, found.n: found.row.thread_columns}, {}, multiply)
