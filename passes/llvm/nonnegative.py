"""Which `index` values of a control-flow graph are never negative.

After `loops-to-branches` a counter is a block argument, `0` on entry and `%i + %step` on the back
edge. It is proven by induction: assume it, then show it for every value that flows in. What is
proven lets `floordiv` and `mod` become unsigned division.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...analysis.index import UNKNOWN, Range, bounds, known_extent
from ...dialects.loop import IndexOp

NON_NEGATIVE: Range = (0, UNKNOWN[1])
"""The range of a value of which nothing else is known."""


class NonNegative:
    """Answers for the values of one function's body.

    Index arguments of the function are sizes and block numbers: never negative.
    """

    def __init__(self, body: Region):
        self._incoming: dict[Block, list[tuple[SSAValue, ...]]] = {}
        for block in body.blocks:
            for successor, values in _edges(block.last_op):
                self._incoming.setdefault(successor, []).append(values)
        self._entry = body.blocks[0]
        self._proven: dict[SSAValue, bool] = {}

    def range_of(self, value: SSAValue) -> Range:
        """`[0, ...)` if `value` is proven non-negative, else everything."""
        if value not in self._proven:
            assumed: set[SSAValue] = set()
            self._proven[value] = self._holds(value, assumed)
            if self._proven[value]:
                self._proven.update(dict.fromkeys(assumed, True))
        return NON_NEGATIVE if self._proven[value] else UNKNOWN

    def _holds(self, value: SSAValue, assumed: set[SSAValue]) -> bool:
        if value in assumed or self._proven.get(value):
            return True
        if isinstance(value, BlockArgument):
            return self._argument_holds(value, assumed)
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as constant):
                return constant.value.data >= 0
            case arith.AddiOp(lhs=lhs, rhs=rhs) | arith.MuliOp(lhs=lhs, rhs=rhs):
                return self._holds(lhs, assumed) and self._holds(rhs, assumed)
            case arith.MinSIOp(lhs=lhs, rhs=rhs):
                return self._holds(lhs, assumed) and self._holds(rhs, assumed)
            case arith.MaxSIOp(rhs=rhs):
                return self._holds(rhs, assumed)
            case IndexOp() as op:
                # All operands must hold: an assumption that fails has to fail the whole proof.
                expr, count = op.map.data.results[0], len(op.operands_)
                if bounds(expr, [UNKNOWN] * count)[0] >= 0:
                    return True
                return bounds(expr, [NON_NEGATIVE] * count)[0] >= 0 and all(
                    [self._holds(v, assumed) for v in op.operands_]
                )
            case arith.IndexCastOp() as op:
                return _is_checked(op.input)
            case _:
                return False

    def _argument_holds(self, value: BlockArgument, assumed: set[SSAValue]) -> bool:
        if value.block is self._entry:
            return isinstance(value.type, IndexType)
        assumed.add(value)
        flows_in = [values[value.index] for values in self._incoming.get(value.block, [])]
        return all([self._holds(each, assumed) for each in flows_in])


def _is_checked(value: SSAValue) -> bool:
    """Whether `value` is `select(x <u n, x, 0)` with n an extent, as `lower_loops` makes it."""
    match value.owner:
        case arith.SelectOp(cond=cond, lhs=lhs, rhs=rhs):
            checked, other = cond.owner, rhs.owner
        case _:
            return False
    return (
        isinstance(checked, arith.CmpiOp)
        and checked.predicate.value.data == _UNSIGNED_LESS
        and checked.lhs is lhs
        and known_extent(checked.rhs) is not None
        and _constant_at_least_zero(other)
    )


_UNSIGNED_LESS = 6


def _constant_at_least_zero(op: Operation | Block) -> bool:
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, IntegerAttr)
        and op.value.value.data >= 0
    )


def _edges(terminator: Operation | None) -> Iterator[tuple[Block, tuple[SSAValue, ...]]]:
    match terminator:
        case cf.BranchOp() as op:
            yield op.successor, tuple(op.arguments)
        case cf.ConditionalBranchOp() as op:
            then, otherwise = op.successors
            _, *given = op.operands
            count = len(then.args)
            yield then, tuple(given[:count])
            yield otherwise, tuple(given[count:])
        case _:
            pass
