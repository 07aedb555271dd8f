"""The dtypes of lazy tensors, and how they meet: the array API standard's promotion, by kinds.

Values never decide. Integers meet in the wider one, floats too (float16 and bfloat16 in float32); what the
standard leaves open, an integer with a float or a bool with a number, is a TypeError.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from ..runtime.arrays import NUMPY_DTYPES


@dataclass(frozen=True, eq=False)
class DType:
    """An element type; each exists once. `storage` is the numpy dtype that holds its elements."""

    name: str
    kind: str
    bits: int
    element: Attribute

    @property
    def storage(self) -> Any:
        """The numpy dtype of its arrays; one of bfloat16 holds the bits."""
        return np.dtype(NUMPY_DTYPES[str(self.element)])

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)  # a copy is the same


SIGNED, FLOATING = "signed integer", "real floating"

bool_ = DType("bool", "bool", 1, i1)
int8 = DType("int8", SIGNED, 8, i8)
int16 = DType("int16", SIGNED, 16, i16)
int32 = DType("int32", SIGNED, 32, i32)
int64 = DType("int64", SIGNED, 64, i64)
float16 = DType("float16", FLOATING, 16, f16)
bfloat16 = DType("bfloat16", FLOATING, 16, bf16)
float32 = DType("float32", FLOATING, 32, f32)
float64 = DType("float64", FLOATING, 64, f64)

ALL_DTYPES = (bool_, int8, int16, int32, int64, float16, bfloat16, float32, float64)
BY_NAME = {dtype.name: dtype for dtype in ALL_DTYPES}

KINDS = {
    "bool": {"bool"},
    SIGNED: {SIGNED},
    "unsigned integer": set[str](),
    "integral": {SIGNED},
    FLOATING: {FLOATING},
    "complex floating": set[str](),
    "numeric": {SIGNED, FLOATING},
    "integral or bool": {SIGNED, "bool"},
    "any": {"bool", SIGNED, FLOATING},
}
"""What each word for a group of dtypes stands for; all but the last two are `isdtype`'s."""

PYTHON_DEFAULTS = {bool: bool_, int: int64, float: float32}
"""The dtype of a Python number that meets no tensor."""

ACCEPTED = {bool: KINDS["bool"], int: KINDS["numeric"], float: KINDS[FLOATING]}
"""The kinds of tensors that each type of Python number may meet."""


def as_dtype(given: Any) -> DType:
    """The dtype that is meant: by itself, by name, or by one of numpy, torch or any library with names."""
    if isinstance(given, DType):
        return given
    name = given if isinstance(given, str) else ""
    if not name and type(given).__module__.partition(".")[0] == "torch":
        name = str(given).rpartition(".")[2]
    elif not name:
        try:
            name = np.dtype(given).name
        except TypeError:
            name = str(given)
    if name not in BY_NAME:
        known = ", ".join(BY_NAME)
        raise TypeError(f"{name} is no dtype of deplo's tensors; they are {known}")
    return BY_NAME[name]


def promoted(*dtypes: DType) -> DType:
    """The dtype in which tensors of several dtypes meet; TypeError if there is none."""
    first, *others = dtypes
    for other in others:
        if first is other:
            continue
        if first.kind != other.kind:
            raise TypeError(f"{first} and {other} are of different kinds: cast one with astype")
        if first.bits == other.bits:
            first = float32
        elif other.bits > first.bits:
            first = other
    return first


def number_type(value: bool | float) -> type[Any]:
    """bool, int or float; numpy's float64 is a float."""
    return bool if isinstance(value, bool) else int if isinstance(value, int) else float


def check_number(value: bool | float, dtype: DType) -> bool | int | float:
    """`value` as an element of `dtype`. Raises TypeError or OverflowError if it is none."""
    base = number_type(value)
    if dtype.kind not in ACCEPTED[base]:
        raise TypeError(f"a Python {base.__name__} does not meet {dtype}: cast with astype")
    if dtype.kind == SIGNED and not -(1 << dtype.bits - 1) <= value < 1 << dtype.bits - 1:
        raise OverflowError(f"{value} is no {dtype}")
    return float(value) if dtype.kind == FLOATING else base(value)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which tensors, dtypes and Python numbers meet."""
    numbers = [v for v in arrays_and_dtypes if isinstance(v, bool | int | float)]
    others = [v for v in arrays_and_dtypes if not isinstance(v, bool | int | float)]
    if not others:
        raise TypeError("result_type needs a tensor or a dtype")
    found = promoted(*(as_dtype(getattr(v, "dtype", v)) for v in others))
    for number in numbers:
        check_number(number, found)
    return found


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, one of the standard's words, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind in KINDS:
        return as_dtype(dtype).kind in KINDS[kind]
    return as_dtype(dtype) is as_dtype(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion takes a dtype, or that of a tensor, to another."""
    source, target = as_dtype(getattr(from_, "dtype", from_)), as_dtype(to)
    return source.kind == target.kind and promoted(source, target) is target


def iinfo(type: Any, /) -> SimpleNamespace:
    """The limits of an integer dtype."""
    dtype = as_dtype(getattr(type, "dtype", type))
    if dtype.kind != SIGNED:
        raise TypeError(f"iinfo is of integers, not of {dtype}")
    top = 1 << dtype.bits - 1
    return SimpleNamespace(bits=dtype.bits, min=-top, max=top - 1, dtype=dtype)


def finfo(type: Any, /) -> SimpleNamespace:
    """The limits of a float dtype."""
    dtype = as_dtype(getattr(type, "dtype", type))
    if dtype.kind != FLOATING:
        raise TypeError(f"finfo is of floats, not of {dtype}")
    if dtype is bfloat16:
        eps, low, top = 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127
    else:
        of = np.finfo(dtype.storage)
        eps, low, top = float(of.eps), float(of.smallest_normal), float(of.max)
    return SimpleNamespace(
        bits=dtype.bits, eps=eps, max=top, min=-top, smallest_normal=low, dtype=dtype
    )
