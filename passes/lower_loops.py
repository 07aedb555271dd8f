"""From counted loops with named combiners to `scf`: shared by the lowerings to the CPU and to GPUs.

    %sum = loop.for %k = 0 to 8 reduce(add) -> f32 {
      %v = loop.load %x[%i, %k] : memref<4x8xf32>
      loop.yield %v : f32
    }

becomes

    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = loop.load %x[%i, %k] : memref<4x8xf32>
      %next = arith.addf %acc, %v : f32
      scf.yield %next : f32
    }

One with a limit ends there: `scf.for %k = %c0 to %end`, the lesser of limit and extent.

Where the body of a loop that folds weights is marked as `rising`, it computes them for the largest exponent
of all iterations so far: what there is so far is scaled, and nothing of what is new.

A loop marked as a `chunk` of the one around it goes on with the sum so far, so the outer one adds nothing.

`loop.checked_index` becomes a comparison, a `kernel.assert` and an index that is safe to use.
`loop.assert` becomes `kernel.assert`, `loop.accumulate` becomes `kernel.atomic_add`.
Loads, stores and index expressions stay affine for whoever turns them into addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, MemRefType, i64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineSymExpr
from xdsl.rewriter import InsertPoint

from ..analysis.index import always_holds, operand_ranges
from ..analysis.vectors import walks_along
from ..dialects.kernel import AssertOp, AtomicAddOp
from ..dialects.loop import AccumulateOp, CheckedIndexOp, ForOp, IndexOp, LoadOp
from ..dialects.loop import AssertOp as LoopAssertOp
from ..dialects.scalars import Combiner, identity, is_bool, is_weighted, weighted_groups
from ..dialects.sizes import Extent, Size, extent_expr, shape_of
from ..dialects.syntax import scalar_attr
from .replacing import replace
from .weighted import combine_weighted, keep_weighted

INDEX = IndexType()

_FLOAT_COMBINERS: dict[Combiner, type[arith.FloatingPointLikeBinaryOperation]] = {
    Combiner.ADD: arith.AddfOp,
    Combiner.MUL: arith.MulfOp,
    Combiner.MAX: arith.MaximumfOp,
    Combiner.MIN: arith.MinimumfOp,
}

_INTEGER_COMBINERS: dict[Combiner, type[arith.SignlessIntegerBinaryOperation]] = {
    Combiner.ADD: arith.AddiOp,
    Combiner.MUL: arith.MuliOp,
    Combiner.MAX: arith.MaxSIOp,
    Combiner.MIN: arith.MinSIOp,
    Combiner.ANY: arith.OrIOp,
    Combiner.ALL: arith.AndIOp,
}

EXTREMA = (Combiner.MAX, Combiner.MIN)
"""What may be folded in any order wherever its operands lie: nothing is rounded."""


def combine(
    builder: Builder,
    combiner: Combiner,
    a: SSAValue,
    b: SSAValue,
    flags: arith.FastMathFlagsAttr | None = None,
) -> SSAValue:
    """Insert `a combiner b`; a NaN on either side of max or min gives NaN.

    `flags` are those of a float operation.
    """
    if isinstance(a.type, IntegerType):
        return builder.insert(_INTEGER_COMBINERS[combiner](a, b)).result
    return builder.insert(_FLOAT_COMBINERS[combiner](a, b, flags)).result


def identity_constant(builder: Builder, combiner: Combiner, element: Attribute) -> SSAValue:
    """Insert the constant of type `element` that leaves any value unchanged under `combiner`."""
    return builder.insert(arith.ConstantOp(_identity_attr(combiner, element))).result


def _identity_attr(combiner: Combiner, element: Attribute) -> IntegerAttr | FloatAttr:
    return scalar_attr(identity(combiner, element), element)


class IndexConstants:
    """What is known when a function starts, constants and sizes: each made once, in its entry block."""

    def __init__(self, entry: Block):
        self._entry = entry
        self._known: dict[Extent, SSAValue] = {}
        self._last: Operation | None = None

    def get(self, value: Extent) -> SSAValue:
        """The SSA value of the index `value`."""
        if value not in self._known:
            constant = _index_value(value)
            self.insert(constant)
            self._known[value] = constant.result
        return self._known[value]

    def insert(self, op: Operation) -> None:
        """Insert an operation after those made before."""
        if self._last is None:
            point = InsertPoint.at_start(self._entry)
        else:
            point = InsertPoint.after(self._last)
        Builder(point).insert(op)
        self._last = op


def _index_value(value: Extent) -> arith.ConstantOp | IndexOp:
    op: arith.ConstantOp | IndexOp
    if isinstance(value, Size):
        op = IndexOp(value.expr, [])
        op.result.name_hint = str(value) if isinstance(value.expr, AffineSymExpr) else "extent"
    else:
        op = arith.ConstantOp(IntegerAttr(value, INDEX))
        op.result.name_hint = f"c{value}" if value >= 0 else f"cm{-value}"
    return op


def lower_loops(
    entry: Block, constants: IndexConstants | None = None, *, reassociate: bool = False
) -> None:
    """Rewrite the loops and checks in `entry` and in the regions below it.

    Index constants go to the start of `entry`; pass `constants` to share those made before.
    With `reassociate`, who compiles the loops may fold contributions in another order where a
    reduction walks along its operands in memory.
    """
    flags = arith.FastMathFlagsAttr((FastMathFlag.REASSOC,)) if reassociate else None
    _lower_block(entry, constants or IndexConstants(entry), flags)


def _lower_block(
    block: Block, constants: IndexConstants, flags: arith.FastMathFlagsAttr | None
) -> None:
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _lower_block(inner, constants, flags)
        if isinstance(op, ForOp):
            _lower_for(op, constants, flags)
        elif isinstance(op, CheckedIndexOp):
            _lower_checked_index(op, constants)
        elif isinstance(op, LoopAssertOp):
            replace(op, AssertOp(op.condition, op.message.data))
        elif isinstance(op, AccumulateOp):
            index = (op.map.data.results, list(op.indices))
            replace(op, AtomicAddOp(op.value, op.memref, index))


def _lower_for(op: ForOp, constants: IndexConstants, flags: arith.FastMathFlagsAttr | None) -> None:
    before = Builder(InsertPoint.before(op))
    if not _is_chunk(op):
        op.attributes.pop(CHUNK, None)
    extent = _end(op, before, constants)
    in_any_order = flags if _walks_contiguously(op) else None
    combiners = [combiner.data for combiner in op.combiners]
    start = [identity_constant(before, c, r.type) for c, r in zip(combiners, op.res, strict=True)]
    body = op.detach_region(op.body)
    each = [flags if c in EXTREMA else in_any_order for c in combiners]
    _fold_contributions(op, body.block, combiners, each)
    loop = scf.ForOp(constants.get(0), extent, constants.get(1), start, body)
    replace(op, loop)


def _end(op: ForOp, before: Builder, constants: IndexConstants) -> SSAValue:
    """Where a loop ends: at its extent, or at a limit before it."""
    extent = constants.get(op.extent.data)
    if op.limit is None:
        return extent
    end = before.insert(IndexOp(op.limit, op.limit_operands)).result
    end.name_hint = "end"
    left = extent_expr(op.extent.data) + op.limit * -1
    if always_holds(left, operand_ranges(op.limit_operands)):
        return end
    return before.insert(arith.MinSIOp(end, extent)).result


def _walks_contiguously(op: ForOp) -> bool:
    """Whether consecutive iterations load neighbours, be it in different rows, if not the same element.

    Only then can the iterations of one reduction make a vector; else its neighbours may.
    """
    for load in op.walk():
        if isinstance(load, LoadOp) and op.induction_var in load.indices:
            dim = list(load.indices).index(op.induction_var)
            assert isinstance(load.memref.type, MemRefType)
            extents = shape_of(load.memref.type)
            # An axis of one element does not keep those of the axis before it apart.
            last = max((i for i, extent in enumerate(extents) if extent != 1), default=0)
            outer = any(dim in expr.used_dims() for expr in load.map.data.results[:last])
            if outer and not walks_along(load, op.induction_var):
                return False
    return True


def _fold_contributions(
    op: ForOp,
    block: Block,
    combiners: list[Combiner],
    flags: Sequence[arith.FastMathFlagsAttr | None],
) -> None:
    """Give `block` one accumulator per result and make it yield them, contributions folded in."""
    terminator = block.last_op
    assert terminator is not None
    builder = Builder(InsertPoint.before(terminator))
    if (nested := _chunk_in(block)) is not None:
        _continue_in(nested, op, block)
        return
    accumulators: list[SSAValue] = []
    for result in op.res:
        accumulators.append(block.insert_arg(result.type, len(block.args)))
        accumulators[-1].name_hint = f"{result.name_hint}_so_far" if result.name_hint else "acc"
    contributions = list(terminator.operands)
    if is_weighted(combiners):
        marked = op.attributes.pop(RISING, None) is not None
        fold = _go_on if marked and _can_rise(block, combiners) else combine_weighted
        folded = [
            value
            for group in weighted_groups(combiners)
            for value in fold(builder, combiners[group], accumulators[group], contributions[group])
        ]
    else:
        folds = zip(combiners, accumulators, contributions, flags, strict=True)
        folded = [combine(builder, *each) for each in folds]
    for result, value in zip(op.res, folded, strict=True):
        hint = result.name_hint
        value.name_hint = f"{hint}_next" if hint else "next"
    end = scf.YieldOp(*folded)
    end.location = terminator.location
    builder.insert(end)
    terminator.detach()
    terminator.erase()


RISING = "rising"
"""Marks a loop that folds weights, whose body may compute them for a larger exponent than it yields."""


def _can_rise(block: Block, combiners: Sequence[Combiner]) -> bool:
    """Whether all exponents that a body yields are computed in it, and no value is a mean."""
    assert block.last_op is not None
    exponents = [block.last_op.operands[group][0] for group in weighted_groups(combiners)]
    own = all(isinstance(e.owner, Operation) and e.owner.parent is block for e in exponents)
    return own and Combiner.MEAN not in combiners


def _go_on(
    builder: Builder,
    combiners: Sequence[Combiner],
    so_far: Sequence[SSAValue],
    contribution: Sequence[SSAValue],
) -> list[SSAValue]:
    """Let a body compute its weights for the largest exponent of all so far; then they add to those, scaled.

    As soon as that is known what there is so far is scaled.
    """
    exponent = contribution[0]
    assert isinstance(exponent.owner, Operation)
    early = Builder(InsertPoint.after(exponent.owner))
    largest = early.insert(arith.MaximumfOp(so_far[0], exponent))
    exponent.replace_uses_with_if(largest.result, lambda use: use.operation is not largest)
    kept = keep_weighted(early, so_far, largest.result)
    sums = [
        builder.insert(arith.AddfOp(old, new)).result
        for old, new in zip(kept, contribution[1:], strict=True)
    ]
    return [largest.result, *sums]


CHUNK = "chunk"
"""Marks a reducing loop as a part of the one around it, which folds by the same combiners."""


def _is_chunk(op: ForOp) -> bool:
    """Whether what a marked loop gives is exactly what the loop around it folds, in the same way."""
    outer = op.parent_op()
    if CHUNK not in op.attributes or not isinstance(outer, ForOp):
        return False
    alone = all(result.uses.get_length() == 1 for result in op.res)
    return alone and list(outer.yielded) == list(op.res) and outer.combiners == op.combiners


def _chunk_in(block: Block) -> scf.ForOp | None:
    """The chunk in the body of a loop, if it is one loop over chunks."""
    for op in block.ops:
        if isinstance(op, scf.ForOp) and op.attributes.pop(CHUNK, None) is not None:
            return op
    return None


def _continue_in(nested: scf.ForOp, op: ForOp, block: Block) -> None:
    """Let a nested loop start from what the outer one has so far, instead of the identity."""
    terminator = block.last_op
    assert terminator is not None
    for position, result in enumerate(op.res):
        accumulator = block.insert_arg(result.type, len(block.args))
        accumulator.name_hint = f"{result.name_hint}_so_far" if result.name_hint else "acc"
        nested.operands[3 + position] = accumulator
    end = scf.YieldOp(*nested.res)
    end.location = terminator.location
    Builder(InsertPoint.before(terminator)).insert(end)
    terminator.detach()
    terminator.erase()


def _lower_checked_index(op: CheckedIndexOp, constants: IndexConstants) -> None:
    builder = Builder(InsertPoint.before(op))
    extent = op.extent.data
    wide = _as_i64(builder, op.value)
    if op.proven is not None:
        replace(op, arith.IndexCastOp(wide, INDEX))
        return
    if isinstance(extent, Size):
        limit = builder.insert(arith.IndexCastOp(constants.get(extent), i64)).result
    else:
        limit = builder.insert(arith.ConstantOp(IntegerAttr(extent, i64))).result
    # Read as unsigned, a negative value is above every extent.
    inside = builder.insert(arith.CmpiOp(wide, limit, "ult")).result
    check = AssertOp(inside, f"index out of range: expected 0 <= index < {extent}")
    check.location = op.location
    builder.insert(check)
    zero = builder.insert(arith.ConstantOp(IntegerAttr(0, i64))).result
    safe = builder.insert(arith.SelectOp(inside, wide, zero)).result
    replace(op, arith.IndexCastOp(safe, INDEX))


def _as_i64(builder: Builder, value: SSAValue) -> SSAValue:
    if value.type == i64:
        return value
    extend = arith.ExtUIOp if is_bool(value.type) else arith.ExtSIOp
    return builder.insert(extend(value, i64)).result
