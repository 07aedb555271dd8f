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
have beyond whole squares stays as it was, in loops of its own.

Declined are GPU targets, elements that are not of 4 bytes, and blocks with no square.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import operand_ranges, simplify
from ...analysis.targets import get_target
from ...analysis.vectors import dimension_along
from ...dialects.affine import replace_dims
from ...dialects.loop import ForOp, KernelOp, LoadOp, TransposeOp
from ...dialects.loop_transpose import SQUARE
from ...dialects.scalars import storage_bytes
from ..decisions import record
from ..replacing import replace
from .rewrite_indices import rewrite_index

ELEMENT_BYTES = 4

MOST_ROWS = 32
MOST_COLUMNS = 128
"""Rows and columns of the result that squares are turned for at once; they lie on the stack."""


D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)


@dataclass(frozen=True)
class _Nest:
    """Two loops, one in the other, and nothing else."""

    rows: ForOp
    columns: ForOp

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
    for loop in [op for op in kernel.walk() if isinstance(op, ForOp)]:
        inner = loop.body.block.first_op
        if not isinstance(inner, ForOp) or inner.next_op is not loop.body.block.last_op:
            continue
        fixed = all(isinstance(each.extent.data, int) for each in (loop, inner))
        if fixed and not loop.res and not inner.res:
            found.append(_Nest(loop, inner))
    return found


def _transposed(nest: _Nest) -> dict[LoadOp, int]:
    """The loads of a nest that squares can serve."""
    found: dict[LoadOp, int] = {}
    for op in nest.columns.body.block.ops:
        if isinstance(op, LoadOp) and (along := dimension_along(op, *nest.counters)) is not None:
            found[op] = along
    return found


def _reason(nest: _Nest) -> str | None:
    """Why a nest with transposed loads stays."""
    loads = _transposed(nest)
    if any(storage_bytes(load.result.type) != ELEMENT_BYTES for load in loads):
        return f"elements are not of {ELEMENT_BYTES} bytes"
    rows, columns = nest.extents
    if min(rows, columns) < SQUARE:
        return f"a block of {rows} by {columns} has no square of {SQUARE}"
    return None


def _loop(builder: Builder, extent: int, name: str | None) -> tuple[ForOp, Builder]:
    loop = builder.insert(ForOp(extent, Region(Block(arg_types=[IndexType()]))))
    loop.induction_var.name_hint = name
    assert loop.body.block.last_op is not None
    return loop, Builder(InsertPoint.before(loop.body.block.last_op))


def _fill(
    nest: _Nest, into: Builder, exprs: tuple[AffineExpr, AffineExpr], counters: list[SSAValue]
) -> None:
    """Copy the body of a nest, its counters replaced by expressions."""
    copy = nest.rows.clone()
    inner = copy.body.block.first_op
    assert isinstance(inner, ForOp)
    old: dict[SSAValue, AffineExpr] = {copy.induction_var: exprs[0], inner.induction_var: exprs[1]}
    moved = [op for op in inner.body.block.ops if op is not inner.body.block.last_op]
    for op in moved:
        op.detach()
        into.insert(op)
    for op in moved:
        for each in list(op.walk()):
            rewrite_index(each, old, counters)
    copy.erase()


def _part(extent: int, most: int) -> int:
    """How many of the rows or columns to take at once: so that most of them are in such parts."""
    sizes = range(SQUARE, most + 1, SQUARE)
    return max(sizes, key=lambda size: (extent // size * size, size))


def tile(nest: _Nest) -> int:
    """Run a nest square by square, the rest as before; gives how many loads squares serve."""
    loads = list(_transposed(nest))
    along = [_transposed(nest)[load] for load in loads]
    rows, columns = nest.extents
    names = [loop.induction_var.name_hint for loop in (nest.rows, nest.columns)]
    before = Builder(InsertPoint.before(nest.rows))
    height, width = _part(rows, MOST_ROWS), _part(columns, MOST_COLUMNS)
    _, inside = _loop(before, rows // height, f"{names[0] or 'i'}_tile")
    row_tiles = inside.insertion_point.block.args[0]
    _, inside = _loop(inside, columns // width, f"{names[1] or 'j'}_tile")
    column_tiles = inside.insertion_point.block.args[0]
    squares: list[SSAValue] = []
    for load, dimension in zip(loads, along, strict=True):
        others = [v for v in load.indices if v not in _counters(nest)]
        space = [row_tiles, column_tiles, *others]
        places = dict(zip(_counters(nest), (D0 * height, D1 * width), strict=True))
        dims = [
            places[v] if v in places else AffineExpr.dimension(space.index(v)) for v in load.indices
        ]
        ranges = operand_ranges(space)
        exprs = [simplify(replace_dims(e, dims), ranges) for e in load.map.data.results]
        made = inside.insert(TransposeOp(load.memref, exprs, space, dimension, (height, width)))
        made.location = load.location
        made.result.name_hint = f"{load.memref.name_hint or 'x'}_t"
        squares.append(made.result)
    first, inside = _loop(inside, height, names[0])
    second, inside = _loop(inside, width, names[1])
    counters: list[SSAValue] = [row_tiles, column_tiles, first.induction_var, second.induction_var]
    exprs = (D0 * height + AffineExpr.dimension(2), D1 * width + AffineExpr.dimension(3))
    _read_squares(nest, inside, exprs, counters, loads, squares)
    _rest(nest, before, rows // height * height, columns // width * width)
    nest.rows.detach()
    nest.rows.erase()
    return len(loads)


def _counters(nest: _Nest) -> tuple[SSAValue, SSAValue]:
    return nest.rows.induction_var, nest.columns.induction_var


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
    _fill(nest, inside, exprs, counters)
    before, copied = _loads(nest.columns.body.block), _loads(block)
    for load, square in zip(loads, squares, strict=True):
        replace(copied[before.index(load)], LoadOp(square, [D0, D1], counters[2:]))


def _loads(block: Block) -> list[LoadOp]:
    return [op for op in block.ops if isinstance(op, LoadOp)]


def _rest(nest: _Nest, before: Builder, whole_rows: int, whole_columns: int) -> None:
    """Loops over the columns, then over the rows, that no square has."""
    rows, columns = nest.extents
    names = [counter.name_hint for counter in _counters(nest)]
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

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = get_target(self.target).is_gpu
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            fired, reason = False, "a GPU has neighbouring threads for neighbouring columns"
            if not gpu:
                fired, reason = _tile_kernel(kernel)
            record(self.name, kernel.sym_name.data, fired, reason, kernel)


def _tile_kernel(kernel: KernelOp) -> tuple[bool, str]:
    """Tile the nests of a kernel; what came of it."""
    nests = [nest for nest in _nests(kernel) if _transposed(nest)]
    refused = [reason for nest in nests if (reason := _reason(nest)) is not None]
    loads = sum(tile(nest) for nest in nests if _reason(nest) is None)
    if loads:
        return True, f"{loads} loads read squares of {SQUARE} by {SQUARE} elements"
    return False, "; ".join(dict.fromkeys(refused)) or "no two loops read an array down its columns"
