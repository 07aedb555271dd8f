"""Vectors of elements a few apart on a line, as a convolution with a stride of 2 to 4 reads them.

    %in[%channel, %y, 2 * %r + 5]                // for 16 neighbouring %r
is read by
    %a = vector.load %in[%channel, %y, 5]        // elements 5 to 20
    %b = vector.load %in[%channel, %y, 20]       // elements 20 to 35: no further than the last one
    vector.shuffle %a, %b [0, 2, ..., 14, 17, 19, ..., 31]

where all of them are inside of the image. LLVM would have them gathered one by one. With a stride of 4 there
are four loads and three shuffles. The last 12 of a line are the end of what is read so from 4 before them on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ...analysis.index import operand_ranges, simplify
from ...dialects.affine import replace_dims
from ...dialects.index import linearize
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import shape_of
from ...dialects.syntax import scalar_attr
from ..loop.scalar_code import emit_constant
from ..tile.rewrite_indices import rewrite_index
from .loop_code import LoopCode, element_of

MOST_APART = 4
"""Elements from one that is read to the next, at most: for more, a vector takes too many loads."""


def gives_zero(block: Block) -> bool:
    """Whether a branch gives 0 and does nothing else."""
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    constant = end.operands[0].owner
    return isinstance(constant, arith.ConstantOp) and constant.value in (
        scalar_attr(0, end.operands[0].type),
    )


def growth(
    expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue, step: int
) -> int | None:
    """How much larger an expression is when a counter is `step` larger, if that is always the same."""
    dims = [AffineExpr.dimension(i) for i in range(len(operands))]
    moved = [d + step if v is counter else d for v, d in zip(operands, dims, strict=True)]
    difference = replace_dims(expr, moved) + expr * -1
    match simplify(difference, operand_ranges(operands)):
        case AffineConstantExpr(value=number):
            return number
        case _:
            return None


def stride(op: LoadOp, counter: SSAValue, step: int) -> int | None:
    """How many bytes further a load reads when a counter is `step` larger, if that is always the same."""
    type = op.memref.type
    assert isinstance(type, MemRefType)
    offset = linearize(op.map.data.results, shape_of(type))
    elements = growth(offset, op.indices, counter, step)
    return None if elements is None else elements * storage_bytes(type.element_type)


@dataclass(frozen=True)
class ApartElements:
    """What reads elements a few apart along rows, or 0 where a condition does not hold."""

    load: LoadOp
    tests: tuple[TestOp, ...]
    apart: int
    """Elements from one to the next."""

    @staticmethod
    def of(
        ops: Sequence[Operation], element: SSAValue, row: SSAValue, lanes: int
    ) -> ApartElements | None:
        """The same of operations that compute `element`, if that is all they do."""
        tests: list[TestOp] = []
        while isinstance(branch := element.owner, scf.IfOp):
            test = branch.cond.owner
            if not isinstance(test, TestOp) or not gives_zero(branch.false_region.block):
                return None
            tests.append(test)
            end = branch.true_region.block.last_op
            assert isinstance(end, scf.YieldOp)
            element = end.operands[branch.results.index(element)]
        load = element.owner
        if not isinstance(load, LoadOp) or not isinstance(load.memref, BlockArgument) or lanes < 2:
            return None
        inside = {op for each in ops for op in ops_in(each)}
        if load not in inside or any(
            v.owner in inside for op in (load, *tests) for v in op.operands
        ):
            return None
        *outer, last = load.map.data.results
        if any(growth(expr, load.indices, row, 1) != 0 for expr in outer):
            return None
        apart = growth(last, load.indices, row, 1)
        if apart is None or not 1 < apart <= min(MOST_APART, lanes):
            return None
        bounds = [growth(expr, t.operands_, row, 1) for t in tests for expr in t.exprs]
        return None if None in bounds else ApartElements(load, tuple(tests), apart)

    def inside(
        self, code: LoopCode, ends: Sequence[dict[SSAValue, AffineExpr]], counters: list[SSAValue]
    ) -> list[SSAValue]:
        """Whether each condition holds at both ends, and so in between."""
        return [code.insert(_rewritten(t, old, counters)) for old in ends for t in self.tests]

    def vector(
        self,
        code: LoopCode,
        first: dict[SSAValue, AffineExpr],
        counters: list[SSAValue],
        lanes: int,
    ) -> SSAValue:
        """The elements of as many rows as a vector has, from the first one on."""
        kind = VectorType(element_of(self.load.memref), [lanes])
        load = _rewritten(self.load, first, counters)
        assert isinstance(load, LoadOp)
        *outer, last = load.map.data.results
        operands = list(load.indices)
        # None reads further than the last element.
        starts = [lanes * part for part in range(self.apart - 1)]
        starts.append((lanes - 1) * (self.apart - 1))
        parts: list[SSAValue] = []
        for ahead in starts:
            place = [code.index(expr, operands) for expr in (*outer, last + ahead)]
            parts.append(code.insert(vector.LoadOp(load.memref, place, kind)))
        made = parts[0]
        found = {lane: lane * self.apart for lane in range(-(-lanes // self.apart))}
        for start, part in zip(starts[1:], parts[1:], strict=True):
            left = {lane: lane * self.apart - start for lane in range(len(found), lanes)}
            found |= {lane: lanes + place for lane, place in left.items() if place < lanes}
            made = code.shuffle(made, part, [found.get(lane, 0) for lane in range(lanes)])
            found = {lane: lane for lane in found}
        return made

    def end(
        self,
        code: LoopCode,
        first: dict[SSAValue, AffineExpr],
        counters: list[SSAValue],
        lanes: int,
        count: int,
    ) -> SSAValue:
        """The last `count` elements of a vector that begins at a row, and then zeros."""
        elements = self.vector(code, first, counters, lanes)
        zero = emit_constant(code.builder, 0, element_of(self.load.memref))
        mask = [*range(lanes - count, lanes), *[lanes] * (lanes - count)]
        return code.shuffle(elements, code.broadcast(zero, lanes), mask)


def _rewritten(
    op: Operation, old: dict[SSAValue, AffineExpr], counters: list[SSAValue]
) -> Operation:
    """A copy of an operation that stands nowhere yet, with other counters in its indices."""
    body = Block([op.clone()])
    for copy in list(body.ops):
        rewrite_index(copy, old, counters)
    (made,) = body.ops
    made.detach()
    return made
