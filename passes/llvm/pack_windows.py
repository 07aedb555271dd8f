"""Fills panels with the windows of an image: in the innermost loop only the channel changes.

    %in[%channel, %p floordiv 56 + %position floordiv 3 mod 3, %p mod 56 + %position mod 3]

Positions are channels times offsets in the window, pixels %p are lines times columns. For 16 pixels

    for %offset = 0 to 9 {
      for %channel = 0 to 64 {
        for %r = 0 to 16 { %panel[%channel * 9 + %offset, %r] = ... }

Which of them are inside of the image depends on the pixels and the offset alone, so that LLVM tests it in
front of the channels; what is left is a load and a store of a vector. Pixels that a stride of 2 to 4 keeps
apart are vectors, too (`pack_strides.py`), where all of them are inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp
from ...dialects.tile_pack import PackOp
from ..loop.scalar_code import emit_constant
from ..tile.rewrite_indices import index_of, rewrite_index
from .joined_rows import JoinedRows
from .loop_code import LoopCode
from .pack_strides import ApartElements, stride
from .panels import Panels

D0, D1, D2, D3, D4 = (AffineExpr.dimension(i) for i in range(5))


CACHE_BYTES, CACHE_WAYS, LINE_BYTES = 32 << 10, 8, 64
"""Of the first-level caches of current cores."""


@dataclass(frozen=True)
class Windows:
    """A pack of windows in panels: `ops` compute the `element` at a row and a position."""

    pack: PackOp
    ops: Sequence[Operation]
    element: SSAValue
    period: int
    """Offsets in a window, 1 if there are none; a chunk has whole windows."""
    joined: JoinedRows | None
    """How rows are made of lines and columns, if they are."""

    @staticmethod
    def of(pack: PackOp, ops: Sequence[Operation], element: SSAValue) -> Windows:
        """The windows that a pack is made of."""
        row, position = pack.body.block.args
        inner = [each for op in ops for each in ops_in(op)]
        found = [1]
        for op in inner:
            exprs, operands = index_of(op) or ((), [])
            found += [n for e in exprs for n in divisors(e, operands, position)]
        return Windows(pack, ops, element, max(found), JoinedRows.of(inner, row))

    def fill(
        self,
        code: LoopCode,
        buffer: SSAValue,
        lanes: int,
        panel: SSAValue,
        length: SSAValue,
        rows: SSAValue | None,
        count: int | None,
        layout: Panels,
    ) -> None:
        """Fill a panel with `length` positions; past `rows`, if there is such a limit, with 0.

        `count` is what the limit leaves beyond whole vectors, if that is known.
        """
        height, period = layout.height, self.period
        windows, size = code.index(D0 // period, [length]), self._group()
        groups = code.index((D0 + (size - 1)) // size, [windows])
        with (
            code.loop(code.constants.get(height // lanes), "strip") as strip,
            code.loop(groups, "group") as group,
            code.loop(code.constants.get(period), "offset") as offset,
            code.loop(
                code.smaller(code.index(D0 * size + size, [group]), windows),
                "window",
                code.index(D0 * size, [group]),
            ) as window,
        ):
            counters = [panel, strip, window, offset]
            _Strip(self, code, buffer, lanes, counters, rows, count, layout).fill()

    def _group(self) -> int:
        """Windows whose lines of memory fit the first-level cache all at once, at the stride they have."""
        position = self.pack.body.block.args[1]
        loads = [op for each in self.ops for op in ops_in(each) if isinstance(op, LoadOp)]
        strides = [s for op in loads if (s := stride(op, position, self.period))]
        way = CACHE_BYTES // CACHE_WAYS
        return min([CACHE_BYTES // gcd(s, way) for s in strides], default=CACHE_BYTES // LINE_BYTES)

    def apart_elements(self, lanes: int) -> ApartElements | None:
        """What reads elements a few apart on a line, if that is what the pack does."""
        if self.joined is not None:
            return None
        return ApartElements.of(self.ops, self.element, self.pack.body.block.args[0], lanes)


@dataclass(frozen=True)
class _Strip:
    """As many rows of a panel as a vector has elements, at one position."""

    windows: Windows
    code: LoopCode
    buffer: SSAValue
    lanes: int
    counters: list[SSAValue]
    """Of the panel, the strip in it, the window, and the offset in that: D0 to D3."""
    rows: SSAValue | None
    """How many rows there are, if there are fewer than panels have room for."""
    count: int | None
    """How many of them are in the last strip, if there are fewer than it has room for, and that is known."""
    layout: Panels

    @property
    def _first(self) -> AffineExpr:
        """The first row."""
        return D0 * self.layout.height + D1 * self.lanes

    @property
    def _position(self) -> AffineExpr:
        return D2 * self.windows.period + D3

    @property
    def _place(self) -> AffineExpr:
        """Where the first row is in the buffer."""
        return self.layout.strip(D0, self._position, D1, self.lanes)

    def fill(self) -> None:
        """Emit what fills it: zeros if all of its rows are past the end, else what is there."""
        if self.rows is None:
            self._fill()
            return
        begin = self.code.index(self._first, self.counters)
        past = self.code.insert(arith.CmpiOp(begin, self.rows, "sge"))
        self._either([past], self._clear, self._fill)

    def _clear(self) -> None:
        code = self.code
        zero = emit_constant(code.builder, 0, self.windows.pack.element.type)
        vector = code.broadcast(zero, self.lanes)
        code.store_vector(vector, self.buffer, (self._place, self.counters))

    def _fill(self) -> None:
        """Emit a vector if that can be, else a loop."""
        code, last = self.code, self._first + (self.lanes - 1)
        apart = self.windows.apart_elements(self.lanes)
        inside: list[SSAValue] = []
        if apart is not None:
            inside = apart.inside(code, (self._at(self._first), self._at(last)), self.counters)
        if self.rows is not None:
            within = arith.CmpiOp(code.index(last, self.counters), self.rows, "slt")
            inside.append(code.insert(within))

        if apart is None:
            whole = replace(self, rows=None)
            self._either(inside, whole._one_by_one, self._one_by_one)
            return

        def vector() -> SSAValue:
            return apart.vector(code, self._at(self._first), self.counters, self.lanes)

        end = (
            partial(self._end, apart) if self.rows is not None and self.count else self._one_by_one
        )
        self._vector_or(inside, vector, end)

    def _end(self, apart: ApartElements) -> None:
        """What is in the last strip as a vector, if it does not begin the line, and all of it is inside."""
        code, count, rows = self.code, self.count, self.rows
        assert count is not None and rows is not None
        first, end = self._first + (count - self.lanes), self._first + count
        inside = apart.inside(code, (self._at(first), self._at(end - 1)), self.counters)
        inside.append(code.insert(arith.CmpiOp(code.index(end, self.counters), rows, "eq")))
        begin, zero = code.index(first, self.counters), code.constants.get(0)
        inside.append(code.insert(arith.CmpiOp(begin, zero, "sge")))

        def elements() -> SSAValue:
            return apart.end(code, self._at(first), self.counters, self.lanes, count)

        self._vector_or(inside, elements, self._one_by_one)

    def _at(self, row: AffineExpr) -> dict[SSAValue, AffineExpr]:
        """A row of the pack, and the position."""
        return dict(zip(self.windows.pack.body.block.args, (row, self._position), strict=True))

    def _vector_or(
        self,
        conditions: Sequence[SSAValue],
        elements: Callable[[], SSAValue],
        otherwise: Callable[[], None],
    ) -> None:
        """Store a vector if all conditions hold, else do something else."""

        def store() -> None:
            self.code.store_vector(elements(), self.buffer, (self._place, self.counters))

        self._either(conditions, store, otherwise)

    def _either(
        self,
        conditions: Sequence[SSAValue],
        emit: Callable[[], None],
        otherwise: Callable[[], None],
    ) -> None:
        """Do something if all conditions hold, else something else."""
        code = self.code
        if not conditions:
            emit()
            return
        then, orelse = Block(), Block()
        for block, fill in ((then, emit), (orelse, otherwise)):
            with code.into(block):
                fill()
                code.builder.insert(scf.YieldOp())
        holds = reduce(lambda a, b: code.insert(arith.AndIOp(a, b)), conditions)
        code.builder.insert(scf.IfOp(holds, [], Region(then), Region(orelse)))

    def _one_by_one(self) -> None:
        """A loop over the elements, of which LLVM makes a vector; past the last row they are 0."""
        code = self.code
        with code.loop(code.constants.get(self.lanes), "r") as r:
            counters, row = [*self.counters, r], self._first + D4
            body = Block()
            with code.into(body):
                code.builder.insert(scf.YieldOp(self._element(row, counters)))
            if self.rows is None:
                element = code.inline(body)
            else:
                inside = code.insert(arith.CmpiOp(code.index(row, counters), self.rows, "slt"))
                element = code.or_zero(inside, body)
            code.store(element, self.buffer, (self._place + D4, counters))

    def _element(self, here: AffineExpr, counters: list[SSAValue]) -> SSAValue:
        """The element of a row, one of those of the strip."""
        code, windows = self.code, self.windows
        body = Block()
        with code.into(body):
            values = code.clone(windows.ops, {})
            code.builder.insert(scf.YieldOp(values.get(windows.element, windows.element)))
        if (joined := windows.joined) is not None:
            first, place = (
                code.index(*joined.at(self._at(row), counters)) for row in (self._first, here)
            )
            line = joined.line(code, first, place, self.lanes - 1)
            for op in ops_in(body):
                joined.replace(op, line)
        for op in ops_in(body):
            rewrite_index(op, self._at(here), counters)
        return code.inline(body)


def divisors(expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue) -> Iterator[int]:
    """What a counter alone is divided by in an expression."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return
    match expr.kind, expr.lhs, expr.rhs:
        case AffineBinaryOpKind.FloorDiv, AffineDimExpr(position=at), AffineConstantExpr(value=n):
            if operands[at] is counter:
                yield n
        case _, left, right:
            yield from divisors(left, operands, counter)
            yield from divisors(right, operands, counter)
