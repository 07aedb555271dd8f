"""Vectors of elements a few apart on a line, as a convolution with a stride of 2 to 4 reads them.

    %in[%channel, %y, 2 * %r + 5]                // for 16 neighbouring %r
is read by
    %a = vector.load %in[%channel, %y, 5]        // elements 5 to 20
    %b = vector.load %in[%channel, %y, 20]       // elements 20 to 35: no further than the last one
    vector.shuffle %a, %b [0, 2, ..., 14, 17, 19, ..., 31]

where all of them are inside of the image. LLVM would have them gathered one by one. With a stride of 4 there
are four loads and three shuffles. Where some are outside, they are not read:

    %a = vector.maskedload %in[%channel, %y, -1], %1_to_16, %zeros

What is on several lines of the image is read from each of them so, and joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ...analysis.index import operand_ranges, simplify
from ...dialects.index import linearize
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import shape_of
from ...dialects.syntax import scalar_attr
from ...index.affine import replace_dims
from ..tile.rewrite_indices import Index, index_of, rewritten
from .joined_rows import JoinedRows
from .loop_code import LoopCode

MOST_APART = 4
"""Elements from one that is read to the next, at most: for more, a vector takes too many loads."""

MANY = 1 << 10
"""More than a vector has elements."""

D0 = AffineExpr.dimension(0)

Known = Mapping[SSAValue, AffineExpr]
"""What counters are over others."""

Span = tuple[SSAValue, SSAValue]
"""The first of some rows or windows, and the one after the last: none where that does not come later."""


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

    array: SSAValue
    place: Index
    tests: tuple[Index, ...]
    """Of each, all expressions are at least 0 where an element is read."""
    row: SSAValue
    line: SSAValue
    """What stands for the line of joined rows in `place` and `tests`."""
    apart: int
    """Elements from one to the next."""

    @staticmethod
    def of(
        ops: Sequence[Operation],
        element: SSAValue,
        row: SSAValue,
        lanes: int,
        joined: JoinedRows | None = None,
    ) -> ApartElements | None:
        """The same of what computes `element`, if that is all they do, on a line of joined rows."""
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
        line = Block(arg_types=[IndexType()]).args[0]
        found = [index for op in (load, *tests) if (index := index_of(op)) is not None]
        if joined is not None:
            found = [joined.replaced(*index, line) for index in found]
        (exprs, operands), *conditions = found
        *outer, apart = [growth(expr, operands, row, 1) for expr in exprs]
        if any(outer) or None in outer or apart is None or not 1 < apart <= min(MOST_APART, lanes):
            return None
        if any(growth(e, values, row, 1) is None for each, values in conditions for e in each):
            return None
        return ApartElements(load.memref, found[0], tuple(conditions), row, line, apart)

    def inside(
        self, code: LoopCode, ends: Sequence[Known], counters: list[SSAValue]
    ) -> list[SSAValue]:
        """Whether each condition holds at both ends, and so in between."""
        return [
            code.insert(TestOp(*rewritten(*test, old, counters)))
            for old in ends
            for test in self.tests
        ]

    def rows_inside(
        self, code: LoopCode, first: Known, counters: list[SSAValue], between: Span
    ) -> Span:
        """Between which rows, counted from the first one, all conditions hold: within other ends."""
        begin, end = between
        for exprs, operands in self.tests:
            for expr in exprs:
                grows = growth(expr, operands, self.row, 1)
                assert grows is not None
                (here,), space = rewritten([expr], operands, first, counters)
                if grows > 0:
                    begin = code.larger(
                        begin, code.index((here * -1 + (grows - 1)) // grows, space)
                    )
                else:
                    # What stays as it is either holds for more rows than there are, or for none.
                    most = here // -grows + 1 if grows else (here + 1) * MANY
                    end = code.smaller(end, code.index(most, space))
        return begin, end

    def _starts(self, lanes: int) -> list[int]:
        """Where the vectors begin that all elements are in; none reads further than the last element."""
        return [*(lanes * part for part in range(self.apart - 1)), (lanes - 1) * (self.apart - 1)]

    def masks(self, code: LoopCode, between: Span, lanes: int) -> list[SSAValue]:
        """What is read of each of these vectors if only the rows `between` two others are."""
        found: list[SSAValue] = []
        for start in self._starts(lanes):
            begin = code.index(D0 * self.apart - start, [between[0]])
            end = code.index((D0 - 1) * self.apart + (1 - start), [between[1]])
            found.append(code.mask(begin, end, lanes))
        return found

    def vector(
        self,
        code: LoopCode,
        first: Known,
        counters: list[SSAValue],
        lanes: int,
        masks: Sequence[SSAValue] | None = None,
    ) -> SSAValue:
        """The elements of as many rows as a vector has, from the first one on: under `masks`, or 0."""
        exprs, operands = rewritten(*self.place, first, counters)
        *outer, last = exprs
        starts, parts = self._starts(lanes), list[SSAValue]()
        for number, start in enumerate(starts):
            place = [code.index(expr, operands) for expr in (*outer, last + start)]
            mask = None if masks is None else masks[number]
            parts.append(code.load_anywhere(self.array, place, lanes, mask))
        made = parts[0]
        found = {lane: lane * self.apart for lane in range(-(-lanes // self.apart))}
        for start, part in zip(starts[1:], parts[1:], strict=True):
            left = {lane: lane * self.apart - start for lane in range(len(found), lanes)}
            found |= {lane: lanes + place for lane, place in left.items() if place < lanes}
            made = code.shuffle(made, part, [found.get(lane, 0) for lane in range(lanes)])
            found = {lane: lane for lane in found}
        return made
