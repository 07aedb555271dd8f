"""Borders: what lies around an image reads as 0, as it does around a slab's source.

    %inside = loop.test[%y + %r >= 1, %x + %s >= 1, %x + %s < 57]
    %v = scf.if %inside -> (bf16) {
      %e = loop.load %image[%c, %y + %r - 1, %x + %s - 1] : memref<64x56x56xbf16>
      scf.yield %e : bf16
    } else {
      %zero = arith.constant 0.0 : bf16
      scf.yield %zero : bf16
    }

The condition says of the load what the array itself does: that the index is inside of it. A copy in which all
else is 0 (`tile.stage`) needs no condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
)

from ..dialects.inside import ops_in
from ..dialects.loop import LoadOp, TestOp
from ..dialects.sizes import extent_expr, shape_of
from ..index.affine import replace_dims
from .index import operand_ranges, simplify


def bordered_load(guard: scf.IfOp) -> LoadOp | None:
    """The load whose element a condition gives wherever the index is inside of the array, and 0 elsewhere.

    The element may be converted. None if the condition is another one, or chooses between anything else.
    """
    test = guard.cond.owner
    if not isinstance(test, TestOp) or len(guard.output) != 1 or not guard.false_region.blocks:
        return None
    load = _loaded(guard.true_region.block)
    if load is None or not _is_zero(guard.false_region.block):
        return None
    return load if _says_inside(test, load) else None


def loads_through_borders(block: Block) -> Iterator[LoadOp]:
    """The loads of a block, those under the condition that the index is inside among them."""
    for op in block.ops:
        if isinstance(op, LoadOp):
            yield op
        elif isinstance(op, scf.IfOp) and (load := bordered_load(op)) is not None:
            yield load


def is_border_test(test: TestOp) -> bool:
    """Whether a condition is that of borders, and of nothing else."""
    uses = [use.operation for use in test.result.uses]
    return all(isinstance(op, scf.IfOp) and bordered_load(op) is not None for op in uses)


def is_position_test(test: TestOp) -> bool:
    """Whether a condition only chooses 0 at some positions of each part of a sweep, outside of a window."""
    uses = [use.operation for use in test.result.uses]
    periodic = all(isinstance(op, arith.SelectOp) and _is_constant_zero(op.rhs) for op in uses)
    return periodic and len(test.operands_) == 1 and all(map(_is_periodic, test.exprs))


def _is_periodic(expr: AffineExpr) -> bool:
    """Whether all that is in an expression of one dim is its remainder."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, rhs=AffineConstantExpr()):
            return True
        case AffineBinaryOpExpr():
            return _is_periodic(expr.lhs) and _is_periodic(expr.rhs)
        case _:
            return isinstance(expr, AffineConstantExpr)


def border_tests(op: Operation) -> list[TestOp]:
    """The conditions of the borders in an operation, wherever they stand, that are of nothing else."""
    guards = [o for o in ops_in(op) if isinstance(o, scf.IfOp) and bordered_load(o) is not None]
    tests = (guard.cond.owner for guard in guards)
    found = dict.fromkeys(test for test in tests if isinstance(test, TestOp))
    return [test for test in found if is_border_test(test)]


def _loaded(block: Block) -> LoadOp | None:
    """The load that a block yields the element of, maybe converted; None if it computes anything."""
    first, *others = block.ops
    if not isinstance(first, LoadOp):
        return None
    value = first.result
    for op in others:
        if list(op.operands) != [value]:
            return None
        if isinstance(op, arith.ExtFOp | arith.TruncFOp):
            value = op.result
    return first


def _is_zero(block: Block) -> bool:
    """Whether a block yields 0, whose sign is that of a copy's."""
    match list(block.ops):
        case [arith.ConstantOp() as constant, scf.YieldOp()]:
            return _is_constant_zero(constant.result)
        case _:
            return False


def _is_constant_zero(value: SSAValue) -> bool:
    match value.owner:
        case arith.ConstantOp(value=FloatAttr() as constant):
            number = float(constant.value.data)
            return number == 0 and copysign(1, number) > 0
        case _:
            return False


def _says_inside(test: TestOp, load: LoadOp) -> bool:
    """Whether each part of a condition is one that every index inside of the array fulfils."""
    space: list[SSAValue] = list(dict.fromkeys([*load.indices, *test.operands_]))
    ranges = operand_ranges(space)

    def at(expr: AffineExpr, operands: list[SSAValue]) -> AffineExpr:
        dims = [AffineExpr.dimension(space.index(value)) for value in operands]
        return simplify(replace_dims(expr, dims), ranges)

    assert isinstance(load.memref.type, MemRefType)
    inside: set[AffineExpr] = set()
    indices = list(load.indices)
    for index, extent in zip(load.map.data.results, shape_of(load.memref.type), strict=True):
        inside |= {at(index, indices), at(extent_expr(extent) + index * -1 + -1, indices)}
    return all(at(expr, list(test.operands_)) in inside for expr in test.exprs)
