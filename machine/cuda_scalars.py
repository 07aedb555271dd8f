"""How each operation on scalars is written in CUDA C++: one row each.

    operation | types | text

The types are those of the last operand, or of it and of the result, `f16>f32`. `{a}`, `{b}` and `{c}` are
the operands, `{A}` is the C++ type of the first, `{U}` the same without a sign, `{R}` that of the result. A
text of several statements names the type of each value before the last; later ones call it `{0}`, `{1}`, ...
`asm` is an instruction of the PTX ISA that C++ has no header-free form for.

Integers wrap, so 32- and 64-bit sums and products are computed unsigned: C++ leaves signed overflow
undefined. A float that does not fit an integer gives the smallest one; a maximum or minimum of NaN is NaN.
A compiler may fuse a product with what is added to it, but not with what is subtracted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

TYPES = {
    "f32": "float",
    "f64": "double",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "tf32": "unsigned",
    "i1": "bool",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
}
"""The C++ type of each scalar type but `index`, for which a function says its own; halves are their bits."""

_UNSIGNED = {"i8": "unsigned char", "i16": "unsigned short", "i32": "unsigned"} | {
    "i64": "unsigned long long"
}

REGISTERS = {"float": "f", "double": "d", "unsigned short": "h", "unsigned": "r"}
"""The PTX register that holds a C++ type, as `asm` calls it."""

_KINDS = {
    "float": ("f32", "f64"),
    "narrow": ("i8", "i16"),
    "wide": ("i32", "i64"),
    "int": tuple(_UNSIGNED),
    "any": (*TYPES, "index"),
}

_TABLE = """
arith.addf         | float        | {a} + {b}
arith.subf         | float        | {a} - {b}
arith.subf product | f32          | __fsub_rn({a}, {b})
arith.subf product | f64          | __dsub_rn({a}, {b})
arith.mulf         | float        | {a} * {b}
arith.divf         | float        | {a} / {b}
arith.divf zero    | float        | {a} * {infinity}
arith.negf         | float        | -{a}
arith.maximumf     | f32          | asm max.NaN.f32 %0, %1, %2
arith.maximumf     | f64          | bool: {a} > {b}; bool: {a} != {a}; bool: {0} | {1}; {2} ? {a} : {b}
arith.minimumf     | f32          | asm min.NaN.f32 %0, %1, %2
arith.minimumf     | f64          | bool: {a} < {b}; bool: {a} != {a}; bool: {0} | {1}; {2} ? {a} : {b}
arith.addi         | narrow       | {a} + {b}
arith.addi         | wide         | {U}: ({U}){a}; {U}: ({U}){b}; {U}: {0} + {1}; ({R}){2}
arith.subi         | narrow       | {a} - {b}
arith.subi         | wide         | {U}: ({U}){a}; {U}: ({U}){b}; {U}: {0} - {1}; ({R}){2}
arith.muli         | narrow       | {a} * {b}
arith.muli         | wide         | {U}: ({U}){a}; {U}: ({U}){b}; {U}: {0} * {1}; ({R}){2}
arith.shli         | narrow       | {a} << {b}
arith.shli         | wide         | {U}: ({U}){a}; {U}: ({U}){b}; {U}: {0} << {1}; ({R}){2}
arith.shrsi        | int          | {a} >> {b}
arith.divsi        | int          | {a} / {b}
arith.remsi        | int          | {a} % {b}
arith.andi         | int,i1       | {a} & {b}
arith.ori          | int,i1       | {a} | {b}
arith.xori         | int,i1       | {a} ^ {b}
arith.maxsi        | int          | bool: {a} > {b}; {0} ? {a} : {b}
arith.minsi        | int          | bool: {a} < {b}; {0} ? {a} : {b}
arith.select       | any          | {a} ? {b} : {c}
arith.cmpi eq      | int,i1,index | {a} == {b}
arith.cmpi ne      | int,i1,index | {a} != {b}
arith.cmpi slt     | int,index    | {a} < {b}
arith.cmpi sle     | int,index    | {a} <= {b}
arith.cmpi sgt     | int,index    | {a} > {b}
arith.cmpi sge     | int,index    | {a} >= {b}
arith.cmpi ult     | i1           | {a} < {b}
arith.cmpi ule     | i1           | {a} <= {b}
arith.cmpi ugt     | i1           | {a} > {b}
arith.cmpi uge     | i1           | {a} >= {b}
arith.cmpi ult     | int          | {U}: ({U}){a}; {U}: ({U}){b}; {0} < {1}
arith.cmpi ule     | int          | {U}: ({U}){a}; {U}: ({U}){b}; {0} <= {1}
arith.cmpi ugt     | int          | {U}: ({U}){a}; {U}: ({U}){b}; {0} > {1}
arith.cmpi uge     | int          | {U}: ({U}){a}; {U}: ({U}){b}; {0} >= {1}
arith.cmpf oeq     | float        | {a} == {b}
arith.cmpf ogt     | float        | {a} > {b}
arith.cmpf oge     | float        | {a} >= {b}
arith.cmpf olt     | float        | {a} < {b}
arith.cmpf ole     | float        | {a} <= {b}
arith.cmpf une     | float        | {a} != {b}
arith.cmpf ord     | float        | bool: {a} == {a}; bool: {b} == {b}; {0} & {1}
arith.cmpf uno     | float        | bool: {a} != {a}; bool: {b} != {b}; {0} | {1}
arith.extf         | f16>f32      | asm cvt.f32.f16 %0, %1
arith.extf         | f16>f64      | asm cvt.f64.f16 %0, %1
arith.extf         | bf16>f32     | asm mov.b32 %0, {{0, %1}}
arith.extf         | bf16>f64     | float: asm mov.b32 %0, {{0, %1}}; ({R}){0}
arith.extf         | tf32>f32     | asm mov.b32 %0, %1
arith.extf         | f32>f64      | ({R}){a}
arith.truncf       | f32>f16      | asm cvt.rn.f16.f32 %0, %1
arith.truncf       | f64>f16      | asm cvt.rn.f16.f64 %0, %1
arith.truncf       | f32>bf16     | asm cvt.rn.bf16.f32 %0, %1
arith.truncf       | f32>tf32     | asm cvt.rna.tf32.f32 %0, %1
arith.truncf       | f64>f32      | ({R}){a}
arith.fptosi       | float>wide   | bool: {a} >= {low}; bool: {a} < {high}; {R}: ({R}){a}; \
bool: {0} & {1}; {3} ? {2} : {least}
arith.sitofp       | int>float    | ({R}){a}
arith.uitofp       | i1>float     | ({R}){a}
arith.uitofp       | int>float    | {U}: ({U}){a}; ({R}){0}
arith.extui        | i1>int       | ({R}){a}
arith.extui        | int>int      | {U}: ({U}){a}; ({R}){0}
arith.extsi        | int>int      | ({R}){a}
arith.trunci       | int>int      | ({R}){a}
arith.trunci       | int>i1       | {A}: {a} & 1{L}; {0} != 0{L}
arith.index_cast   | int>index    | ({R}){a}
arith.index_cast   | index>int    | ({R}){a}
math.exp2 afn      | f32          | asm ex2.approx.ftz.f32 %0, %1
math.exp2 afn      | f64          | exp2({a})
math.absf          | float        | fabs{f}({a})
math.exp           | float        | exp{f}({a})
math.exp2          | float        | exp2{f}({a})
math.expm1         | float        | expm1{f}({a})
math.log           | float        | log{f}({a})
math.log2          | float        | log2{f}({a})
math.log1p         | float        | log1p{f}({a})
math.sqrt          | float        | sqrt{f}({a})
math.rsqrt         | float        | rsqrt{f}({a})
math.sin           | float        | sin{f}({a})
math.cos           | float        | cos{f}({a})
math.tan           | float        | tan{f}({a})
math.tanh          | float        | tanh{f}({a})
math.erf           | float        | erf{f}({a})
math.floor         | float        | floor{f}({a})
math.ceil          | float        | ceil{f}({a})
math.roundeven     | float        | rint{f}({a})
math.trunc         | float        | trunc{f}({a})
math.powf          | float        | pow{f}({a}, {b})
math.atan2         | float        | atan2{f}({a}, {b})
math.copysign      | float        | copysign{f}({a}, {b})
math.fma           | float        | fma{f}({a}, {b}, {c})
"""


@dataclass(frozen=True)
class ScalarForm:
    """How an operation is written: the C++ type and the expression of each value, the result's last.

    `functions` are those that the expressions call.
    """

    steps: tuple[tuple[str, str], ...]
    functions: tuple[str, ...] = ()


def _form(text: str, operand: str) -> ScalarForm:
    """The form that a row's text is for a type."""
    known = {"f": "f" if operand == "f32" else "", "L": "LL" if operand == "i64" else ""}
    for field, meaning in (known | {"U": _UNSIGNED.get(operand, "")}).items():
        text = text.replace(f"{{{field}}}", meaning)
    *parts, last = text.split("; ")
    steps = [part.split(": ", 1) for part in parts]
    functions = tuple(re.findall(r"([a-z_]\w*)\(", text))
    return ScalarForm((*((type, value) for type, value in steps), ("{R}", last)), functions)


def _forms() -> Iterator[tuple[tuple[str, str, str], ScalarForm]]:
    """Each row for each of its types; the type of the result is empty where a row has none."""
    for row in _TABLE.strip().splitlines():
        operation, types, text = (part.strip() for part in row.split("|", 2))
        for pair in types.split(","):
            source, _, target = pair.partition(">")
            for operand, result in product(_KINDS.get(source, (source,)), _KINDS.get(target, (target,))):
                yield (operation, operand, result), _form(text, operand)


FORMS = dict(_forms())
"""The form of each operation, its last operand's type, and its result's where the row says it."""

FUNCTIONS = frozenset(name for form in FORMS.values() for name in form.functions)
"""The C++ functions that kernels call."""
