"""`block-sums`: a long sum of floats comes in blocks, each of which rounds a few times.

    %s = scf.for %j = %c0 to %c65536 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j]
      %next = arith.addf %so_far, %v fastmath<reassoc>
      scf.yield %next
    }
becomes, with vectors of 16 elements of which LLVM computes 4 at once,
    %w = scf.for %block = %c0 to %c65536 step %c1024 iter_args(%wide = %wide_zero) -> (f64) {
      %end = loop.index [%block + 1024]
      %t = scf.for %j = %block to %end step %c1 iter_args(%so_far = %zero) -> (f32) { ... as before ... }
      %t_wide = arith.extf %t : f32 to f64
      %next = arith.addf %wide, %t_wide
      scf.yield %next
    }
    %s = arith.truncf %w : f64 to f32

The error of a sum of n terms one after the other is up to n - 1 roundings of the sum of their sizes (Higham,
Accuracy and Stability of Numerical Algorithms, 4.2): of equal terms it is of that order, as all roundings in
a binade go the same way. In blocks it is that of a block, however long the sum is, since the f64 that blocks
are added up in has 29 bits more. Where a loop has others in it, or its terms do not lie side by side in
memory, so that LLVM makes no vectors of it, a sum of f32 has no blocks: it is itself kept in f64.

Declined are short sums, those that begin in the middle of a loop, and those of vectors, which are products.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, ModuleOp, f32, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import constant_of
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import IndexOp, LoadOp
from ...dialects.schedule import ScheduleAttr, schedule_of
from ..lower_loops import IndexConstants
from .kernel_loops import NOT_CONCERNED, change_loops, function_of

CHAIN = 16
"""Additions one after the other in a block: as many as eager does at least at each of its four levels
(`level_step` of `multi_row_sum` in ATen/native/cpu/SumKernel.cpp)."""

AT_ONCE = 4
"""Vectors, or numbers, that LLVM adds up side by side where it decides (measured on Zen 3, Zen 4 and
Sapphire Rapids; `MaxInterleaveFactor` of its x86 back end)."""

ONE_BY_ONE = CHAIN * AT_ONCE
"""Numbers of a block that LLVM adds up one by one, a few side by side."""

VECTOR_BITS = 512
"""Bits of the widest vector of f32 or f64 that a CPU of `CPUS` has, for kernels without a `width`."""


def sums_of(loop: scf.ForOp) -> list[arith.AddfOp | None]:
    """For each value that a loop carries, the addition of floats that makes the next one, if one does."""
    end = loop.body.block.last_op
    assert end is not None
    found: list[arith.AddfOp | None] = []
    for so_far, value in zip(loop.body.block.args[1:], end.operands, strict=True):
        op = value.owner
        is_sum = (
            isinstance(op, arith.AddfOp)
            and isinstance(so_far.type, Float32Type | Float64Type)
            and so_far in op.operands
            and so_far.has_one_use()
            and value.has_one_use()
            and op.parent is loop.body.block
        )
        found.append(op if is_sum else None)  # pyright: ignore[reportArgumentType]
    return found


def becomes_vectors(loop: scf.ForOp, sums: list[arith.AddfOp | None]) -> bool:
    """Whether LLVM may make vectors of an innermost loop: its terms lie side by side in memory."""
    if not all(op is None or FastMathFlag.REASSOC in op.fastmath.data for op in sums):
        return False
    loads = ops_of(loop.body, LoadOp)
    computed = {v.owner for op in loads for v in op.indices if isinstance(v, OpResult)}
    return not any(loop.is_ancestor(op) and not isinstance(op, IndexOp) for op in computed)


def block_size(schedule: ScheduleAttr, element: Attribute) -> int:
    """Elements of a block, each sum of which LLVM makes in as many parts as it adds up at once."""
    bits = schedule.get("width") or VECTOR_BITS
    lanes = bits // (32 if element == f32 else 64)
    return CHAIN * lanes * (schedule.get("interleave") or AT_ONCE)


def is_long(loop: scf.ForOp) -> bool:
    """Whether a loop has more iterations than a sum of f32 is added up in one by one."""
    length = constant_of(loop.ub)
    return length is None or length > ONE_BY_ONE


def carry_wide(loop: scf.ForOp) -> None:
    """Replace a loop by one that carries its sums of f32, if it has any, as f64."""
    before, block, sums = Builder(InsertPoint.before(loop)), loop.body.block, sums_of(loop)
    if not any(op and op.result.type == f32 for op in sums):
        return
    starts: list[SSAValue] = []
    for start, so_far, op in zip(loop.iter_args, block.args[1:], sums, strict=True):
        if op is None or so_far.type != f32:
            starts.append(start)
            continue
        starts.append(before.insert(arith.ExtFOp(start, f64)).result)
        term = op.rhs if op.lhs is so_far else op.lhs
        wide = block.insert_arg(f64, so_far.index)
        wide.name_hint = so_far.name_hint
        here = Builder(InsertPoint.before(op))
        longer = here.insert(arith.ExtFOp(term, f64)).result
        total = here.insert(arith.AddfOp(wide, longer, op.fastmath)).result
        total.name_hint = op.result.name_hint
        end = block.last_op
        assert end is not None
        end.operands[so_far.index - 2] = total
        op.detach()
        op.erase()
        block.erase_arg(so_far)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, loop.detach_region(loop.body))
    before.insert(made)
    _replace(before, loop, made)


def _replace(builder: Builder, loop: scf.ForOp, made: scf.ForOp) -> None:
    """Put a loop that carries some values as f64 in the place of one, both of which stand there."""
    made.location = loop.location
    for old, new in zip(loop.res, made.res, strict=True):
        new.name_hint = old.name_hint
        value: SSAValue = new
        if new.type != old.type:
            value = builder.insert(arith.TruncFOp(new, f32)).result
            value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    loop.detach()
    loop.erase()


def in_blocks(
    loop: scf.ForOp, sums: list[arith.AddfOp | None], size: int, constants: IndexConstants
) -> None:
    """Replace a loop by one over blocks of `size` iterations, whose sums begin anew and are added up."""
    before = Builder(InsertPoint.before(loop))
    types = [v.type if op is None else f64 for v, op in zip(loop.iter_args, sums, strict=True)]
    body = Block(arg_types=[loop.lb.type, *types])
    body.args[0].name_hint = "block"
    inner = Builder(InsertPoint.at_end(body))
    end = inner.insert(IndexOp(AffineExpr.dimension(0) + size, [body.args[0]])).result
    length = constant_of(loop.ub)
    if length is None or length % size:
        end = inner.insert(arith.MinSIOp(end, loop.ub)).result
    starts: list[SSAValue] = []
    wide: list[SSAValue] = []
    for start, so_far, op in zip(loop.iter_args, body.args[1:], sums, strict=True):
        if op is None:
            starts.append(so_far)
            wide.append(start)
            continue
        starts.append(before.insert(arith.ConstantOp(FloatAttr(0.0, start.type))).result)  # pyright: ignore
        wide.append(start if start.type == f64 else before.insert(arith.ExtFOp(start, f64)).result)
    part = scf.ForOp(body.args[0], end, loop.step, starts, loop.detach_region(loop.body))
    part.location = loop.location
    inner.insert(part)
    folded: list[SSAValue] = []
    for so_far, value, op in zip(body.args[1:], part.res, sums, strict=True):
        if op is None:
            folded.append(value)
            continue
        longer = value if value.type == f64 else inner.insert(arith.ExtFOp(value, f64)).result
        folded.append(inner.insert(arith.AddfOp(so_far, longer, op.fastmath)).result)
    inner.insert(scf.YieldOp(*folded))
    made = scf.ForOp(loop.lb, loop.ub, constants.get(size), wide, body)
    before.insert(made)
    _replace(before, loop, made)


def even_size(length: int | None, size: int) -> int:
    """A block's size of at most `size`, and more than half of it, that divides a known length best."""
    if length is None:
        return size
    sizes = range(size, size // 2, -16)
    return next((n for n in sizes if length % n == 0), size)


def _change(loop: scf.ForOp) -> str | None:
    """Make blocks of a loop, or have it carry f64; gives None, or why not."""
    sums = sums_of(loop) if loop.res else []
    if not any(sums):
        return NOT_CONCERNED
    start, length = constant_of(loop.lb), constant_of(loop.ub)
    if start != 0 or constant_of(loop.step) != 1:
        return "it does not go one by one from 0 on"
    function = function_of(loop)
    is_inner = not any(isinstance(op, scf.ForOp) for op in ops_in(loop.body))
    if is_inner and becomes_vectors(loop, sums):
        element = next(v.type for v, op in zip(loop.iter_args, sums, strict=True) if op)
        size = block_size(schedule_of(function), element)
        least = 2 * size
    elif any(op and op.result.type == f32 for op in sums):
        size, least = None, ONE_BY_ONE + 1
    else:
        size, least = ONE_BY_ONE, 2 * ONE_BY_ONE
    if length is not None and length < least:
        return f"its {length} additions are few"
    if size is None:
        carry_wide(loop)
    else:
        in_blocks(loop, sums, even_size(length, size), IndexConstants(function.body.block))
    return None


@dataclass(frozen=True)
class BlockSumsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves sums in blocks, or in f64."""

    name = "block-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every loop of every kernel, inner ones first."""
        change_loops(self.name, op, _change, inner_first=True, none="nothing is added up")
