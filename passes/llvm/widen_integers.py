"""`widen-integers`: integers that become floats are computed in 32 bits, where they fit in fewer all the way.

    %w = arith.extui %p : i8 to i32
    %m = arith.andi %w, %c15 : i32
    %n = arith.trunci %m : i32 to i8
    %d = arith.subi %n, %c8 : i8
    %f = arith.sitofp %d : i8 to f32
becomes
    %w = arith.extui %p : i8 to i32
    %m = arith.andi %w, %c15 : i32
    %d = arith.subi %m, %c8_i32 : i32
    %f = arith.sitofp %d : i32 to f32

Integers of 8 and 16 bits are narrowed after each operation, since they wrap. Those of a few bits, such as
the weights that share a byte, do not: an interval says so for each value. Then a CPU converts a vector of
bytes once, whatever parts of them are taken, and computes in whole vectors.

Declined are conversions of what is only read, and of what may wrap.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects.inside import ops_of
from ...errors import counted
from ...index.affine import product
from ...index.ranges import bounds
from ..decisions import record
from .kernel_loops import kernels_of

Interval = tuple[int, int]
"""The least and the greatest value of an integer, as a signed one."""

LEFT, RIGHT = AffineExpr.dimension(0), AffineExpr.dimension(1)
ARITHMETIC: dict[type[Operation], AffineExpr] = {
    arith.AddiOp: LEFT + RIGHT,
    arith.SubiOp: LEFT - RIGHT,
    arith.MuliOp: product(LEFT, RIGHT),
}
"""What an operation computes of its two operands, where integers have no end."""


class Intervals:
    """What integers of a kernel may be."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue) -> Interval:
        """The interval of an integer, everything that its type has if nothing is known."""
        if value not in self._known:
            whole = _whole(value)
            low, high = self._computed(value) or whole
            self._known[value] = (low, high) if whole[0] <= low and high <= whole[1] else whole
        return self._known[value]

    def exact(self, op: Operation) -> bool:
        """Whether an operation with one result gives what it does where integers have no end."""
        computed = self._computed(op.results[0])
        whole = _whole(op.results[0])
        return computed is not None and whole[0] <= computed[0] and computed[1] <= whole[1]

    def _computed(self, value: SSAValue) -> Interval | None:
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as constant):
                return constant.value.data, constant.value.data
            case arith.TruncIOp(input=source) | arith.ExtSIOp(input=source):
                return self.of(source)
            case arith.ExtUIOp(input=source):
                low, high = self.of(source)
                return (low, high) if low >= 0 else (0, 2 ** _bits(source) - 1)
            case arith.SelectOp(lhs=lhs, rhs=rhs):
                (a, b), (c, d) = self.of(lhs), self.of(rhs)
                return min(a, c), max(b, d)
            case arith.AndIOp(lhs=lhs, rhs=rhs):
                tops = [high for low, high in (self.of(lhs), self.of(rhs)) if low >= 0]
                return (0, min(tops)) if tops else None
            case arith.ShRSIOp(lhs=lhs, rhs=rhs) | arith.ShRUIOp(lhs=lhs, rhs=rhs):
                (low, high), (least, most) = self.of(lhs), self.of(rhs)
                fits = low >= 0 and 0 <= least and most < _bits(value)
                return (low >> most, high >> least) if fits else None
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() as op:
                return bounds(ARITHMETIC[type(op)], [self.of(op.lhs), self.of(op.rhs)])
            case _:
                return None


def _bits(value: SSAValue) -> int:
    assert isinstance(value.type, IntegerType)
    return value.type.width.data


def _whole(value: SSAValue) -> Interval:
    bits = _bits(value)
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _wide(value: SSAValue, intervals: Intervals) -> SSAValue | None:
    """A narrow integer in 32 bits; None if that would be more than a conversion of what is there."""
    op = value.owner
    if not isinstance(op, Operation) or not intervals.exact(op):
        return None
    build = Builder(InsertPoint.before(op))
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return build.insert(arith.ConstantOp(IntegerAttr(op.value.value.data, i32))).result
    if isinstance(op, arith.TruncIOp) and op.input.type == i32:
        return op.input
    if type(op) not in ARITHMETIC:
        return None
    sides = [wide for side in op.operands if (wide := _wide(side, intervals)) is not None]
    if len(sides) < len(op.operands):
        return None
    wide = build.insert(type(op).create(operands=sides, result_types=[i32]))
    wide.results[0].name_hint = value.name_hint
    return wide.results[0]


@dataclass(frozen=True)
class WidenIntegersPass(ModulePass):
    """Needs kernels as `scf` functions."""

    name = "widen-integers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every conversion of every kernel."""
        for function in kernels_of(op):
            intervals, done = Intervals(), 0
            found = [
                each
                for each in ops_of(function, arith.SIToFPOp)
                if each.input.type in (IntegerType(8), IntegerType(16))
            ]
            for each in found:
                if (wide := _wide(each.input, intervals)) is not None:
                    each.operands[0] = wide
                    done += 1
            declined = "what is converted is only read, or may wrap" if found else "no float comes of one"
            said = counted(done, "conversion") if done else declined
            record(self.name, function.sym_name.data, done > 0, said, function)
