"""Keys that are in the order that a sort asks for, as unsigned integers.

NaN is the largest key, and -0.0 has that of 0.0. See `sort_kernel.py`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import SSAValue

from ...dialects.scalars import is_bool, is_float, storage_bytes
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode


def key_bits(element: object) -> int:
    """How wide the keys of values are."""
    return 64 if storage_bytes(element) == 8 else 32  # pyright: ignore[reportArgumentType]


def emit_key(code: LoopCode, value: SSAValue, *, descending: bool) -> SSAValue:
    """The key of a value: an i32, or an i64 for values that wide."""
    type = i64 if key_bits(value.type) == 64 else i32
    bits = _float_bits(code, value, type) if is_float(value.type) else _wide(code, value, type)
    sign = emit_constant(code.builder, -1 << (type.width.data - 1), type)
    flipped = sign
    if is_float(value.type):  # of a negative number all bits, for their order is the other one
        last = emit_constant(code.builder, type.width.data - 1, type)
        negative = code.insert(arith.ShRSIOp(bits, last))
        flipped = code.insert(arith.OrIOp(negative, sign))
    key = code.insert(arith.XOrIOp(bits, flipped), "key")
    if descending:
        key = code.insert(arith.XOrIOp(key, emit_constant(code.builder, -1, type)), "key")
    return key


def _wide(code: LoopCode, value: SSAValue, type: IntegerType) -> SSAValue:
    if value.type == type:
        return value
    extend = arith.ExtUIOp if is_bool(value.type) else arith.ExtSIOp
    return code.insert(extend(value, type))


def _float_bits(code: LoopCode, value: SSAValue, type: IntegerType) -> SSAValue:
    """The bits of a float, those of 0.0 for -0.0, and of the largest positive integer for NaN."""
    bits = code.insert(arith.BitcastOp(value, type))
    zero = emit_constant(code.builder, 0.0, value.type)
    is_zero = code.insert(arith.CmpfOp(value, zero, "oeq"))
    none = emit_constant(code.builder, 0, type)
    bits = code.insert(arith.SelectOp(is_zero, none, bits))
    is_nan = code.insert(arith.CmpfOp(value, value, "uno"))
    most = emit_constant(code.builder, (1 << (type.width.data - 1)) - 1, type)
    return code.insert(arith.SelectOp(is_nan, most, bits))
