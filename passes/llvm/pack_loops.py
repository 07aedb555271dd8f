"""Loops that fill what a `tile.pack` holds, a flat buffer, in the order in which a register tile reads it.

    for %k = 0 to 512 {                         // rows are neighbours in memory: so are they in a panel
      for %panel = 0 to 8 {
        for %r = 0 to 32 { %ws[%panel * 16384 + %k * 32 + %r] = ... }
      }
    }

All panels take turns at each position, so that memory is read in its order. Where positions are neighbours
in memory, but rows are to be, squares as wide as a vector are turned by shuffles: those of an array as they
are loaded (`loop.transpose`), what is computed after it was written to a small buffer. Windows of an image
come one offset after the other (`pack_windows.py`). Rows past the end are 0, positions past it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.conditions import linear
from ...analysis.index import operand_ranges, simplify
from ...analysis.vectors import dimension_along, lies_along
from ...dialects.index import normalize_operands
from ...dialects.loop import LoadOp, TestOp, TransposeOp
from ...dialects.loop_transpose import SQUARE
from ...dialects.scalars import storage_bytes
from ...dialects.tile_pack import PackOp, PackYieldOp
from ...index.affine import ZERO, replace_dims
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode
from .pack_lines import PackLines, line_length
from .pack_strides import gives_zero
from .pack_windows import Windows
from .panels import Panels

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))

ELEMENT_BYTES = 4
"""Bytes of an element that `loop.transpose` turns."""


@dataclass(frozen=True)
class Bound:
    """What a counter stays below: an expression over values."""

    expr: AffineExpr
    operands: tuple[SSAValue, ...]

    @staticmethod
    def of(expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue) -> Bound | None:
        """What a counter is below where `expr` is at least zero, if it says that and no more."""
        if counter not in operands:
            return None
        dims = [ZERO if v is counter else AffineExpr.dimension(i) for i, v in enumerate(operands)]
        here = AffineExpr.dimension(list(operands).index(counter))
        ranges = operand_ranges(operands)
        rest = simplify(replace_dims(expr, dims), ranges)
        if simplify(expr + here, ranges) != rest:
            return None
        exprs, used = normalize_operands([rest + 1], operands)
        return Bound(exprs[0], tuple(used))

    def remainder(self, number: int) -> int | None:
        """What it leaves when divided by a number, if that is the same whatever the values."""
        sum_ = linear(self.expr)
        if sum_ is None or any(each % number for each in sum_.coefficients.values()):
            return None
        return sum_.constant % number

    def is_multiple_of(self, number: int) -> bool:
        """Whether it is one, whatever the values."""
        return self.remainder(number) == 0


@dataclass(frozen=True)
class PackBody:
    """What computes an element of a pack, apart from the conditions that its loops can see to.

    `rows` and `positions` are those conditions: past them an element is 0.
    """

    ops: tuple[Operation, ...]
    element: SSAValue
    rows: tuple[Bound, ...] = ()
    positions: tuple[Bound, ...] = ()

    @staticmethod
    def of(pack: PackOp) -> PackBody:
        """The body of a pack; a condition around all of it that only bounds its counters goes."""
        block = pack.body.block
        ops = tuple(op for op in block.ops if not isinstance(op, PackYieldOp))
        whole = PackBody(ops, pack.element)
        guard = pack.element.owner
        if not isinstance(guard, scf.IfOp) or guard.parent is not block:
            return whole
        test = guard.cond.owner
        if not isinstance(test, TestOp) or not gives_zero(guard.false_region.block):
            return whole
        row, position = block.args
        rows: list[Bound] = []
        positions: list[Bound] = []
        for expr in test.exprs:
            in_row = Bound.of(expr, test.operands_, row)
            along = Bound.of(expr, test.operands_, position)
            if in_row is not None and position not in in_row.operands:
                rows.append(in_row)
            elif along is not None and row not in along.operands:
                positions.append(along)
            else:
                return whole
        inner = guard.true_region.block
        end = inner.last_op
        assert isinstance(end, scf.YieldOp)
        kept = [op for op in ops if op not in (guard, test)] + [
            op for op in inner.ops if op is not end
        ]
        return PackBody(tuple(kept), end.operands[0], tuple(rows), tuple(positions))


def lies_along_rows(pack: PackOp) -> bool:
    """Whether neighbouring positions are neighbours in memory, and neighbouring rows are not."""
    row, position = pack.body.block.args
    return lies_along(pack.body.block, position) and not lies_along(pack.body.block, row)


def turned(code: LoopCode, lines: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
    """The columns of a square of vectors: merging line n with line n + lanes / 2, again and again.

    After each step, the elements of one column are half as far apart.
    """
    low = [i // 2 + lanes * (i % 2) for i in range(lanes)]
    high = [i + lanes // 2 for i in low]
    square = list(lines)
    half = lanes // 2
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(square[:half], square[half:], strict=True)
        square = [code.shuffle(a, b, mask) for a, b in pairs for mask in (low, high)]
    return square


@dataclass(frozen=True)
class PackLoops:
    """Emits the loops of one pack.

    `rows` says how many rows have elements, `total` how many there are: the others are 0. `length` is the
    number of positions.
    """

    code: LoopCode
    pack: PackOp
    body: PackBody
    buffer: SSAValue
    lanes: int
    rows: SSAValue
    total: SSAValue
    length: SSAValue
    square: SSAValue
    """A buffer for lanes by lanes elements; for pairs of them, where a position is one of a pair."""

    vectors: ClassVar = True
    """Whether vectors are named."""

    @property
    def in_halves(self) -> bool:
        """Whether two positions lie together, as halves of pairs."""
        return False

    def emit(self) -> None:
        """Fill the buffer."""
        if self.pack.panel_rows is None:
            self._fill_rows()
        else:
            self._fill_panels(self.pack.panel_rows)

    def _fill_rows(self) -> None:
        self._copy_rows()
        code, stride = self.code, self.pack.row_stride
        if self.rows is self.total:
            return
        with code.loop(self.total, "r", self.rows) as row:
            zero = emit_constant(code.builder, 0, self.pack.element.type)
            with code.loop(self.length, "k") as position:
                code.store(zero, self.buffer, (D0 * stride + D1, [row, position]))

    def _copy_rows(self) -> None:
        """Fill the rows that have elements."""
        line = line_length(self.pack, self.body.ops)
        if line is not None and all(bound.is_multiple_of(line) for bound in self.body.positions):
            fixed = self.code, self.pack, self.body.ops, self.body.element, self.buffer
            lanes = self.lanes if self.vectors else 1
            PackLines(*fixed, lanes, line).fill(self.rows, self.length)
        else:
            self._copy_elements(self.rows)

    def _copy_elements(
        self, last: SSAValue, first: SSAValue | None = None, position: SSAValue | None = None
    ) -> None:
        """Fill rows up to one, from another one on, and from a position on, one element after the other."""
        code, stride = self.code, self.pack.row_stride
        with code.loop(last, "r", first) as row, code.loop(self.length, "k", position) as each:
            element = self._element(row, each)
            code.store(element, self.buffer, (D0 * stride + D1, [row, each]))

    def _fill_panels(self, height: int) -> None:
        code = self.code
        strips = height % self.lanes == 0
        windows = self._windows() if strips else None
        apart = windows is not None and windows.apart_elements(self.lanes) is not None
        if strips and lies_along_rows(self.pack) and not apart:
            self._turn(height)
            return
        full = code.index(D0 // height, [self.rows])
        if windows is not None:
            with code.loop(full, "panel") as panel:
                self._fill_windows(windows, panel)
        else:
            with code.loop(self.length, "k") as position, code.loop(full, "panel") as panel:
                self._fill_column(panel, position, height)
        if self.rows is self.total:
            return
        panels = code.index(D0 // height, [self.total])
        with code.loop(panels, "panel", full) as panel:
            if windows is not None:
                self._fill_windows(windows, panel, self.rows)
            else:
                self._fill_rest(panel, height)

    def _windows(self) -> Windows | None:
        """The windows of an image, if the pack has them."""
        windows = Windows.of(self.pack, self.body.ops, self.body.element, vectors=self.vectors)
        whole = all(bound.is_multiple_of(windows.period) for bound in self.body.positions)
        # All of K in one chunk ends where a window does.
        several = all(bound.operands for bound in self.body.positions)
        if not whole or (several and self.pack.shape[1] % windows.period):
            windows = replace(windows, extents=())
        if windows.period == 1 and windows.joined is None:
            return windows if windows.apart_elements(self.lanes) else None
        return windows

    def _fill_rest(self, panel: SSAValue, height: int) -> None:
        """Fill a panel that has rows past the end."""
        code = self.code
        with (
            code.loop(self.length, "k") as position,
            code.loop(code.constants.get(height), "r") as row,
        ):
            line = code.index(D0 * height + D1, [panel, row])
            inside = code.insert(arith.CmpiOp(line, self.rows, "slt"))
            then = Block()
            with code.into(then):
                code.builder.insert(scf.YieldOp(self._element(line, position)))
            element = code.or_zero(inside, then)
            code.store(element, self.buffer, self._place(panel, position, row, height))

    def _fill_windows(
        self, windows: Windows, panel: SSAValue, rows: SSAValue | None = None
    ) -> None:
        height = self.pack.panel_rows
        assert height is not None
        layout = self._layout(height)
        windows.fill(self.code, self.buffer, self.lanes, panel, self.length, rows, layout)

    def _layout(self, height: int) -> Panels:
        """How elements lie in panels of so many rows."""
        return Panels(height, self.pack.shape[1])

    def _place(
        self, panel: SSAValue, position: SSAValue, row: SSAValue, height: int
    ) -> tuple[AffineExpr, Sequence[SSAValue]]:
        return self._layout(height).place(D0, D1, D2), [panel, position, row]

    def _fill_column(self, panel: SSAValue, position: SSAValue, height: int) -> None:
        code = self.code
        with code.loop(code.constants.get(height), "r") as row:
            line = code.index(D0 * height + D1, [panel, row])
            element = self._element(line, position)
            code.store(element, self.buffer, self._place(panel, position, row, height))

    # ------------------------------------------------------------------ squares

    def _turn(self, height: int) -> None:
        """Fill panels whose elements are neighbours along positions, in strips as wide as a vector."""
        code, lanes = self.code, self.lanes
        with (
            code.loop(code.index(D0 // height, [self.total]), "panel") as panel,
            code.loop(code.constants.get(height // lanes), "strip") as strip,
        ):
            if self.rows is self.total:
                self._turn_strip(panel, strip, height)
                return
            end = code.index(D0 * height + (D1 + 1) * lanes, [panel, strip])
            with code.when(code.insert(arith.CmpiOp(end, self.rows, "sle"))):
                self._turn_strip(panel, strip, height)
            with code.when(code.insert(arith.CmpiOp(end, self.rows, "sgt"))):
                self._clear_strip(panel, strip, height)
                self._fill_strip(panel, strip, height)

    def _turn_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        """Fill a strip without rows past the end, in squares."""
        code, lanes = self.code, self.lanes
        with code.loop(code.index(D0 // lanes, [self.length]), "square") as square:
            self._turn_square(panel, strip, square, height)
        rest = code.index(D0 // lanes * lanes, [self.length])
        self._fill_strip(panel, strip, height, rest)

    def _clear_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        """Make a strip zeros."""
        code, lanes = self.code, self.lanes
        zero = code.broadcast(emit_constant(code.builder, 0, self.pack.element.type), lanes)
        with code.loop(self.length, "k") as position:
            row = code.index(D0 * lanes, [strip])
            code.store_vector(zero, self.buffer, self._place(panel, position, row, height))

    def _fill_strip(
        self, panel: SSAValue, strip: SSAValue, height: int, first: SSAValue | None = None
    ) -> None:
        """Fill the rows of a strip that are there, from a position on, one after the other."""
        code, lanes = self.code, self.lanes
        above = code.index(D0 * height + D1 * lanes, [panel, strip])
        end = code.smaller(code.index(D0 + lanes, [above]), self.rows)
        with code.loop(end, "r", above) as line, code.loop(self.length, "k", first) as position:
            row = code.index(D0 - D1 * height, [line, panel])
            place = self._place(panel, position, row, height)
            code.store(self._element(line, position), self.buffer, place)

    def _turn_square(self, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int) -> None:
        code, lanes = self.code, self.lanes
        along = self._in_one_array()
        if along is not None:
            lines = self._turned_in_registers(along, panel, strip, square, height)
        else:
            self._read_square(panel, strip, square, height)
            lines = [
                code.load_vector(self.square, (AffineExpr.constant(number * lanes), []), lanes)
                for number in range(lanes)
            ]
            lines = turned(code, lines, lanes)
        for number, line in enumerate(lines):
            first = (D1 * lanes + number) * height + D2 * lanes
            first = D0 * (height * self.pack.shape[1]) + first
            code.store_vector(line, self.buffer, (first, [panel, square, strip]))

    def _in_one_array(self) -> int | None:
        """The dimension that rows count along in the array that a pack copies, if it computes nothing."""
        row, position = self.pack.body.block.args
        if self.lanes != SQUARE or storage_bytes(self.pack.element.type) != ELEMENT_BYTES:
            return None
        match self.body.ops:
            case (LoadOp() as load,) if load.result is self.body.element:
                return dimension_along(load, position, row)
            case _:
                return None

    def _turned_in_registers(
        self, along: int, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int
    ) -> list[SSAValue]:
        """The lines of a square of an array, turned by a `loop.transpose`."""
        code, edge = self.code, self.lanes
        (load,) = self.body.ops
        assert isinstance(load, LoadOp)
        line = code.index(D0 * height + D1 * edge, [panel, strip])
        first = code.index(D0 * edge, [square])
        counters: dict[SSAValue, SSAValue] = dict(
            zip(self.pack.body.block.args, (line, first), strict=True)
        )
        origin = [counters.get(value, value) for value in load.indices]
        shape = (edge, edge)
        made = code.insert(TransposeOp(load.memref, load.map.data.results, origin, along, shape))
        return [code.load_line(made, number) for number in range(edge)]

    def _read_square(self, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int) -> None:
        code, lanes = self.code, self.lanes
        edge = code.constants.get(lanes)
        with code.loop(edge, "r") as row, code.loop(edge, "k") as column:
            line = code.index(D0 * height + D1 * lanes + D2, [panel, strip, row])
            position = code.index(D0 * lanes + D1, [square, column])
            code.store(self._element(line, position), self.square, (D0 * lanes + D1, [row, column]))

    # ------------------------------------------------------------------ elements

    def _element(self, row: SSAValue, position: SSAValue) -> SSAValue:
        counters: dict[SSAValue, SSAValue] = dict(
            zip(self.pack.body.block.args, (row, position), strict=True)
        )
        return self.code.clone(self.body.ops, counters)[self.body.element]
