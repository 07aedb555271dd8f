"""Which values of f32 have NaNs that fit bf16: their lower half is zero, so that rounding leaves them alone.

bf16 are widened to such ones, and what the machine makes of numbers (infinity - infinity) is one, too. An
operation that is given a NaN returns it, made quiet. Only what comes from elsewhere, as an f32 of an input
does, may be a NaN that carries into its sign when it is rounded like a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from xdsl.dialects import arith, llvm, math, memref, scf
from xdsl.dialects.builtin import BFloat16Type, Float32Type, FloatAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects.loop import LoadOp, StoreOp

_PASSING = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    math.AbsFOp,
    math.ErfOp,
    math.ExpOp,
    math.Exp2Op,
    math.FmaOp,
    math.RsqrtOp,
    math.SqrtOp,
    math.TanhOp,
)
"""Operations whose NaNs are those of their operands, or the machine's own."""


def has_short_nans(value: SSAValue) -> bool:
    """Whether each NaN that an f32 may be has zeros in its lower half; true for what is never NaN.

    It is proven by induction: what a loop carries is taken to have them until one of its sources has not.
    """
    seen: dict[SSAValue, None] = {value: None}
    waiting = [value]
    while waiting:
        sources = _sources(waiting.pop())
        if sources is None:
            return False
        for source in sources:
            if source not in seen:
                seen[source] = None
                waiting.append(source)
    return True


def _sources(value: SSAValue) -> Iterable[SSAValue] | None:
    """The values whose NaNs an f32 may be, or None where they are not known."""
    if not isinstance(value.type, Float32Type):
        return None
    if isinstance(value, BlockArgument):
        return _carried(value)
    op = value.owner
    assert isinstance(op, Operation)
    match op:
        case arith.ExtFOp() if isinstance(op.operands[0].type, BFloat16Type):
            return ()
        case arith.SIToFPOp() | arith.UIToFPOp():
            return ()
        case arith.ConstantOp():
            return (
                () if isinstance(op.value, FloatAttr) and not isnan(op.value.value.data) else None
            )
        case arith.SelectOp():
            return (op.lhs, op.rhs)
        case scf.ForOp() | scf.IfOp():
            return _results(op, op.results.index(value))
        case LoadOp():
            return _stored(op.memref)
        case llvm.InlineAsmOp() if not op.asm_string.data:  # hides a value from LLVM
            return op.operands
        case _:
            return op.operands if isinstance(op, _PASSING) else None


def _carried(value: BlockArgument) -> Iterable[SSAValue] | None:
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index == 0:
        return None
    return _results(loop, value.index - 1)


def _results(op: scf.ForOp | scf.IfOp, index: int) -> Iterable[SSAValue]:
    """What the result of that index is: a value that is yielded, or that a loop starts with."""
    ends = [region.block.last_op for region in op.regions if region.blocks]
    yielded = [end.operands[index] for end in ends if end is not None]
    return [*yielded, op.iter_args[index]] if isinstance(op, scf.ForOp) else yielded


def _stored(buffer: SSAValue) -> Iterable[SSAValue] | None:
    """What is stored in a scratch buffer."""
    if not isinstance(buffer.owner, memref.AllocOp):
        return None
    uses = [use.operation for use in buffer.uses]
    if not all(isinstance(op, LoadOp | StoreOp | memref.DeallocOp) for op in uses):
        return None
    return [op.value for op in uses if isinstance(op, StoreOp)]
