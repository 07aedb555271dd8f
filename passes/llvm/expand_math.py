"""`expand-math`: rewrites what LLVM has no good instruction for, to calls and to `arith`.

    %e = math.exp %x : f32        becomes        %e = func.call @deplo_exp_f32(%x) : (f32) -> f32

* elementary functions: a call of a function of the library `codegen/math`, which LLVM inlines and vectorises,
  or of the C library where that has none (`math_functions.py`); rsqrt is 1 / sqrt.
* erf and tanh of f32 that are added to 1, as in GELU: a function for the sum, accurate where it is nearly 0.
* conversions from and to f16 and bf16: through f32 (`narrow_floats.py`).
* float to integer: NaN and what does not fit become the smallest integer first, as x86 and so PyTorch do.
* integer division: by zero gives zero (a `kernel.assert` has stopped the program by then), the smallest
  integer by -1 wraps; the machine's own instruction would end the process on both.

Every other operation passes through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float32Type,
    FloatAttr,
    FloatTF32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    f32,
    i32,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in
from ...dialects.syntax import scalar_attr
from ...errors import DeploError
from ...machine.targets import get_cpu
from ..decisions import record
from . import integer_division, math_functions
from .bf16_nans import has_short_nans
from .math_builder import MathBuilder
from .narrow_floats import NARROW, narrow, widen

_DIVISIONS: dict[type[Operation], Callable[[MathBuilder, SSAValue, SSAValue], SSAValue]] = {
    arith.DivSIOp: integer_division.truncdiv,
    arith.RemSIOp: integer_division.remainder,
    arith.FloorDivSIOp: integer_division.floordiv,
}


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Needs nothing; leaves operations that `convert-to-llvm` knows."""

    name = "expand-math"

    target: str = "cpu"
    scales: bool | None = None
    """Whether to scale by an instruction; by default, whether the target has a fast one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand the operations of every function with a body."""
        scales = get_cpu(self.target).scales if self.scales is None else self.scales
        for function in list(op.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                expanded = _expand_function(function, scales)
                if expanded:
                    listed = ", ".join(f"{n} {name}" for name, n in sorted(expanded.items()))
                    reason = f"expanded {listed}"
                elif any(op.name.startswith(("arith.", "math.")) for op in ops_in(function)):
                    reason = "every operation has an instruction of its own"
                else:
                    reason = "it has no operation of arith or math"
                record(self.name, function.sym_name.data, bool(expanded), reason, function)


def _expand_function(function: func.FuncOp, scales: bool) -> Counter[str]:
    expanded: Counter[str] = Counter()
    ops = ops_in(function.body)
    short = {op for op in ops if _rounds_to_bfloat(op) and has_short_nans(op.operands[0])}
    for op in ops:
        replacement = _expand(op, scales, op in short)
        if replacement is None:
            continue
        expanded[op.name] += 1
        (result,) = op.results
        if replacement.name_hint is None:
            replacement.name_hint = result.name_hint
        result.replace_all_uses_with(replacement)
        op.detach()
        op.erase()
    return expanded


def _rounds_to_bfloat(op: Operation) -> bool:
    return isinstance(op, arith.TruncFOp) and isinstance(op.result.type, BFloat16Type)


def _expand(op: Operation, scales: bool, short_nans: bool) -> SSAValue | None:
    """Insert what stands for `op` before it, or None if it stays."""
    kind = type(op)
    if kind is math.RsqrtOp:
        return _rsqrt(op)
    if kind is math.PowFOp and (power := _small_power(op)) is not None:
        return power
    if (name := math_functions.name_of(op, scales=scales)) is not None:
        return math_functions.call_in_place(op, name)
    if kind in _DIVISIONS and not isinstance(op.operands[0].type, IndexType):
        return _divide(op)
    if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, BFloat16Type):
        return _bfloat_constant(op)
    return _expand_conversion(op, short_nans)


def _rsqrt(op: Operation) -> SSAValue:
    m = MathBuilder(op)
    root = m.insert(math.SqrtOp(op.operands[0]))
    one = m.insert(arith.ConstantOp(scalar_attr(1.0, root.type)))
    return m.div(one, root)


def _small_power(op: Operation) -> SSAValue | None:
    """x, x * x or x * x * x if the exponent is that constant."""
    base, exponent = op.operands
    constant = exponent.owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, FloatAttr):
        return None
    value = constant.value.value.data
    if value not in (1.0, 2.0, 3.0):
        return None
    m = MathBuilder(op)
    product = base
    for _ in range(int(value) - 1):
        product = m.mul(product, base)
    return product


def _divide(op: Operation) -> SSAValue | None:
    """A division whose divisor is not a constant that the machine divides by safely."""
    divisor = op.operands[1].owner
    if isinstance(divisor, arith.ConstantOp) and isinstance(divisor.value, IntegerAttr):
        safe = divisor.value.value.data not in (0, -1)
        if safe and not isinstance(op, arith.FloorDivSIOp):
            return None
    return _DIVISIONS[type(op)](MathBuilder(op), op.operands[0], op.operands[1])


def _bfloat_constant(op: arith.ConstantOp) -> SSAValue:
    m = MathBuilder(op)
    assert isinstance(op.value, FloatAttr)
    wide = m.insert(arith.ConstantOp(FloatAttr(op.value.value.data, f32)))
    return narrow(m, wide, op.result.type)


def _expand_conversion(op: Operation, short_nans: bool) -> SSAValue | None:
    if len(op.operands) != 1 or len(op.results) != 1:
        return None
    value, target = op.operands[0], op.results[0].type
    if isinstance(target, FloatTF32Type):
        raise DeploError("expand-math: tf32 is what tensor cores multiply, of which a CPU has none")
    m = MathBuilder(op)
    match op:
        case arith.ExtFOp() if isinstance(value.type, NARROW):
            if isinstance(target, Float32Type):
                return widen(m, value) if isinstance(value.type, BFloat16Type) else None
            return m.insert(arith.ExtFOp(widen(m, value), target))  # pyright: ignore[reportArgumentType]
        case arith.TruncFOp() if isinstance(target, NARROW):
            direct = not isinstance(target, BFloat16Type) and isinstance(value.type, Float32Type)
            return None if direct else narrow(m, value, target, short_nans=short_nans)
        case arith.SIToFPOp() | arith.UIToFPOp() if isinstance(target, NARROW):
            return narrow(m, m.insert(type(op)(value, f32)), target, short_nans=True)
        case arith.FPToSIOp():
            return _to_integer(m, op)
        case _:
            return None


def _to_integer(m: MathBuilder, op: arith.FPToSIOp) -> SSAValue:
    """Where the value does not fit, the smallest integer; fewer than 32 bits are cut off from 32."""
    value, target = op.input, op.result.type
    assert isinstance(target, IntegerType)
    if isinstance(value.type, NARROW):
        value = widen(m, value)
    width = max(target.bitwidth, i32.bitwidth)
    wide = IntegerType(width)
    limit = 2.0 ** (width - 1)
    low, high = (m.insert(arith.ConstantOp(scalar_attr(n, value.type))) for n in (-limit, limit))
    # What is -limit or little below it becomes -limit either way.
    safe = m.select(m.test(m.abs(value), "olt", high), value, low)
    converted = m.insert(arith.FPToSIOp(safe, wide))
    return converted if width == target.bitwidth else m.insert(arith.TruncIOp(converted, target))
