"""Fills panels with the windows of an image: in the innermost loop only the channel changes.

    %in[%channel, %p floordiv 56 + %position floordiv 3 mod 3, %p mod 56 + %position mod 3]

Positions are channels times offsets in the window, pixels %p are lines times columns. For 16 pixels

    for %y = 0 to 3, %x = 0 to 3 {
      for %channel = 0 to 64 {
        for %r = 0 to 16 { %panel[%channel * 9 + %y * 3 + %x, %r] = ... }

Which of them are inside of the image depends on the pixels and offsets alone, so it is tested in front of the
channels; what is left is a load and a store of a vector. Pixels that a stride of 2 to 4 keeps apart are
vectors, too (`pack_strides.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from math import gcd, prod

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
from ...dialects.loop import LoadOp, TestOp
from ...dialects.tile_pack import PackOp
from ...index.affine import ZERO
from ..loop.scalar_code import emit_constant
from ..tile.rewrite_indices import index_of, rewrite_index
from .joined_rows import JoinedRows
from .loop_code import LoopCode
from .pack_strides import ApartElements, Known, Span, growth, stride
from .panels import Panels

D0, D1 = (AffineExpr.dimension(i) for i in range(2))

OFFSETS = 2
"""Where a strip's counters of offsets begin."""

CACHE_BYTES, CACHE_WAYS, LINE_BYTES = 32 << 10, 8, 64
"""Of the first-level caches of current cores."""


@dataclass(frozen=True)
class Windows:
    """A pack of windows in panels: `ops` compute the `element` at a row and a position."""

    pack: PackOp
    ops: Sequence[Operation]
    element: SSAValue
    extents: tuple[int, ...]
    """Of a window, the axis of neighbours last; a chunk has whole windows."""
    joined: JoinedRows | None
    """How rows are made of lines and columns, if they are."""
    vectors: bool = True
    """Whether vectors are named; else all is done element by element."""

    @staticmethod
    def of(
        pack: PackOp, ops: Sequence[Operation], element: SSAValue, *, vectors: bool = True
    ) -> Windows:
        """The windows that a pack is made of."""
        row, position = pack.body.block.args
        inner = [each for op in ops for each in ops_in(op)]
        found = [1]
        for op in inner:
            exprs, operands = index_of(op) or ((), [])
            found += [n for e in exprs for n in divisors(e, operands, position)]
        joined = JoinedRows.of(inner, row)
        return Windows(pack, ops, element, extents_of(found), joined, vectors)

    @property
    def period(self) -> int:
        """Offsets in a window, 1 if there are none."""
        return prod(self.extents)

    def fill(
        self,
        code: LoopCode,
        buffer: SSAValue,
        lanes: int,
        panel: SSAValue,
        length: SSAValue,
        rows: SSAValue | None,
        layout: Panels,
    ) -> None:
        """Fill a panel with `length` positions; past `rows`, if there is such a limit, with 0."""
        height, period = layout.height, self.period
        windows, size = code.index(D0 // period, [length]), self._group()
        groups = code.index((D0 + (size - 1)) // size, [windows])
        with (
            code.loop(code.constants.get(height // lanes), "strip") as strip,
            code.loop(groups, "group") as group,
            ExitStack() as loops,
        ):
            offsets = [
                loops.enter_context(code.loop(code.constants.get(extent), "offset"))
                for extent in self.extents
            ]
            begin, end = (code.index(D0 * size + size * n, [group]) for n in range(2))
            together = begin, code.smaller(end, windows)
            counters = [panel, strip, *offsets]
            _Strip(self, code, buffer, lanes, counters, together, rows, layout).fill()

    @property
    def are_alike(self) -> bool:
        """Whether windows differ in nothing but where they are read: neither in tests nor in lines."""
        position = self.pack.body.block.args[1]
        indices = [
            index_of(op) for each in self.ops for op in ops_in(each) if isinstance(op, TestOp)
        ]
        if self.joined is not None:
            indices.append(([self.joined.place], list(self.joined.operands)))
        return all(
            growth(expr, operands, position, self.period) == 0
            for exprs, operands in filter(None, indices)
            for expr in exprs
        )

    def _group(self) -> int:
        """Windows whose lines of memory fit the first-level cache all at once, at the stride they have."""
        position = self.pack.body.block.args[1]
        loads = [op for each in self.ops for op in ops_in(each) if isinstance(op, LoadOp)]
        strides = [s for op in loads if (s := stride(op, position, self.period))]
        way = CACHE_BYTES // CACHE_WAYS
        return min([CACHE_BYTES // gcd(s, way) for s in strides], default=CACHE_BYTES // LINE_BYTES)

    def apart_elements(self, lanes: int) -> ApartElements | None:
        """What reads elements a few apart on a line, if that is what the pack does."""
        if not self.vectors:
            return None
        row = self.pack.body.block.args[0]
        return ApartElements.of(self.ops, self.element, row, lanes, self.joined)


@dataclass(frozen=True)
class _Strip:
    """As many rows of a panel as a vector has elements, at one position."""

    windows: Windows
    code: LoopCode
    buffer: SSAValue
    lanes: int
    counters: list[SSAValue]
    """Of the panel, the strip in it, the offsets in a window, and, if one is chosen, the window."""
    group: Span
    """The windows that are filled one after the other."""
    rows: SSAValue | None
    """How many rows there are, if there are fewer than panels have room for."""
    layout: Panels

    @property
    def _first(self) -> AffineExpr:
        """The first row."""
        return D0 * self.layout.height + D1 * self.lanes

    @property
    def _is_of_window(self) -> bool:
        return len(self.counters) > OFFSETS + len(self.windows.extents)

    @contextmanager
    def _each_window(self) -> Generator[_Strip]:
        """A loop over the windows, unless one is chosen: the strip of one of them."""
        if self._is_of_window:
            yield self
            return
        begin, end = self.group
        with self.code.loop(end, "window", begin) as window:
            yield replace(self, counters=[*self.counters, window])

    @property
    def _position(self) -> AffineExpr:
        place = AffineExpr.dimension(len(self.counters) - 1) if self._is_of_window else ZERO
        for number, extent in enumerate(self.windows.extents):
            place = place * extent + AffineExpr.dimension(OFFSETS + number)
        return place

    @property
    def _next(self) -> AffineExpr:
        """A counter that comes after all those of the strip."""
        return AffineExpr.dimension(len(self.counters))

    @property
    def _place(self) -> AffineExpr:
        """Where the first row is in the buffer."""
        return self.layout.strip(D0, self._position, D1, self.lanes)

    def fill(self) -> None:
        """Emit what fills it: zeros if all of its rows are past the end, else what is there."""
        if not (self._is_of_window or self.windows.are_alike):
            with self._each_window() as strip:
                strip.fill()
            return
        if self.rows is None:
            self._fill()
            return
        begin = self.code.index(self._first, self.counters)
        past = self.code.insert(arith.CmpiOp(begin, self.rows, "sge"))
        self._either([past], self._clear, self._fill)

    def _clear(self) -> None:
        code = self.code
        zero = emit_constant(code.builder, 0, self.windows.pack.element.type)
        with self._each_window() as strip:
            if self.windows.vectors:
                vector = code.broadcast(zero, self.lanes)
                code.store_vector(vector, self.buffer, (strip._place, strip.counters))
                return
            with code.loop(code.constants.get(self.lanes), "r") as r:
                place = strip._place + strip._next, [*strip.counters, r]
                code.store(zero, self.buffer, place)

    def _fill(self) -> None:
        """Emit a vector if that can be, else a loop."""
        code, last = self.code, self._first + (self.lanes - 1)
        within: list[SSAValue] = []
        if self.rows is not None:
            end = code.index(last, self.counters)
            within.append(code.insert(arith.CmpiOp(end, self.rows, "slt")))
        apart = self.windows.apart_elements(self.lanes)
        if apart is None:
            whole = replace(self, rows=None)
            self._either(within, whole._one_by_one, self._one_by_one)
            return
        lines = self._lines()
        counters, first = self._on(apart, lines[0])
        ends = [first, {**first, self.windows.pack.body.block.args[0]: last}]
        inside = [*apart.inside(code, ends, counters), *within]
        if len(lines) > 1:
            whole = code.constants.get(self.lanes)
            inside.append(code.insert(arith.CmpiOp(self._span(lines[0])[1], whole, "sge")))
        store = partial(self._store_vector, apart, lines)
        self._either(inside, store, partial(store, masked=True))

    def _lines(self) -> list[SSAValue]:
        """The lines that joined rows may be on; any value where rows are not joined."""
        code, joined = self.code, self.windows.joined
        if joined is None:
            return [code.constants.get(0)]
        first = code.index(*joined.at(self._at(self._first), self.counters))
        line = code.index(D0 // joined.length, [first])
        return [code.index(D0 + n, [line]) for n in range(joined.lines(self.lanes - 1))]

    def _span(self, line: SSAValue) -> Span:
        """Between which rows of the strip, counted from its first one, they are on a line, if any is."""
        code, joined = self.code, self.windows.joined
        begin, end = code.constants.get(0), code.constants.get(self.lanes)
        if joined is not None:
            first = code.index(*joined.at(self._at(self._first), self.counters))
            begin, end = (
                code.index((D0 + n) * joined.length - D1, [line, first]) for n in range(2)
            )
        return begin, end

    def _on(self, apart: ApartElements, line: SSAValue) -> tuple[list[SSAValue], Known]:
        """The counters on a line, and the first row over them."""
        counters = [*self.counters, line]
        return counters, {**self._at(self._first), apart.line: self._next}

    def _store_vector(
        self, apart: ApartElements, lines: Sequence[SSAValue], *, masked: bool = False
    ) -> None:
        """Store elements of the first line, or if they are `masked`, those of all lines that are inside."""
        code, read = self.code, lines if masked else lines[:1]
        masks = [self._masks(apart, line) if masked else None for line in read]
        with self._each_window() as strip:
            vectors: list[SSAValue] = []
            for line, mask in zip(read, masks, strict=True):
                counters, first = strip._on(apart, line)
                vectors.append(apart.vector(code, first, counters, self.lanes, mask))
            place = strip._place, strip.counters
            code.store_vector(reduce(code.join, vectors), self.buffer, place)

    def _masks(self, apart: ApartElements, line: SSAValue) -> list[SSAValue]:
        """What is read of a line: what is inside of rows that are there."""
        code, (begin, end) = self.code, self._span(line)
        if self.rows is not None:
            left = code.index(self._next - self._first, [*self.counters, self.rows])
            end = code.smaller(end, left)
        counters, first = self._on(apart, line)
        between = apart.rows_inside(code, first, counters, (begin, end))
        return apart.masks(code, between, self.lanes)

    def _at(self, row: AffineExpr) -> dict[SSAValue, AffineExpr]:
        """A row of the pack, and the position."""
        return dict(zip(self.windows.pack.body.block.args, (row, self._position), strict=True))

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
        with self._each_window() as strip, code.loop(code.constants.get(self.lanes), "r") as r:
            counters, row = [*strip.counters, r], self._first + strip._next
            body = Block()
            with code.into(body):
                code.builder.insert(scf.YieldOp(strip._element(row, counters)))
            if self.rows is None:
                element = code.inline(body)
            else:
                inside = code.insert(arith.CmpiOp(code.index(row, counters), self.rows, "slt"))
                element = code.or_zero(inside, body)
            code.store(element, self.buffer, (strip._place + strip._next, counters))

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


def extents_of(numbers: Sequence[int]) -> tuple[int, ...]:
    """The extents of a window where a position is divided by these; all in one if they are of no axes."""
    axes = sorted(set(numbers))
    if any(after % before for before, after in pairwise(axes)):
        return (max(axes),)
    return tuple(after // before for before, after in pairwise(axes))[::-1]


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
