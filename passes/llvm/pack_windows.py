"""Fills panels with the windows of an image: in the innermost loop only the channel changes.

    %in[%channel, %p floordiv 56 + %position floordiv 3 mod 3, %p mod 56 + %position mod 3]

Positions are channels times offsets in the window, pixels %p are lines times columns. For 16 pixels

    for %offset = 0 to 9 {
      for %channel = 0 to 64 {
        for %r = 0 to 16 { %panel[%channel * 9 + %offset, %r] = ... }

Which of them are inside of the image depends on the pixels and the offset alone, so that LLVM tests it in
front of the channels; what is left is a load and a store of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ...analysis.index import operand_ranges, simplify
from ...dialects.affine import replace_dims
from ...dialects.index import linearize
from ...dialects.loop import LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import shape_of
from ...dialects.tile_pack import PackOp
from ..tile.rewrite_indices import index_of, rewrite_index
from .joined_rows import JoinedRows
from .loop_code import LoopCode

D0, D1, D2, D3, D4 = (AffineExpr.dimension(i) for i in range(5))


CACHE_BYTES, CACHE_WAYS, LINE_BYTES = 32 << 10, 8, 64
"""Of the first-level caches of current cores."""


def stride(op: LoadOp, counter: SSAValue, step: int) -> int | None:
    """How many bytes further a load reads when a counter is `step` larger, if that is always the same."""
    type = op.memref.type
    assert isinstance(type, MemRefType)
    offset = linearize(op.map.data.results, shape_of(type))
    dims = [AffineExpr.dimension(i) for i in range(len(op.indices))]
    moved = [d + step if v is counter else d for v, d in zip(op.indices, dims, strict=True)]
    difference = replace_dims(offset, moved) + offset * -1
    match simplify(difference, operand_ranges(op.indices)):
        case AffineConstantExpr(value=elements):
            return elements * storage_bytes(type.element_type)
        case _:
            return None


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
        inner = [each for op in ops for each in op.walk()]
        found = [1]
        for op in inner:
            exprs, operands = index_of(op) or ((), [])
            found += [n for e in exprs for n in _divisors(e, operands, position)]
        return Windows(pack, ops, element, max(found), JoinedRows.of(inner, row))

    def fill(
        self,
        code: LoopCode,
        buffer: SSAValue,
        lanes: int,
        panel: SSAValue,
        length: SSAValue,
        rows: SSAValue | None,
    ) -> None:
        """Fill a panel with `length` positions; past `rows`, if there is such a limit, with 0."""
        height, period = self.pack.panel_rows, self.period
        assert height is not None
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
            code.loop(code.constants.get(lanes), "r") as r,
        ):
            counters = [panel, strip, r, window, offset]
            first, position = D0 * height + D1 * lanes, D3 * period + D4
            body = Block()
            with code.into(body):
                code.builder.insert(
                    scf.YieldOp(self._element(code, first, position, counters, lanes))
                )
            if rows is None:
                element = code.inline(body)
            else:
                line = code.index(first + D2, counters)
                inside = code.insert(arith.CmpiOp(line, rows, "slt"))
                element = code.or_zero(inside, body)
            place = D0 * (height * self.pack.shape[1]) + position * height + D1 * lanes + D2
            code.store(element, buffer, (place, counters))

    def _group(self) -> int:
        """Windows whose lines of memory fit the first-level cache all at once, at the stride they have."""
        position = self.pack.body.block.args[1]
        loads = [op for each in self.ops for op in each.walk() if isinstance(op, LoadOp)]
        strides = [s for op in loads if (s := stride(op, position, self.period))]
        way = CACHE_BYTES // CACHE_WAYS
        return min([CACHE_BYTES // gcd(s, way) for s in strides], default=CACHE_BYTES // LINE_BYTES)

    def _element(
        self,
        code: LoopCode,
        first: AffineExpr,
        position: AffineExpr,
        counters: list[SSAValue],
        lanes: int,
    ) -> SSAValue:
        """The element of the row D2, one of `lanes` rows from `first` on."""
        row = self.pack.body.block.args[0]
        body = Block()
        with code.into(body):
            values = code.clone(self.ops, {})
            code.builder.insert(scf.YieldOp(values.get(self.element, self.element)))
        if self.joined is not None:
            begin, here = (
                code.index(*self.joined.at(row, e, counters)) for e in (first, first + D2)
            )
            line = self.joined.line(code, begin, here, lanes - 1)
            for op in list(body.walk()):
                self.joined.replace(op, line)
        old: dict[SSAValue, AffineExpr] = dict(
            zip(self.pack.body.block.args, (first + D2, position), strict=True)
        )
        for op in list(body.walk()):
            rewrite_index(op, old, counters)
        return code.inline(body)


def _divisors(expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue) -> Iterator[int]:
    """What a counter alone is divided by in an expression."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return
    match expr.kind, expr.lhs, expr.rhs:
        case AffineBinaryOpKind.FloorDiv, AffineDimExpr(position=at), AffineConstantExpr(value=n):
            if operands[at] is counter:
                yield n
        case _, left, right:
            yield from _divisors(left, operands, counter)
            yield from _divisors(right, operands, counter)
