"""`transpose-tiles`: a CPU block that reads an operand down its columns turns squares of it in registers.

    loop.for %i = 0 to 16 {
      loop.for %j = 0 to 64 {
        %v = loop.load %x[%j, %i]        loop.store %v, %y[%i, %j]
      }
    }
becomes
    %t = loop.transpose %x[0, 0] along 0 : memref<64x16xf32> -> memref<16x64xf32>
    loop.for %i = 0 to 16 {
      loop.for %j = 0 to 64 {
        %v = loop.load %t[%i, %j]        loop.store %v, %y[%i, %j]
      }
    }

A line of the cache holds 16 elements of a row of `%x`; it is read once, as a vector. What rows and columns
have beyond whole squares stays as it was, in loops of its own, and so do squares of which a condition, such
as the end of a dynamic axis, leaves elements out. Large squares of these become smaller ones first.

Declined are GPU targets, elements of more than 4 bytes, and blocks with no square.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import slope_along
from ...analysis.index import operand_ranges, simplify
from ...analysis.launches import open_kernels
from ...analysis.vectors import dimension_along
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp, TestOp, TransposeOp
from ...dialects.loop_transpose import SQUARE
from ...dialects.scalars import storage_bytes
from ...index.affine import replace_dims
from ..decisions import record
from ..replacing import replace
from .rewrite_indices import rewrite_index

MOST_BYTES = 4
"""Sixteen elements are one vector then, and a square is sixteen registers."""

MOST_ROWS = 32
MOST_COLUMNS = 128
"""Rows and columns of the result that squares are turned for at once; they lie on the stack."""
MOST_GUARDED = 32
"""The same where a condition may leave some of them out: those are of smaller squares, or one by one."""


D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)


@dataclass(frozen=True)
class _Nest:
    """Two loops, one in the other, and nothing else; what they do may be under a condition."""

    rows: ForOp
    columns: ForOp

    @property
    def guard(self) -> scf.IfOp | None:
        """The condition on what they do, if all of it has one."""
        return _guard(self.columns.body.block)

    @property
    def body(self) -> Block:
        """What they do."""
        guard = self.guard
        return self.columns.body.block if guard is None else guard.true_region.block

    @property
    def counters(self) -> tuple[SSAValue, SSAValue]:
        """What they count."""
        return self.rows.induction_var, self.columns.induction_var

    @property
    def extents(self) -> tuple[int, int]:
        """How often they run."""
        rows, columns = self.rows.extent.data, self.columns.extent.data
        assert isinstance(rows, int) and isinstance(columns, int)
        return rows, columns


def _nests(kernel: KernelOp) -> list[_Nest]:
    """The pairs of loops of a kernel that could run square by square."""
    found: list[_Nest] = []
    for loop in ops_of(kernel, ForOp):
        inner = loop.body.block.first_op
        if not isinstance(inner, ForOp) or inner.next_op is not loop.body.block.last_op:
            continue
        fixed = all(isinstance(each.extent.data, int) for each in (loop, inner))
        if fixed and not loop.res and not inner.res:
            found.append(_Nest(loop, inner))
    return found


def _transposed(nest: _Nest) -> dict[LoadOp, int]:
    """The loads of a nest that squares can serve: what else their index reads is known in front of it."""
    found: dict[LoadOp, int] = {}
    for op in nest.body.ops:
        if not isinstance(op, LoadOp) or any(_is_computed_in(nest, v) for v in op.indices):
            continue
        if (along := dimension_along(op, *nest.counters)) is not None:
            found[op] = along
    return found


def _is_computed_in(nest: _Nest, value: SSAValue) -> bool:
    """Whether a nest computes a value, such as an index from data, for each of its points."""
    return isinstance(value.owner, Operation) and nest.rows.is_ancestor(value.owner)


def _reason(nest: _Nest) -> str | None:
    """Why a nest with transposed loads stays."""
    if any(storage_bytes(load.result.type) > MOST_BYTES for load in _transposed(nest)):
        return f"elements have more than {MOST_BYTES} bytes"
    rows, columns = nest.extents
    if min(rows, columns) < SQUARE:
        return f"a block of {rows} by {columns} has no square of {SQUARE}"
    if nest.guard is not None and not _ends(nest):
        return "its condition does more than end rows and columns"
    return None


def _guard(body: Block) -> scf.IfOp | None:
    """The condition on all of a loop's body, if there is one of counters that chooses nothing."""
    match list(body.ops):
        case [TestOp() as test, scf.IfOp(cond=cond) as guard, _] if cond is test.result:
            return None if guard.output or guard.false_region.blocks else guard
        case _:
            return None


def _ends(nest: _Nest) -> bool:
    """Whether a condition that holds at the last row and column of a part holds in all of it."""
    guard = nest.guard
    assert guard is not None and isinstance(guard.cond.owner, TestOp)
    test = guard.cond.owner
    slopes = [
        slope_along(e, test.operands_, counter) for e in test.exprs for counter in nest.counters
    ]
    return all(slope is not None and slope <= 0 for slope in slopes)


def _loop(builder: Builder, extent: int, name: str | None) -> tuple[ForOp, Builder]:
    loop = builder.insert(ForOp(extent, Region(Block(arg_types=[IndexType()]))))
    loop.induction_var.name_hint = name
    assert loop.body.block.last_op is not None
    return loop, Builder(InsertPoint.before(loop.body.block.last_op))


def _fill(
    nest: _Nest,
    into: Builder,
    exprs: tuple[AffineExpr, AffineExpr],
    counters: list[SSAValue],
    *,
    inside: bool = False,
) -> None:
    """Copy the body of a nest, its counters replaced by expressions; without its condition if `inside`."""
    rows = nest.rows.clone()
    columns = rows.body.block.first_op
    assert isinstance(columns, ForOp)
    copy = _Nest(rows, columns)
    old: dict[SSAValue, AffineExpr] = dict(zip(copy.counters, exprs, strict=True))
    body = copy.body if inside else columns.body.block
    moved = [op for op in body.ops if op is not body.last_op]
    for op in moved:
        op.detach()
        into.insert(op)
    for op in moved:
        for each in ops_in(op):
            rewrite_index(each, old, counters)
    rows.erase()


def _part(extent: int, most: int) -> int:
    """How many of the rows or columns to take at once: so that most of them are in such parts."""
    sizes = range(SQUARE, most + 1, SQUARE)
    return max(sizes, key=lambda size: (extent // size * size, size))


def tile(nest: _Nest, most_guarded: int = MOST_GUARDED) -> int:
    """Run a nest square by square, the rest as before; gives how many loads squares serve."""
    loads = list(_transposed(nest))
    along = [_transposed(nest)[load] for load in loads]
    rows, columns = nest.extents
    names = [loop.induction_var.name_hint for loop in (nest.rows, nest.columns)]
    before = Builder(InsertPoint.before(nest.rows))
    guard = nest.guard
    most = (MOST_ROWS, MOST_COLUMNS) if guard is None else (most_guarded, most_guarded)
    height, width = _part(rows, most[0]), _part(columns, most[1])
    _, inside = _loop(before, rows // height, f"{names[0] or 'i'}_tile")
    row_tiles = inside.insertion_point.block.args[0]
    _, inside = _loop(inside, columns // width, f"{names[1] or 'j'}_tile")
    column_tiles = inside.insertion_point.block.args[0]
    places = (D0 * height, D1 * width)
    tiles: list[SSAValue] = [row_tiles, column_tiles]
    if guard is not None:
        inside = _where_whole(nest, guard, inside, tiles, (height, width))
    squares: list[SSAValue] = []
    for load, dimension in zip(loads, along, strict=True):
        others = [v for v in load.indices if v not in nest.counters]
        space = [row_tiles, column_tiles, *others]
        first = dict(zip(nest.counters, places, strict=True))
        dims = [
            first[v] if v in first else AffineExpr.dimension(space.index(v)) for v in load.indices
        ]
        ranges = operand_ranges(space)
        exprs = [simplify(replace_dims(e, dims), ranges) for e in load.map.data.results]
        made = inside.insert(TransposeOp(load.memref, exprs, space, dimension, (height, width)))
        made.location = load.location
        made.result.name_hint = f"{load.memref.name_hint or 'x'}_t"
        squares.append(made.result)
    within, counters, inside = _points(nest, inside, tiles, (height, width))
    _read_squares(nest, inside, within, counters, loads, squares)
    _rest(nest, before, rows // height * height, columns // width * width)
    nest.rows.detach()
    nest.rows.erase()
    return len(loads)


def _points(
    nest: _Nest, builder: Builder, tiles: list[SSAValue], size: tuple[int, int]
) -> tuple[tuple[AffineExpr, AffineExpr], list[SSAValue], Builder]:
    """Loops over the points of a part: expressions of the nest's counters, of what, and where it goes on."""
    counters, exprs = list(tiles), list[AffineExpr]()
    for number, (loop, extent) in enumerate(zip((nest.rows, nest.columns), size, strict=True)):
        made, builder = _loop(builder, extent, loop.induction_var.name_hint)
        counters.append(made.induction_var)
        exprs.append(AffineExpr.dimension(number) * extent + AffineExpr.dimension(number + 2))
    return (exprs[0], exprs[1]), counters, builder


def _where_whole(
    nest: _Nest, guard: scf.IfOp, builder: Builder, tiles: list[SSAValue], size: tuple[int, int]
) -> Builder:
    """Where to go on with parts of which a condition leaves no point out.

    Those of which it leaves all points out are passed over, others are as they were, in smaller squares.
    """
    whole, partly = _where(nest, guard, builder, tiles, [(extent, extent - 1) for extent in size])
    partly, _ = _where(nest, guard, partly, tiles, [(extent, 0) for extent in size])
    exprs, counters, inside = _points(nest, partly, tiles, size)
    _fill(nest, inside, exprs, counters)
    if max(size) > SQUARE:
        rows, columns = (value.owner.parent_op() for value in counters[2:])
        assert isinstance(rows, ForOp) and isinstance(columns, ForOp)
        tile(_Nest(rows, columns), SQUARE)
    return whole


def _where(
    nest: _Nest,
    guard: scf.IfOp,
    builder: Builder,
    tiles: list[SSAValue],
    places: list[tuple[int, int]],
) -> tuple[Builder, Builder]:
    """Where a condition holds at a place in each part, and where not; a place has a scale and an offset."""
    assert isinstance(guard.cond.owner, TestOp)
    point: dict[SSAValue, AffineExpr] = {
        counter: AffineExpr.dimension(number) * scale + offset
        for number, (counter, (scale, offset)) in enumerate(zip(nest.counters, places, strict=True))
    }
    test = builder.insert(guard.cond.owner.clone())
    then, otherwise = Block([scf.YieldOp()]), Block([scf.YieldOp()])
    builder.insert(scf.IfOp(test.result, [], Region(then), Region(otherwise)))
    rewrite_index(test, point, tiles)
    assert then.last_op is not None and otherwise.last_op is not None
    return Builder(InsertPoint.before(then.last_op)), Builder(InsertPoint.before(otherwise.last_op))


def _read_squares(
    nest: _Nest,
    inside: Builder,
    exprs: tuple[AffineExpr, AffineExpr],
    counters: list[SSAValue],
    loads: list[LoadOp],
    squares: list[SSAValue],
) -> None:
    """Copy the body of a nest with the loads that squares serve in place of its own."""
    block = inside.insertion_point.block
    _fill(nest, inside, exprs, counters, inside=True)
    before, copied = _loads(nest.body), _loads(block)
    for load, square in zip(loads, squares, strict=True):
        replace(copied[before.index(load)], LoadOp(square, [D0, D1], counters[2:]))


def _loads(block: Block) -> list[LoadOp]:
    return [op for op in block.ops if isinstance(op, LoadOp)]


def _rest(nest: _Nest, before: Builder, whole_rows: int, whole_columns: int) -> None:
    """Loops over the columns, then over the rows, that no square has."""
    rows, columns = nest.extents
    names = [counter.name_hint for counter in nest.counters]
    parts = [
        ((0, whole_rows), (whole_columns, columns)),
        ((whole_rows, rows), (0, columns)),
    ]
    for (first_row, last_row), (first_column, last_column) in parts:
        if first_row == last_row or first_column == last_column:
            continue
        outer, inside = _loop(before, last_row - first_row, names[0])
        inner, inside = _loop(inside, last_column - first_column, names[1])
        counters: list[SSAValue] = [outer.induction_var, inner.induction_var]
        _fill(nest, inside, (D0 + first_row, D1 + first_column), counters)


@dataclass(frozen=True)
class TransposeTilesPass(ModulePass):
    """Turn squares of operands that a CPU block reads down their columns."""

    name = "transpose-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            fired, reason = _tile_kernel(kernel)
            record(self.name, kernel.sym_name.data, fired, reason, kernel, steps=[self])


def _tile_kernel(kernel: KernelOp) -> tuple[bool, str]:
    """Tile the nests of a kernel; what came of it."""
    nests = [nest for nest in _nests(kernel) if _transposed(nest)]
    refused = [reason for nest in nests if (reason := _reason(nest)) is not None]
    loads = sum(tile(nest) for nest in nests if _reason(nest) is None)
    if loads:
        return True, f"{loads} loads read squares of {SQUARE} by {SQUARE} elements"
    return False, "; ".join(dict.fromkeys(refused)) or "no two loops read an array down its columns"
