"""`masks-to-conditions`: a choice by a mask that is made of positions becomes a condition on positions.

    %i = tensor_ir.iota 0 : tensor<8x8xi64>
    %j = tensor_ir.iota 1 : tensor<8x8xi64>
    %m = tensor_ir.elementwise ge(%i, %j) : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi1>
    %z = tensor_ir.constant 0.0 : tensor<8x8xf32>
    %y = tensor_ir.elementwise select(%m, %x, %z) : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<8x8xf32>) -> ...
becomes
    %y = tensor_ir.index_map (i, j) -> %x[i, j] if i - j >= 0 else 0.0 : (tensor<8x8xf32>) -> tensor<8x8xf32>

So no mask is stored, and loops end where a condition does: a causal or sliding window of attention leaves out
what it masks. A mask is `and` of comparisons of integers that are sums of positions and constants, but for
equality. Integers that could wrap around are no positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import Range, extent_range, simplify, substitute
from ...dialects.index import condition
from ...dialects.inside import ops_in
from ...dialects.scalars import Function, is_bool
from ...dialects.sizes import shape_of
from ...dialects.syntax import tensor_type
from ...dialects.tensor_ir import CastOp, ConstantOp, ElementwiseOp, IndexMapOp, IotaOp
from ...errors import counted
from ...index.affine import affine_map, product
from ...index.ranges import bounds
from ..decisions import record

_SIGNS = {Function.ADD: 1, Function.SUB: -1}


@dataclass(frozen=True)
class _Positions:
    """Reads integers and masks at an index over the positions of a result, whose ranges it knows."""

    ranges: Sequence[Range]

    def number(self, value: SSAValue, index: Sequence[AffineExpr]) -> AffineExpr | None:
        """An integer as an expression of positions, or None."""
        found = self._number(value, index)
        if found is None:
            return None
        type = tensor_type(value).element_type
        assert isinstance(type, IntegerType)
        half = 2 ** (type.width.data - 1)
        low, high = bounds(found, self.ranges)
        return found if -half <= low and high < half else None

    def _number(self, value: SSAValue, index: Sequence[AffineExpr]) -> AffineExpr | None:
        if not isinstance(tensor_type(value).element_type, IntegerType) or is_bool(
            tensor_type(value).element_type
        ):
            return None
        match value.owner:
            case IotaOp(axis=axis):
                return simplify(index[axis.value.data], self.ranges)
            case ConstantOp(value=IntegerAttr() as number):
                return AffineExpr.constant(number.value.data)
            case CastOp(input=input):
                return self.number(input, index)
            case IndexMapOp() as op if (inner := self._through(op, index)) is not None:
                return self.number(op.sources[0], inner)
            case ElementwiseOp() as op if op.function.data in _SIGNS:
                left, right = (self.number(each, index) for each in op.inputs)
                if left is None or right is None:
                    return None
                return simplify(left + product(right, _SIGNS[op.function.data]), self.ranges)
            case _:
                return None

    def _through(
        self, op: IndexMapOp, index: Sequence[AffineExpr]
    ) -> Sequence[AffineExpr] | None:
        """Where a map without conditions reads its one source, or None for another map."""
        if op.fill is not None or len(op.sources) != 1:
            return None
        return [substitute(e, index, self.ranges) for e in op.maps.data[0].data.results]

    def conditions(self, mask: SSAValue, index: Sequence[AffineExpr]) -> list[AffineExpr] | None:
        """Expressions that are all at least zero where a mask holds, and only there; or None."""
        match mask.owner:
            case ConstantOp(value=IntegerAttr() as bit):
                return [] if bit.value.data else None
            case IndexMapOp() as op if (inner := self._through(op, index)) is not None:
                return self.conditions(op.sources[0], inner)
            case ElementwiseOp() as op if op.function.data is Function.AND:
                parts = [self.conditions(each, index) for each in op.inputs]
                return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
            case ElementwiseOp() as op if op.function.data is Function.NOT:
                inner = self.conditions(op.inputs[0], index)
                return [_negated(inner[0])] if inner and len(inner) == 1 else None
            case ElementwiseOp() as op if op.function.data in _COMPARED:
                left, right = (self.number(each, index) for each in op.inputs)
                if left is None or right is None:
                    return None
                return [
                    simplify(product(left, a) + product(right, b) + c, self.ranges)
                    for a, b, c in _COMPARED[op.function.data]
                ]
            case _:
                return None


_COMPARED: dict[Function, tuple[tuple[int, int, int], ...]] = {
    Function.GE: ((1, -1, 0),),
    Function.GT: ((1, -1, -1),),
    Function.LE: ((-1, 1, 0),),
    Function.LT: ((-1, 1, -1),),
}
"""Comparison of x and y -> factors of both and a number: the sums are at least 0 where it holds.

Equality stays a mask: `collapse-reduce` finds the one place where it holds.
"""


def condition_of(op: ElementwiseOp) -> tuple[SSAValue, list[AffineExpr], ConstantOp] | str:
    """The value that a choice gives where all of some expressions are at least zero, and that elsewhere.

    Or why it is no such choice.
    """
    mask, yes, no = op.inputs
    shape = shape_of(tensor_type(op.result))
    reader = _Positions([extent_range(extent) for extent in shape])
    index = [AffineExpr.dimension(i) for i in range(len(shape))]
    found = reader.conditions(mask, index)
    if found is None:
        return "its mask is made of more than positions"
    if isinstance(no.owner, ConstantOp):
        return yes, found, no.owner
    if isinstance(yes.owner, ConstantOp) and len(found) == 1:
        return no, [simplify(_negated(found[0]), reader.ranges)], yes.owner
    return "where the mask does not hold, it is no constant"


def _negated(expr: AffineExpr) -> AffineExpr:
    """What is at least zero where an expression is not."""
    return product(expr, -1) - 1


@dataclass(frozen=True)
class MasksToConditionsPass(ModulePass):
    """Rewrite choices by masks of positions as index maps."""

    name = "masks-to-conditions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for choice in [o for o in ops_in(op) if isinstance(o, ElementwiseOp)]:
            if choice.function.data is not Function.SELECT:
                continue
            name = choice.result.name_hint or "value"
            found = condition_of(choice)
            if isinstance(found, str):
                record(self.name, name, False, found, choice)
                continue
            value, conditions, other = found
            told = f"{counted(len(conditions), 'condition')} on positions"
            record(self.name, name, True, told, choice)
            if conditions:
                value = _map(choice, value, conditions, other).result
            choice.result.replace_all_uses_with(value)
            choice.detach()
            choice.erase()


def _map(
    op: ElementwiseOp, value: SSAValue, conditions: Sequence[AffineExpr], other: ConstantOp
) -> IndexMapOp:
    """The index map that means what a choice does, in front of it."""
    shape = shape_of(tensor_type(op.result))
    rank = len(shape)
    new = IndexMapOp(
        [value],
        [affine_map(rank, [AffineExpr.dimension(i) for i in range(rank)])],
        shape,
        conditions=[condition(rank, conditions)],
        fill=other.value,
    )
    new.location, new.result.name_hint = op.location, op.result.name_hint
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    return new
