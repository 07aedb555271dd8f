"""Fills the rows of a pack line by line, where rows go along the lines of an image that lie apart.

    %xs[%r, %k] = %x[%k floordiv 32 + %r floordiv 3, %k mod 32 + %r mod 3]

becomes

    for %line = 0 to 4 {
      for %k = 0 to 32 { %xs[%r, %line * 32 + %k] = %x[%line + %r floordiv 3, %k + %r mod 3] }
    }

in which nothing is divided, so that LLVM makes vectors of it. What a stride of 2 to 4 keeps apart are
vectors, too (`pack_strides.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_in
from ...dialects.tile_pack import PackOp
from ..tile.rewrite_indices import index_of, rewrite_index
from .loop_code import LoopCode
from .pack_strides import ApartElements
from .pack_windows import divisors

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))

MIN_LINE = 8
"""Positions of a line that are worth a loop of their own."""


def line_length(pack: PackOp, ops: Sequence[Operation]) -> int | None:
    """Positions of the lines that the rows of a pack go along, if a row has whole ones."""
    position = pack.body.block.args[1]
    found: set[int] = set()
    for op in (inner for each in ops for inner in ops_in(each)):
        exprs, operands = index_of(op) or ((), [])
        found |= {n for expr in exprs for n in divisors(expr, operands, position)}
    length = min(found, default=pack.shape[1])
    whole = length >= MIN_LINE and all(n % length == 0 for n in (*found, pack.shape[1]))
    return length if whole else None


@dataclass(frozen=True)
class PackLines:
    """Fills rows of a pack, whose `ops` compute the `element` at a row and a position, line by line."""

    code: LoopCode
    pack: PackOp
    ops: Sequence[Operation]
    element: SSAValue
    buffer: SSAValue
    lanes: int
    length: int
    """Positions of a line."""

    def fill(self, rows: SSAValue, positions: SSAValue) -> None:
        """Fill so many rows."""
        code = self.code
        lines = code.index(D0 // self.length, [positions])
        with code.loop(rows, "r") as row, code.loop(lines, "line") as line:
            with code.loop(code.constants.get(self.length), "k") as place:
                body = self._at([row, line, place], D2)
                *ops, end = body.ops
                apart = ApartElements.of(ops, end.operands[0], place, self.lanes)
                if apart is None or self.length < self.lanes:
                    self._store([row, line, place])
                    return
            self._fill_in_vectors(apart, row, line, place)
            loop = place.owner.parent_op() if isinstance(place.owner, Block) else None
            assert isinstance(loop, scf.ForOp)
            loop.detach()
            loop.erase()

    def _store(self, counters: list[SSAValue]) -> None:
        """Write the element of a row, at a place of one of its lines."""
        body = self._at(counters, D2)
        self.code.store(self.code.inline(body), self.buffer, self._place(counters))

    def _place(self, counters: list[SSAValue]) -> tuple[AffineExpr, list[SSAValue]]:
        return D0 * self.pack.row_stride + D1 * self.length + D2, counters

    def _at(self, counters: list[SSAValue], place: AffineExpr) -> Block:
        """A block that computes the element at a place of a line."""
        row, position = self.pack.body.block.args
        body, code = Block(), self.code
        with code.into(body):
            values = code.clone(self.ops, {})
            code.builder.insert(scf.YieldOp(values.get(self.element, self.element)))
        for op in ops_in(body):
            rewrite_index(op, {row: D0, position: D1 * self.length + place}, counters)
        return body

    def _fill_in_vectors(
        self, apart: ApartElements, row: SSAValue, line: SSAValue, place: SSAValue
    ) -> None:
        """Fill a line in vectors of elements that a stride keeps apart, of which `apart` reads a `place`."""
        code, lanes = self.code, self.lanes
        with code.loop(code.constants.get(-(-self.length // lanes)), "part") as part:
            # The last one ends where the line does.
            last = code.constants.get(self.length - lanes)
            counters = [row, line, code.smaller(code.index(D0 * lanes, [part]), last)]
            self._fill_vector(apart, place, counters)

    def _fill_vector(self, apart: ApartElements, place: SSAValue, counters: list[SSAValue]) -> None:
        """Store a vector: all that it has, or what is inside."""
        code, lanes = self.code, self.lanes
        first, last = {place: D2}, {place: D2 + (lanes - 1)}
        held = apart.inside(code, (first, last), counters)

        def whole() -> SSAValue:
            return apart.vector(code, first, counters, lanes)

        def masked() -> SSAValue:
            ends = code.constants.get(0), code.constants.get(lanes)
            masks = apart.masks(code, apart.rows_inside(code, first, counters, ends), lanes)
            return apart.vector(code, first, counters, lanes, masks)

        if held:
            holds = reduce(lambda a, b: code.insert(arith.AndIOp(a, b)), held)
            vector = code.choose(holds, whole, masked)
        else:
            vector = whole()
        # The last one begins where it must, and so do those of the next line.
        code.store_vector(vector, self.buffer, self._place(counters), aligned=False)
