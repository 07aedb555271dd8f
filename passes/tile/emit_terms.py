"""Writing terms (`analysis/terms.py`) as operations, at a point that counters give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.index import operand_ranges, simplify
from ...analysis.terms import DIMS, Term
from ...dialects.loop import ForOp, IndexOp, LoadOp, TestOp, YieldOp
from ...dialects.scalars import Combiner
from ...index.affine import ZERO, replace_dims


@dataclass
class TermWriter:
    """Inserts the operations of terms at the end of a block.

    `counters` are values, `dims` says which expression of them a term's dim is, `arrays` what it loads from.
    `known` has values of terms; each term is written once in a block.
    """

    block: Block
    counters: Sequence[SSAValue]
    dims: Mapping[int, AffineExpr]
    arrays: Mapping[object, SSAValue]
    known: dict[Term, SSAValue] = field(default_factory=dict[Term, SSAValue])

    @property
    def builder(self) -> Builder:
        """Inserts at the end of the block."""
        return Builder(InsertPoint.at_end(self.block))

    def within(self, block: Block) -> TermWriter:
        """The same at the end of a block inside of this one."""
        return TermWriter(block, self.counters, self.dims, self.arrays, dict(self.known))

    def exprs(self, exprs: Sequence[AffineExpr]) -> list[AffineExpr]:
        """Index expressions over the counters."""
        space = [self.dims.get(i, ZERO) for i in range(DIMS)]
        ranges = operand_ranges(self.counters)
        return [simplify(replace_dims(e, space), ranges) for e in exprs]

    def write(self, term: Term) -> SSAValue:
        """The value of a term."""
        if term not in self.known:
            self.known[term] = value = self._write(term)
            if term.op is not None and value.name_hint is None:
                value.name_hint = term.op.results[0].name_hint
        return self.known[term]

    def _write(self, term: Term) -> SSAValue:
        match term.name:
            case "load":
                op = LoadOp(self.arrays[term.key], self.exprs(term.exprs), self.counters)
                return self._insert(op, term)
            case "index":
                return self._insert(IndexOp(self.exprs(term.exprs)[0], self.counters), term)
            case "test":
                return self._insert(TestOp(self.exprs(term.exprs), self.counters), term)
            case "if":
                return self._choose(term)
            case "fold":
                return self._fold(term)
            case _:
                values = [self.write(operand) for operand in term.operands]
                assert term.op is not None
                mapped = dict(zip(term.op.operands, values, strict=True))
                return self._insert(term.op.clone(value_mapper=mapped), term)

    def _insert(self, op: Operation, term: Term) -> SSAValue:
        if term.op is not None:
            op.location = term.op.location
        self.block.add_op(op)
        return op.results[0]

    def _choose(self, term: Term) -> SSAValue:
        condition, *choices = term.operands
        where = self.write(condition)
        regions: list[Region] = []
        for choice in choices:
            block = Block()
            block.add_op(scf.YieldOp(self.within(block).write(choice)))
            regions.append(Region(block))
        return self._insert(scf.IfOp(where, [term.type], regions[0], regions[1]), term)

    def _fold(self, term: Term) -> SSAValue:
        combiner, extent = term.key  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        assert isinstance(combiner, Combiner)
        assert isinstance(extent, int)
        assert term.bound is not None
        body = Block(arg_types=[IndexType()])
        if isinstance(term.op, ForOp):
            body.args[0].name_hint = term.op.induction_var.name_hint
        inner = self.within(body)
        inner.dims = {**self.dims, term.bound: AffineExpr.dimension(len(self.counters))}
        inner.counters = [*self.counters, body.args[0]]
        body.add_op(YieldOp(inner.write(term.operands[0])))
        loop = ForOp(extent, Region(body), combiners=[combiner], result_types=[term.type])
        return self._insert(loop, term)
