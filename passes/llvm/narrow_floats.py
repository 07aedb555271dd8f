"""Conversions of f16 and bf16, which are storage only: through f32, rounded once.

LLVM converts between f32 and f16; bf16 is the upper half of an f32's bits, so integer arithmetic converts
it. From f64 the way to f32 rounds to odd: then rounding again, to nearest, gives what rounding once
would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, f32, i16, i32
from xdsl.ir import Attribute, SSAValue

from .math_builder import MathBuilder

NARROW = (Float16Type, BFloat16Type)

_HALF = 16
_QUIET_NAN = 0x7FC0


def widen(m: MathBuilder, value: SSAValue) -> SSAValue:
    """An f16 or bf16 value as f32, exactly."""
    if not isinstance(value.type, BFloat16Type):
        return m.insert(arith.ExtFOp(value, f32))
    bits = m.insert(arith.ExtUIOp(m.insert(arith.BitcastOp(value, i16)), i32))
    return m.from_bits(m.insert(arith.ShLIOp(bits, m.int(_HALF))))


def narrow(
    m: MathBuilder, value: SSAValue, target: Attribute, *, short_nans: bool = False
) -> SSAValue:
    """An f32 or f64 value as `target` (f16 or bf16), to nearest, ties to even.

    With `short_nans`, a NaN of `value` has zeros in its lower half: its upper half is the result.
    """
    if isinstance(value.type, Float64Type):
        value = _round_to_odd(m, value)
    if not isinstance(target, BFloat16Type):
        assert isinstance(target, Float16Type)
        return m.insert(arith.TruncFOp(value, target))
    bits = m.bits(value)
    last = m.insert(arith.AndIOp(bits, m.int(1 << _HALF)))
    is_odd = m.test_int(last, "ne", m.int(0))
    up = m.insert(arith.AddiOp(bits, m.select(is_odd, m.int(0x8000), m.int(0x7FFF))))
    rounded = m.insert(arith.ShRUIOp(up, m.int(_HALF)))
    if not short_nans:
        rounded = m.select(m.test(value, "uno", value), m.int(_QUIET_NAN), rounded)
    return m.insert(arith.BitcastOp(m.insert(arith.TruncIOp(rounded, i16)), target))


def _round_to_odd(m: MathBuilder, value: SSAValue) -> SSAValue:
    """An f64 as an f32: exact values stay, others go to the neighbour whose last bit is 1."""
    nearest = m.insert(arith.TruncFOp(value, f32))
    back = m.insert(arith.ExtFOp(nearest, value.type))  # pyright: ignore[reportArgumentType]
    inexact = m.test(back, "one", value)
    bits = m.bits(nearest)
    is_even = m.test_int(m.insert(arith.AndIOp(bits, m.int(1))), "eq", m.int(0))
    too_far = m.test(m.abs(back), "ogt", m.abs(value))
    other = m.insert(arith.AddiOp(bits, m.select(too_far, m.int(-1), m.int(1))))
    moves = m.insert(arith.AndIOp(inexact, is_even))
    return m.from_bits(m.select(moves, other, bits))
