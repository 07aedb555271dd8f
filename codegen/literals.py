"""Numbers as C++ source that means them to the bit."""

from __future__ import annotations

import re
import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatTF32Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute


def float_literal(value: float, type: Attribute) -> str:
    """A C++ expression for exactly `value`; what has no literal is made from its bits."""
    single = isinstance(type, Float32Type)
    if value != value or value in (float("inf"), float("-inf")):
        if single:
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            return f"__int_as_float(0x{bits:08x})"
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"__longlong_as_double(0x{bits:016x}LL)"
    if single:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
        text = f"{value:.9g}"  # nine digits tell every float apart
        if struct.pack("<f", float(f"{value:.7g}")) == struct.pack("<f", value):
            text = f"{value:.7g}"
    else:
        text = repr(value)
    if not re.search(r"[.e]", text):
        text += ".0"
    return f"{text}f" if single else text


def integer_literal(value: int, type: IntegerType) -> str:
    """A C++ literal of an integer or bool."""
    width = type.width.data
    if width == 1:
        return "true" if value else "false"
    suffix = "LL" if width == 64 else ""
    if width >= 32 and value == -(1 << (width - 1)):  # the minus is an operator of C++
        return f"(-{-(value + 1)}{suffix} - 1)"
    return f"{value}{suffix}"


def bits_literal(value: float, type: Attribute) -> str:
    """The bits of an f16, bf16 or tf32 constant, which C++ sees as an unsigned integer."""
    if isinstance(type, Float16Type):
        bits = struct.unpack("<H", struct.pack("<e", value))[0]
    else:  # the attribute's value is of its type already: what else an f32 has is zero
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if isinstance(type, FloatTF32Type):
            return f"0x{bits:08x}u"
        bits >>= 16
    return f"0x{bits:04x}"


def literal_text(value: float, type: Attribute) -> str:
    """A C++ literal of any scalar, as an operand of any operator."""
    match type:
        case IntegerType():
            text = integer_literal(int(value), type)
        case IndexType():
            text = str(value)
        case Float16Type() | BFloat16Type() | FloatTF32Type():
            text = bits_literal(value, type)
        case _:
            text = float_literal(value, type)
    return f"({text})" if text.startswith("-") else text
