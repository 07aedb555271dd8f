"""Loops that fill what a `tile.pack` holds, a flat buffer, in the order in which a register tile reads it.

    for %k = 0 to 512 {                         // rows are neighbours in memory: so are they in a panel
      for %r = 0 to 32 { %ws[%panel * 16384 + %k * 32 + %r] = ... }
    }

Where positions are neighbours in memory, but rows are to be, squares as wide as a vector are read row by row
into a small buffer and turned there by shuffles. Rows past the end are 0, positions past it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.vectors import is_unit_stride
from ...dialects.loop import LoadOp, TestOp
from ...dialects.tile_pack import PackOp, PackYieldOp
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))


@dataclass(frozen=True)
class PackBody:
    """What computes an element: operations, and the value they give where the element is inside."""

    ops: tuple[Operation, ...]
    element: SSAValue

    @staticmethod
    def of(pack: PackOp) -> PackBody:
        """The body of a pack without the condition around it, which its loops see to."""
        block = pack.body.block
        ops = [op for op in block.ops if not isinstance(op, PackYieldOp)]
        guard = pack.element.owner
        if mask_of(pack) is None:
            return PackBody(tuple(ops), pack.element)
        assert isinstance(guard, scf.IfOp)
        inner = guard.true_region.block
        end = inner.last_op
        assert isinstance(end, scf.YieldOp)
        before = [op for op in ops if op is not guard and op is not mask_of(pack)]
        kept = [op for op in inner.ops if op is not end]
        return PackBody((*before, *kept), end.operands[0])


def mask_of(pack: PackOp) -> TestOp | None:
    """The condition under which an element is not 0, if it has one that the loops can see to."""
    guard = pack.element.owner
    if not isinstance(guard, scf.IfOp) or not isinstance(guard.cond.owner, TestOp):
        return None
    end = guard.false_region.block.last_op
    test = guard.cond.owner
    zero = end.operands[0].owner if isinstance(end, scf.YieldOp) else None
    if not isinstance(zero, arith.ConstantOp) or test.parent is not pack.body.block:
        return None
    value = zero.value
    data = getattr(value, "value", None)
    return test if data is not None and data.data == 0 else None


def lies_along_rows(pack: PackOp) -> bool:
    """Whether neighbouring positions are neighbours in memory, and neighbouring rows are not."""
    row, position = pack.body.block.args

    def along(counter: SSAValue) -> bool:
        loads = [o for o in pack.body.walk() if isinstance(o, LoadOp) and counter in o.indices]
        return any(is_unit_stride(load, counter) for load in loads)

    return along(position) and not along(row)


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
    """Emits the loops of one pack: `rows` and `length` say how many rows and positions there are."""

    code: LoopCode
    pack: PackOp
    buffer: SSAValue
    lanes: int
    rows: SSAValue
    length: SSAValue
    square: SSAValue
    """A buffer for lanes by lanes elements."""

    def emit(self) -> None:
        """Fill the buffer."""
        if self.pack.panel_rows is None:
            self._fill_rows()
        else:
            self._fill_panels(self.pack.panel_rows)

    def _fill_rows(self) -> None:
        code, stride = self.code, self.pack.row_stride
        with code.loop(self.rows, "r") as row, code.loop(self.length, "k") as position:
            code.store(
                self._element(row, position), self.buffer, (D0 * stride + D1, [row, position])
            )

    def _fill_panels(self, height: int) -> None:
        code = self.code
        full = code.index(D0 // height, [self.rows])
        with code.loop(full, "panel") as panel:
            if lies_along_rows(self.pack) and height % self.lanes == 0:
                self._turn(panel, height)
            else:
                with code.loop(self.length, "k") as position:
                    self._fill_column(panel, position, height)
        if not self._ends_within_panel(height):
            return
        panels = code.index((D0 + (height - 1)) // height, [self.rows])
        with (
            code.loop(panels, "panel", full) as panel,
            code.loop(self.length, "k") as position,
            code.loop(code.constants.get(height), "r") as row,
        ):
            line = code.index(D0 * height + D1, [panel, row])
            inside = code.insert(arith.CmpiOp(line, self.rows, "slt"))
            element = self._element_if(inside, line, position)
            code.store(element, self.buffer, self._place(panel, position, row, height))

    def _ends_within_panel(self, height: int) -> bool:
        owner = self.rows.owner
        known = isinstance(owner, arith.ConstantOp)
        return not known or self.pack.shape[0] % height != 0

    def _place(
        self, panel: SSAValue, position: SSAValue, row: SSAValue, height: int
    ) -> tuple[AffineExpr, Sequence[SSAValue]]:
        length = self.pack.shape[1]
        return D0 * (height * length) + D1 * height + D2, [panel, position, row]

    def _fill_column(self, panel: SSAValue, position: SSAValue, height: int) -> None:
        code = self.code
        with code.loop(code.constants.get(height), "r") as row:
            line = code.index(D0 * height + D1, [panel, row])
            element = self._element(line, position)
            code.store(element, self.buffer, self._place(panel, position, row, height))

    # ------------------------------------------------------------------ squares

    def _turn(self, panel: SSAValue, height: int) -> None:
        """Fill a panel whose elements are neighbours along positions, in squares."""
        code, lanes = self.code, self.lanes
        squares = code.index(D0 // lanes, [self.length])
        with (
            code.loop(code.constants.get(height // lanes), "strip") as strip,
            code.loop(squares, "square") as square,
        ):
            self._turn_square(panel, strip, square, height)
        rest = code.index(D0 // lanes * lanes, [self.length])
        with code.loop(self.length, "k", rest) as position:
            self._fill_column(panel, position, height)

    def _turn_square(self, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int) -> None:
        code, lanes = self.code, self.lanes
        edge = code.constants.get(lanes)
        with code.loop(edge, "r") as row, code.loop(edge, "k") as column:
            line = code.index(D0 * height + D1 * lanes + D2, [panel, strip, row])
            position = code.index(D0 * lanes + D1, [square, column])
            code.store(self._element(line, position), self.square, (D0 * lanes + D1, [row, column]))
        lines = [
            code.load_vector(self.square, (AffineExpr.constant(number * lanes), []), lanes)
            for number in range(lanes)
        ]
        for number, line in enumerate(turned(code, lines, lanes)):
            first = (D1 * lanes + number) * height + D2 * lanes
            first = D0 * (height * self.pack.shape[1]) + first
            code.store_vector(line, self.buffer, (first, [panel, square, strip]))

    # ------------------------------------------------------------------ elements

    def _element(self, row: SSAValue, position: SSAValue) -> SSAValue:
        body = PackBody.of(self.pack)
        counters: dict[SSAValue, SSAValue] = dict(
            zip(self.pack.body.block.args, (row, position), strict=True)
        )
        return self.code.clone(body.ops, counters)[body.element]

    def _element_if(self, inside: SSAValue, row: SSAValue, position: SSAValue) -> SSAValue:
        """An element, or 0 where it is not inside."""
        code, then, otherwise = self.code, Block(), Block()
        outer, code.builder = code.builder, Builder(InsertPoint.at_end(then))
        code.builder.insert(scf.YieldOp(self._element(row, position)))
        code.builder = at_zero = Builder(InsertPoint.at_end(otherwise))
        at_zero.insert(scf.YieldOp(emit_constant(at_zero, 0, self.pack.element.type)))
        code.builder = outer
        return code.select(inside, then, otherwise, self.pack.element.type)
