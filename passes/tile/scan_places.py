"""What a thread does for its places of a running fold: the terms, what they come to, and what follows.

    %kept = loop.registers : memref<4xf32, "registers">
    loop.for %e = 0 to 4 { ... loop.store %x[%i, %lane * 4 + %e], %kept[%e] } attributes {unroll, vector}
    %total = loop.for %n = 0 to 4 reduce(add) -> f32 { ... %kept[%n] ... }
    %before = tile.prefix add %total over(%lane) : f32
    %s_0 = arith.addf %before, %kept[0]
    ...
    loop.for %e = 0 to 4 { ... loop.store %kept[%e], %y[%i, %lane * 4 + %e] } attributes {unroll, vector}

The passes that choose the threads are elsewhere (`scan_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.vectors import VECTOR
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp, RegistersOp, StoreOp, TestOp, YieldOp
from ...dialects.scalars import identity
from ...dialects.tile import LaunchOp, PrefixOp
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine
from .mark_unroll import UNROLL
from .rewrite_indices import rewrite_index

INDEX = IndexType()


@dataclass(frozen=True)
class ScanShape:
    """`lanes` threads share a row or column, of which a block has `others`; each has `each` places.

    It loads and stores `vector` of them at once.
    """

    lanes: int
    others: int
    each: int
    vector: int = 1
    columns: bool = False

    @property
    def units(self) -> int:
        """Vectors of a thread."""
        return self.each // self.vector


Emit = Callable[[Builder, list[SSAValue], AffineExpr, AffineExpr], None]
"""Inserts what is done for a place of a thread: the counters, the place and its number in the thread."""


@dataclass
class Places:
    """The new body of a launch, whose places are shared out between lanes."""

    launch: LaunchOp
    shape: ScanShape
    place: SSAValue
    lane: SSAValue
    inside: tuple[list[AffineExpr], list[SSAValue]]
    """There is such a place where these are at least zero."""
    kept: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """The array of each fold."""

    def build(self, folds: list[ForOp], rest: list[Operation]) -> None:
        """Insert the terms, what they come to, and what is done at each place."""
        builder = Builder(InsertPoint.at_end(self.launch.body.block))
        for fold in folds:
            for result in fold.res:
                array = builder.insert(RegistersOp(self.shape.each, result.type)).result
                array.name_hint = f"{result.name_hint or 'value'}_kept"
                self.kept[result] = array
        for fold in folds:
            self._each_place(builder, self._term(fold), self._none(fold))
        for fold in folds:
            self._run(builder, fold)
        self._each_place(builder, self._end(rest), None)

    def _each_place(self, builder: Builder, emit: Emit, otherwise: Emit | None) -> None:
        """Loops over the places of a thread; `otherwise` is for those that there are not."""
        shape, counters = self.shape, [self.lane]
        first = AffineExpr.constant(0)
        if shape.units > 1:
            builder = self._enter(builder, shape.units, counters, "u")
            first = AffineExpr.dimension(1) * shape.vector
        exprs, operands = self.inside
        if not exprs:
            self._neighbours(builder, counters, first, emit)
            return
        test = builder.insert(TestOp(exprs, operands))
        test.result.name_hint = "inside"
        then = Block([scf.YieldOp()])
        other = None if otherwise is None else Block([scf.YieldOp()])
        builder.insert(
            scf.IfOp(test.result, [], Region(then), None if other is None else Region(other))
        )
        place = AffineExpr.dimension(0) * shape.each + first
        rewrite_index(test, {self.place: place}, counters)
        self._neighbours(Builder(InsertPoint.at_start(then)), counters, first, emit)
        if other is not None and otherwise is not None:
            self._neighbours(Builder(InsertPoint.at_start(other)), counters, first, otherwise)

    def _neighbours(
        self, builder: Builder, counters: list[SSAValue], first: AffineExpr, emit: Emit
    ) -> None:
        counters = list(counters)
        if self.shape.vector > 1:
            builder = self._enter(builder, self.shape.vector, counters, "e")
            loop = builder.insertion_point.block.parent_op()
            assert loop is not None
            loop.attributes[VECTOR] = UnitAttr()
            first = first + AffineExpr.dimension(len(counters) - 1)
        emit(builder, counters, AffineExpr.dimension(0) * self.shape.each + first, first)

    def _enter(self, builder: Builder, extent: int, counters: list[SSAValue], name: str) -> Builder:
        loop = builder.insert(ForOp(extent, Region(Block(arg_types=[INDEX]))))
        loop.attributes[UNROLL] = UnitAttr()
        loop.induction_var.name_hint = name
        counters.append(loop.induction_var)
        return Builder(InsertPoint.at_start(loop.body.block))

    def _insert(
        self, builder: Builder, ops: list[Operation], values: dict[SSAValue, SSAValue]
    ) -> list[Operation]:
        return [builder.insert(op.clone(values)) for op in ops]

    def _term(self, fold: ForOp) -> Emit:
        """Keeps the term of a place."""

        def emit(
            builder: Builder, counters: list[SSAValue], place: AffineExpr, number: AffineExpr
        ) -> None:
            *terms, end = fold.body.block.ops
            values: dict[SSAValue, SSAValue] = {}
            copies = self._insert(builder, terms, values)
            for result, term in zip(fold.res, end.operands, strict=True):
                builder.insert(
                    StoreOp(values.get(term, term), self.kept[result], [number], list(counters))
                )
            _rewrite(copies, {self.place: place, fold.induction_var: place}, counters)

        return emit

    def _none(self, fold: ForOp) -> Emit:
        """Keeps what changes nothing."""

        def emit(
            builder: Builder, counters: list[SSAValue], place: AffineExpr, number: AffineExpr
        ) -> None:
            for combiner, result in zip(fold.combiners, fold.res, strict=True):
                none = emit_constant(builder, identity(combiner.data, result.type), result.type)
                builder.insert(StoreOp(none, self.kept[result], [number], list(counters)))

        return emit

    def _run(self, builder: Builder, fold: ForOp) -> None:
        """Replace the terms of a thread by what is folded up to each."""
        for combiner, result in zip(fold.combiners, fold.res, strict=True):
            kept, name = self.kept[result], result.name_hint or "value"
            body = Block(arg_types=[INDEX])
            body.args[0].name_hint = "n"
            term = LoadOp(kept, [AffineExpr.dimension(0)], [body.args[0]])
            body.add_ops([term, YieldOp(term.result)])
            total = builder.insert(
                ForOp(
                    self.shape.each,
                    Region(body),
                    combiners=[combiner.data],
                    result_types=[result.type],
                )
            )
            total.attributes[UNROLL] = UnitAttr()
            total.res[0].name_hint = f"{name}_total"
            prefix = builder.insert(PrefixOp(combiner.data, total.res[0], self.lane))
            prefix.location = fold.location
            until = prefix.result
            until.name_hint = f"{name}_before"
            for number in range(self.shape.each):
                index = [AffineExpr.constant(number)]
                term = builder.insert(LoadOp(kept, index, []))
                until = combine(builder, combiner.data, until, term.result)
                until.name_hint = name
                builder.insert(StoreOp(until, kept, index, []))

    def _end(self, rest: list[Operation]) -> Emit:
        """Does what is done with the folds of a place."""

        def emit(
            builder: Builder, counters: list[SSAValue], place: AffineExpr, number: AffineExpr
        ) -> None:
            values: dict[SSAValue, SSAValue] = {}
            for result, kept in self.kept.items():
                values[result] = builder.insert(LoadOp(kept, [number], list(counters))).result
                values[result].name_hint = result.name_hint
            copies = self._insert(builder, rest, values)
            _rewrite(copies, {self.place: place}, counters)

        return emit


def _rewrite(
    copies: list[Operation], known: dict[SSAValue, AffineExpr], counters: list[SSAValue]
) -> None:
    for op in [each for copy in copies for each in ops_in(copy)]:
        rewrite_index(op, known, counters)
