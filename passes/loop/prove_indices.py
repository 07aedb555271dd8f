"""`prove-indices`: an index from data that cannot be outside its axis is not checked when the program runs.

    %a = arith.maxsi %id, %zero : i64
    %b = arith.minsi %a, %last : i64                    // 99
    %r = loop.checked_index %b below 100 : i64
becomes
    %r = loop.checked_index %b below 100 proven : i64

One that is counted, as places along an axis are, comes from no data then:
    %p = arith.index_cast %i : index to i64
    %r = loop.checked_index %p below 100 : i64
    %v = loop.load %x[%r]
becomes `%v = loop.load %x[%i]`.

What an integer can be follows from the constants, counters and sizes that it is computed from, in its kernel
and in those before it; what it may be at most may be a size. Loops without checks become vectors. Works on
loop IR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, Signedness, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import known_extent, value_range
from ...dialects.allowed_sizes import allowed_at, allowing
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import CheckedIndexOp, KernelOp, LoadOp, StoreOp
from ...dialects.sizes import Extent, Size, is_at_most
from ...index.ranges import numbers
from ..decisions import record
from ..tile.rewrite_indices import rewrite_index


@dataclass(frozen=True)
class _Limits:
    """What an integer can be: from `low` to `high`, and at most each of the sizes."""

    low: int
    high: int
    sizes: frozenset[Size] = frozenset()

    def is_below(self, extent: Extent) -> bool:
        """Whether it is an index of an axis of `extent`."""
        return self.low >= 0 and any(
            is_at_most(most + 1, extent) for most in (self.high, *self.sizes)
        )


def _any_of(left: _Limits, right: _Limits) -> _Limits:
    low, high = min(left.low, right.low), max(left.high, right.high)
    return _Limits(low, high, left.sizes & right.sizes)


def _smaller(left: _Limits, right: _Limits) -> _Limits:
    low, high = min(left.low, right.low), min(left.high, right.high)
    return _Limits(low, high, left.sizes | right.sizes)


def _larger(left: _Limits, right: _Limits) -> _Limits:
    low, high = max(left.low, right.low), max(left.high, right.high)
    return _Limits(low, high, left.sizes & right.sizes)


def _product(left: _Limits, right: _Limits) -> _Limits:
    ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _Limits(min(ends), max(ends))


def _shifted(left: _Limits, right: _Limits) -> _Limits:
    places = [max(0, min(each, 64)) for each in (right.low, right.high)]
    ends = [a >> b for a in (left.low, left.high) for b in places]
    return _Limits(min(ends), max(ends))


def _selected(condition: _Limits, left: _Limits, right: _Limits) -> _Limits:
    if condition.low == condition.high:
        return left if condition.low else right
    return _any_of(left, right)


_TRUE, _FALSE, _EITHER = _Limits(-1, -1), _Limits(0, 0), _Limits(-1, 0)
"""What a bit is, which is read as signed."""


def _compared(op: arith.CmpiOp, left: _Limits, right: _Limits) -> _Limits:
    """Whether a signed comparison holds, as far as it is known."""
    match arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]:
        case "slt":
            return _is_less(left, right)
        case "sge":
            return _negated(_is_less(left, right))
        case "sgt":
            return _is_less(right, left)
        case "sle":
            return _negated(_is_less(right, left))
        case _:
            return _EITHER


def _is_less(left: _Limits, right: _Limits) -> _Limits:
    if left.high < right.low:
        return _TRUE
    return _FALSE if left.low >= right.high else _EITHER


def _negated(bit: _Limits) -> _Limits:
    return _Limits(-1 - bit.high, -1 - bit.low)


RULES: Mapping[type[Operation], Callable[..., _Limits]] = {
    arith.AddiOp: lambda a, b: _Limits(a.low + b.low, a.high + b.high),
    arith.SubiOp: lambda a, b: _Limits(a.low - b.high, a.high - b.low),
    arith.MuliOp: _product,
    arith.MinSIOp: _smaller,
    arith.MaxSIOp: _larger,
    arith.ShRSIOp: _shifted,
    arith.SelectOp: _selected,
    arith.TruncIOp: lambda a: a,
}
"""What the results of operations can be, from what their operands can be."""


def _of_type(type: IntegerType) -> _Limits:
    """Any number of a type, read as signed unless it says otherwise."""
    width, signed = type.width.data, type.signedness.data is not Signedness.UNSIGNED
    return (
        _Limits(-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else _Limits(0, 2**width - 1)
    )


def _limits(value: SSAValue, known: Mapping[SSAValue, _Limits]) -> _Limits | None:
    """What an integer can be; `known` has what it is computed from."""
    if not isinstance(value.type, IntegerType):
        return None
    any_, op = _of_type(value.type), value.owner
    match op:
        case arith.ConstantOp(value=IntegerAttr() as number):
            found = _Limits(number.value.data, number.value.data)
        case arith.ExtSIOp(input=narrow):
            found = known.get(narrow, any_)
        case arith.ExtUIOp(input=narrow):
            assert isinstance(narrow.type, IntegerType)
            found = known.get(narrow, any_)
            if found.low < 0:
                found = _Limits(0, 2**narrow.type.width.data - 1)
        case arith.IndexCastOp(input=index):
            low, high = numbers(value_range(index))
            size = known_extent(index)
            found = _Limits(low, high, frozenset([size] if isinstance(size, Size) else []))
        case LoadOp(memref=memref):
            found = known.get(memref, any_)
        case arith.CmpiOp(lhs=left, rhs=right) if left in known and right in known:
            found = _compared(op, known[left], known[right])
        case Operation() if type(op) in RULES:
            parts = [known.get(operand) for operand in op.operands]
            if None in parts:
                return any_
            found = RULES[type(op)](*parts)
        case _:
            return any_
    # what does not fit wraps around
    return found if any_.low <= found.low and found.high <= any_.high else any_


def _counted(
    value: SSAValue, known: Mapping[SSAValue, _Limits], counters: list[SSAValue]
) -> AffineExpr | None:
    """An integer that never wraps around as an expression of indices, which are added to `counters`."""
    assert isinstance(value.type, IntegerType)
    if known.get(value) in (None, _of_type(value.type)):
        return None
    match value.owner:
        case arith.IndexCastOp(input=index):
            counters.append(index)
            return AffineExpr.dimension(len(counters) - 1)
        case arith.ConstantOp(value=IntegerAttr() as number):
            return AffineExpr.constant(number.value.data)
        case arith.SelectOp(cond=condition, lhs=left, rhs=right):
            bit = known[condition]
            chosen = left if bit.low else right
            return _counted(chosen, known, counters) if bit.low == bit.high else None
        case arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner):
            return _counted(inner, known, counters)
        case arith.AddiOp() | arith.SubiOp() as op:
            parts = [_counted(each, known, counters) for each in op.operands]
            if parts[0] is None or parts[1] is None:
                return None
            return parts[0] + parts[1] * (1 if isinstance(op, arith.AddiOp) else -1)
        case _:
            return None


def _take_counted(op: CheckedIndexOp, known: Mapping[SSAValue, _Limits]) -> None:
    """Let what reads an index that is surely inside read the counters it is made of, if it is made of any."""
    counters: list[SSAValue] = []
    place = _counted(op.value, known, counters)
    if place is None:
        return
    for user in dict.fromkeys(use.operation for use in op.result.uses):
        rewrite_index(user, {op.result: place}, counters)
    op.detach()
    op.erase()


def prove_kernel(kernel: KernelOp, known: dict[SSAValue, _Limits]) -> tuple[int, int]:
    """Mark the indices of a kernel that are surely inside; gives how many, and how many there are.

    `known` has what the elements of tensors before the kernel can be, and gets those of its results.
    """
    for value, argument in zip(kernel.inputs, kernel.input_args, strict=True):
        if value in known:
            known[argument] = known[value]
    proven, count = list[CheckedIndexOp](), 0
    for op in ops_in(kernel):
        for result in op.results:
            if (found := _limits(result, known)) is not None:
                known[result] = found
        if isinstance(op, CheckedIndexOp):
            count += 1
            if op.value in known and known[op.value].is_below(op.extent.data):
                op.proven = UnitAttr()
                proven.append(op)
    for value, argument in zip(kernel.outputs, kernel.output_args, strict=True):
        stores = [use.operation for use in argument.uses]
        limits = [known[o.value] for o in stores if isinstance(o, StoreOp) and o.value in known]
        if limits and len(limits) == len(stores):
            known[value] = reduce(_any_of, limits)
    for op in proven:
        _take_counted(op, known)
    return len(proven), count


@dataclass(frozen=True)
class ProveIndicesPass(ModulePass):
    """Mark the indices from data that need no check."""

    name = "prove-indices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with allowing(allowed_at(op)):
            known: dict[SSAValue, _Limits] = {}
            for kernel in ops_of(op, KernelOp):
                proven, count = prove_kernel(kernel, known)
                if count:
                    reason = f"{proven} of {count} indices from data are surely inside"
                    record(self.name, kernel.sym_name.data, proven > 0, reason, kernel)
