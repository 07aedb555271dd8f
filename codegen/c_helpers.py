"""Functions that a C file brings along, where C has no operator that means what an operation does.

Each is asked for by name, such as `add_i32` or `max_f32`; a file has those that its code calls.
"""

from __future__ import annotations

import re
from string import Template

C_TYPES = {
    "i1": "bool",
    "i8": "int8_t",
    "ui8": "uint8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "index": "long",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
}
"""The C type of each type of a scalar; halves are their bits."""

UNSIGNED = {
    "i1": "bool",
    "i8": "uint8_t",
    "i16": "uint16_t",
    "i32": "uint32_t",
    "i64": "uint64_t",
    "index": "unsigned long",
}

_WRAPS = "return ($T)(($U)a $operator ($U)b);"

_BY_TYPE = {
    "add": ("ab", _WRAPS.replace("$operator", "+"), "a + b, which wraps"),
    "sub": ("ab", _WRAPS.replace("$operator", "-"), "a - b, which wraps"),
    "mul": ("ab", "return ($T)(1u * ($U)a * ($U)b);", "a * b, which wraps"),
    "neg": ("a", "return ($T)(0 - ($U)a);", "-a, which wraps"),
    "abs": ("a", "return a < 0 ? ($T)(0 - ($U)a) : a;", "|a|; the smallest number stays"),
    "shl": ("ab", "return ($U)b < $bits ? ($T)(($U)a << b) : 0;", "a * 2**b, which wraps"),
    "shr": ("ab", "return ($U)b < $bits ? a >> b : a < 0 ? -1 : 0;", "a / 2**b, rounded down"),
    "shru": (
        "ab",
        "return ($U)b < $bits ? ($T)(($U)a >> b) : 0;",
        "the same of an unsigned number",
    ),
    "floordiv": ("ab", "return a / b - (a % b != 0 && (a < 0) != (b < 0));", "a / b, rounded down"),
    "max": ("ab", "return a > b ? a : b;", ""),
    "min": ("ab", "return a < b ? a : b;", ""),
}
"""Functions of integers: parameters, body, and what it gives."""

_FLOATS = {
    "max": ("ab", "return a > b || isnan(a) ? a : b;", "NaN if either is"),
    "min": ("ab", "return a < b || isnan(a) ? a : b;", "NaN if either is"),
}

_ROUND_TO_ODD = """\
// A double as a float on the way to a half: what is not exact goes to the neighbour whose last bit is 1.
static inline float round_to_odd(double a)
{
    float nearest = (float)a;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    if (islessgreater((double)nearest, a) && bits % 2 == 0)
        bits += fabs((double)nearest) > fabs(a) ? -1 : 1;
    memcpy(&nearest, &bits, sizeof bits);
    return nearest;
}
"""

_WRITTEN_OUT = {
    "f32_of_bf16": """\
static inline float f32_of_bf16(uint16_t a)
{
    uint32_t bits = (uint32_t)a << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""",
    "bf16_of_f32": """\
// To nearest, ties to even.
static inline uint16_t bf16_of_f32(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return isnan(a) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
""",
    "f32_of_f16": """\
static inline float f32_of_f16(uint16_t a)
{
    uint32_t exponent = a >> 10 & 31, digits = a & 1023, sign = (uint32_t)(a & 0x8000) << 16;
    uint32_t bits = (exponent == 31 ? 255 : exponent + 112) << 23 | digits << 13;
    float value = (float)digits * 0x1p-24f;
    if (exponent)
        memcpy(&value, &bits, sizeof value);
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""",
    "f16_of_f32": """\
// To nearest, ties to even.
static inline uint16_t f16_of_f32(float a)
{
    uint32_t bits, size;
    memcpy(&bits, &a, sizeof bits);
    size = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (size > 0x7f800000)
        return sign | 0x7e00;
    if (size >= 0x477ff000)
        return sign | 0x7c00;
    if (size < 0x38800000) // a multiple of 2**-24
        return sign | (uint16_t)rintf(fabsf(a) * 0x1p24f);
    return sign | (uint16_t)((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}
""",
    "bf16_of_f64": _ROUND_TO_ODD
    + """\
static inline uint16_t bf16_of_f64(double a) { return bf16_of_f32(round_to_odd(a)); }
""",
    "f16_of_f64": _ROUND_TO_ODD
    + """\
static inline uint16_t f16_of_f64(double a) { return f16_of_f32(round_to_odd(a)); }
""",
    "buffer": """\
// Memory for values between kernels, from a line of the cache on.
static void *buffer(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "error: out of memory: no room for %zu bytes\\n", bytes);
        exit(1);
    }
    return memory;
}
""",
    "check": """\
static inline void check(bool holds, const char *message)
{
    if (!holds) {
        fprintf(stderr, "error: %s\\n", message);
        exit(1);
    }
}
""",
}

_NEEDS = {"bf16_of_f64": "bf16_of_f32", "f16_of_f64": "f16_of_f32"}

_BITS = Template("""\
static inline $to ${name}($from_ a)
{
    $to value;
    memcpy(&value, &a, sizeof value);
    return value;
}
""")


def helper_texts(names: set[str]) -> str:
    """The functions called `names`, and those that they need."""
    wanted = sorted(names | {_NEEDS[name] for name in names if name in _NEEDS})
    wanted.sort(key=lambda name: name in _NEEDS)
    text = "".join(_text(name) + "\n" for name in wanted)
    if text.count(_ROUND_TO_ODD) == 2:
        first, _, rest = text.rpartition(_ROUND_TO_ODD)
        text = first + rest
    return text


def _text(name: str) -> str:
    if name in _WRITTEN_OUT:
        return _WRITTEN_OUT[name]
    if match := re.fullmatch(r"(\w+)_from_bits_of_(\w+)", name):
        to, from_ = (C_TYPES[kind] for kind in match.groups())
        return _BITS.substitute(to=to, name=name, from_=from_)
    function, _, kind = name.rpartition("_")
    table = _FLOATS if kind in ("f32", "f64") else _BY_TYPE
    parameters, body, meaning = table[function]
    bits = kind[1:] if kind != "index" else "64"
    code = Template(body).substitute(T=C_TYPES[kind], U=UNSIGNED.get(kind, ""), bits=bits)
    listed = ", ".join(f"{C_TYPES[kind]} {p}" for p in parameters)
    comment = f"// {meaning}\n" if meaning else ""
    return f"{comment}static inline {C_TYPES[kind]} {name}({listed}) {{ {code} }}\n"
