"""`compose-index-maps`: a chain of layout changes becomes one.

    %t = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %s = tensor_ir.index_map (i, j) -> %t[i + 1, j] : (tensor<4x8xf32>) -> tensor<2x8xf32>
becomes
    %s = tensor_ir.index_map (i, j) -> %x[j, i + 1] : (tensor<8x4xf32>) -> tensor<2x8xf32>

Maps and conditions are simplified over the result's extents; a map that changes nothing disappears, and a
constant stays a constant. A producer with a fill value composes only where the consumer reads nothing
else after it. One that is put together from pieces, or repeats elements, does not compose into windows that
overlap, as a convolution's do: each element would be looked for in every window. Producers left without uses
are erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis import patchwork
from ...analysis.index import (
    Range,
    always_holds,
    extent_range,
    never_holds,
    simplify,
    substitute,
)
from ...dialects.index import condition, condition_exprs
from ...dialects.inside import ops_in, ops_of
from ...dialects.sizes import shape_of
from ...dialects.syntax import Scalar, tensor_type
from ...dialects.tensor_ir import ConstantOp, IndexMapOp
from ...index.affine import affine_map, divisions, product
from ..decisions import record


@dataclass
class Piece:
    """One source of an index map: what it reads, where, and when."""

    source: SSAValue
    exprs: Sequence[AffineExpr]
    conditions: Sequence[AffineExpr]


@dataclass
class Layout:
    """An index map taken apart; the first piece whose conditions hold is read."""

    pieces: list[Piece]
    fill: Scalar | None
    ranges: list[Range]
    changed: bool = field(default=False)

    @classmethod
    def of(cls, op: IndexMapOp) -> Layout:
        """The layout an operation describes."""
        pieces = [
            Piece(source, m.data.results, condition_exprs(c.data))
            for source, m, c in zip(op.sources, op.maps, op.conditions, strict=True)
        ]
        return cls(pieces, op.fill, [extent_range(n) for n in shape_of(tensor_type(op.result))])

    def simplify(self) -> None:
        """Simplify every expression; drop conditions that always hold and pieces that never do."""
        kept: list[Piece] = []
        for piece in self.pieces:
            conditions = [simplify(c, self.ranges) for c in piece.conditions]
            conditions = [c for c in conditions if not always_holds(c, self.ranges)]
            if any(never_holds(c, self.ranges) for c in conditions):
                continue
            conditions = _strongest(conditions, self.ranges)
            exprs = [simplify(e, self.ranges) for e in piece.exprs]
            kept.append(Piece(piece.source, exprs, conditions))
            if not conditions:
                self.fill = None
                break
        if kept:  # a layout that reads nothing at all keeps its first piece and its fill
            self.pieces = kept

    def compose(self, index: int) -> str | None:
        """Read through the index map that makes source `index`; gives why not, if it does not."""
        piece = self.pieces[index]
        producer = piece.source.owner
        assert isinstance(producer, IndexMapOp)
        inner = Layout.of(producer)
        last = index == len(self.pieces) - 1
        fill = self.fill
        if inner.fill is not None:
            if not last or (piece.conditions and self.fill != inner.fill):
                return "the producer's fill would hide what the consumer reads after it"
            fill = inner.fill
        if inner.is_patchwork and any(
            patchwork.overlaps(expr, self.ranges) for expr in piece.exprs
        ):
            return patchwork.REASON
        composed = [
            Piece(
                p.source,
                [substitute(e, piece.exprs, self.ranges) for e in p.exprs],
                [
                    *piece.conditions,
                    *(substitute(c, piece.exprs, self.ranges) for c in p.conditions),
                ],
            )
            for p in inner.pieces
        ]
        self.pieces[index : index + 1] = composed
        self.fill = fill
        return None

    @property
    def is_patchwork(self) -> bool:
        """Whether elements come from several places, or are there more than once."""
        if len(self.pieces) > 1:
            return True
        (piece,) = self.pieces
        divided = any(True for expr in piece.exprs for _ in divisions(expr))
        made = prod(last + 1 for _, last in self.ranges if isinstance(last, int))
        there = [n for n in shape_of(tensor_type(piece.source)) if isinstance(n, int)]
        return divided and made > prod(there)

    def is_identity(self, op: IndexMapOp) -> bool:
        """Whether the result is the one source, unchanged."""
        if len(self.pieces) != 1 or self.pieces[0].conditions:
            return False
        piece = self.pieces[0]
        identity = [simplify(AffineExpr.dimension(i), self.ranges) for i in range(len(self.ranges))]
        return piece.source.type == op.result.type and list(piece.exprs) == identity

    def constant(self) -> Scalar | None:
        """The one value that every position holds, if the sources are constants that agree."""
        values: set[IntegerAttr | FloatAttr] = set() if self.fill is None else {self.fill}
        for piece in self.pieces:
            if not isinstance(piece.source.owner, ConstantOp):
                return None
            values.add(piece.source.owner.value)
        return values.pop() if len(values) == 1 else None


def _strongest(conditions: list[AffineExpr], ranges: list[Range]) -> list[AffineExpr]:
    """The conditions without those that another one implies."""
    kept: list[AffineExpr] = []
    for c in conditions:
        if any(always_holds(simplify(c + product(k, -1), ranges), ranges) for k in kept):
            continue
        kept = [k for k in kept if not always_holds(simplify(k + product(c, -1), ranges), ranges)]
        kept.append(c)
    return kept


def compose_one(op: IndexMapOp) -> None:
    """Compose, simplify and rewrite one index map whose producers are already done."""
    layout = Layout.of(op)
    name = op.result.name_hint or "value"
    index = 0
    while index < len(layout.pieces):
        if not isinstance(layout.pieces[index].source.owner, IndexMapOp):
            index += 1
        elif (reason := layout.compose(index)) is None:
            layout.changed = True
        else:
            record("compose-index-maps", name, False, reason, op)
            index += 1
    layout.simplify()
    if layout.is_identity(op):
        op.result.replace_all_uses_with(layout.pieces[0].source)
        record("compose-index-maps", name, True, "changes nothing, removed", op)
        return
    if (value := layout.constant()) is not None:
        new = ConstantOp(value.value.data, tensor_type(op.result))
        reason = "reads one constant value"
    else:
        rank = len(layout.ranges)
        new = IndexMapOp(
            [p.source for p in layout.pieces],
            [affine_map(rank, p.exprs) for p in layout.pieces],
            shape_of(tensor_type(op.result)),
            conditions=[condition(rank, p.conditions) for p in layout.pieces],
            fill=layout.fill,
        )
        reason = "reads through the layout change before it"
        if not layout.changed:
            op.properties = dict(new.properties)  # a fill that is never read is gone
            new_operands = list(new.sources)
            new.erase()
            op.operands = new_operands
            return
    new.location = op.location
    new.result.name_hint = op.result.name_hint
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    op.result.replace_all_uses_with(new.result)
    record("compose-index-maps", name, True, reason, op)


@dataclass(frozen=True)
class ComposeIndexMapsPass(ModulePass):
    """Join chains of `tensor_ir.index_map`."""

    name = "compose-index-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        maps = ops_of(op, IndexMapOp)
        for index_map in maps:
            compose_one(index_map)
        for index_map in reversed(list(o for o in ops_in(op) if isinstance(o, IndexMapOp))):
            if not index_map.result.uses:
                index_map.detach()
                index_map.erase()
