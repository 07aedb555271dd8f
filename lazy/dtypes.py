"""The dtypes of lazy tensors, and how they meet: the array API standard's promotion, by kinds.

Values never decide. Integers meet in the narrowest that holds both, floats in the wider one (float16 and
bfloat16 in float32), floats with complex numbers in complex ones; what the standard leaves open, an integer
with a float or a bool with a number, is a TypeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from ..dialects.scalars import ui8
from ..dialects.sizes import Extent
from ..runtime.arrays import NUMPY_DTYPES


@dataclass(frozen=True, eq=False)
class DType:
    """An element type; each exists once. `element` is what stands for it in Torch IR, which has fewer types.

    Of unsigned integers these are the signed ones of the same bits. A complex number is two floats, along a
    last axis.
    """

    name: str
    kind: str
    bits: int
    element: Attribute

    @property
    def storage(self) -> Any:
        """The numpy dtype of its arrays in a program; one of bfloat16 holds the bits."""
        return np.dtype(NUMPY_DTYPES[str(self.element)])

    @property
    def numpy(self) -> Any:
        """The numpy dtype that has its elements; that of bfloat16 holds the bits."""
        return self.storage if self.kind not in (UNSIGNED, COMPLEX) else np.dtype(self.name)

    def stored_shape(self, shape: Sequence[Extent]) -> tuple[Extent, ...]:
        """The shape of what a program computes for a tensor of this dtype."""
        return (*shape, 2) if self.kind == COMPLEX else tuple(shape)

    def stored(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array of `numpy` as a program reads it: the same memory."""
        return (array[..., None] if self.kind == COMPLEX else array).view(self.storage)

    def shown(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What a program reads or gave as an array of `numpy`: the same memory."""
        return array.view(self.numpy)[..., 0] if self.kind == COMPLEX else array.view(self.numpy)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)  # a copy is the same


SIGNED, UNSIGNED = "signed integer", "unsigned integer"
FLOATING, COMPLEX = "real floating", "complex floating"

bool_ = DType("bool", "bool", 1, i1)
int8 = DType("int8", SIGNED, 8, i8)
int16 = DType("int16", SIGNED, 16, i16)
int32 = DType("int32", SIGNED, 32, i32)
int64 = DType("int64", SIGNED, 64, i64)
uint8 = DType("uint8", UNSIGNED, 8, ui8)
uint16 = DType("uint16", UNSIGNED, 16, i16)
uint32 = DType("uint32", UNSIGNED, 32, i32)
uint64 = DType("uint64", UNSIGNED, 64, i64)
float16 = DType("float16", FLOATING, 16, f16)
bfloat16 = DType("bfloat16", FLOATING, 16, bf16)
float32 = DType("float32", FLOATING, 32, f32)
float64 = DType("float64", FLOATING, 64, f64)

complex64 = DType("complex64", COMPLEX, 64, f32)
complex128 = DType("complex128", COMPLEX, 128, f64)

STANDARD = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
"""The standard's dtypes; float16 and bfloat16 are more than it has."""
ALL_DTYPES = (*STANDARD, float16, bfloat16)
BY_NAME = {dtype.name: dtype for dtype in ALL_DTYPES}

PARTS = {complex64: float32, complex128: float64}
"""Complex dtype -> that of its real and imaginary parts."""
COMPLEX_OF = {part: whole for whole, part in PARTS.items()}
SIGNED_OF = {uint8: int8, uint16: int16, uint32: int32, uint64: int64}
"""Unsigned dtype -> the signed one of as many bits."""

INTEGRAL = {SIGNED, UNSIGNED}
KINDS = {
    "bool": {"bool"},
    SIGNED: {SIGNED},
    UNSIGNED: {UNSIGNED},
    "integral": INTEGRAL,
    FLOATING: {FLOATING},
    COMPLEX: {COMPLEX},
    "numeric": {*INTEGRAL, FLOATING, COMPLEX},
    "integral or bool": {*INTEGRAL, "bool"},
    "real numeric": {*INTEGRAL, FLOATING},
    "floating": {FLOATING, COMPLEX},
    "any": {"bool", *INTEGRAL, FLOATING, COMPLEX},
}
"""What each word for a group of dtypes stands for; the first seven are `isdtype`'s."""
ISDTYPE = tuple(KINDS)[:7]

PYTHON_DEFAULTS = {bool: bool_, int: int64, float: float32, complex: complex64}
"""The dtype of a Python number that meets no tensor."""

ACCEPTED = {
    bool: KINDS["bool"],
    int: KINDS["numeric"],
    float: KINDS["floating"],
    complex: KINDS[COMPLEX],
}
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
        first = first if first is other else _meeting(first, other)
    return first


def _meeting(one: DType, other: DType) -> DType:
    if one.kind == other.kind:
        narrow, wide = sorted((one, other), key=lambda dtype: dtype.bits)
        return float32 if narrow.bits == wide.bits else wide
    kinds = {one.kind, other.kind}
    if kinds == INTEGRAL:
        unsigned, signed = (one, other) if one.kind == UNSIGNED else (other, one)
        bits = max(unsigned.bits * 2, signed.bits)
        if bits <= 64:
            return BY_NAME[f"int{bits}"]
        raise TypeError(f"no integer holds both {one} and {other}: cast one with astype")
    if kinds == KINDS["floating"]:
        whole, real = (one, other) if one.kind == COMPLEX else (other, one)
        return COMPLEX_OF[promoted(PARTS[whole], real)]
    raise TypeError(f"{one} and {other} are of different kinds: cast one with astype")


Number: TypeAlias = bool | int | float | complex


def number_type(value: Number) -> type[Any]:
    """bool, int, float or complex; numpy's float64 is a float."""
    if isinstance(value, int):
        return bool if isinstance(value, bool) else int
    return float if isinstance(value, float) else complex


def meeting_number(dtype: DType, value: Number) -> DType:
    """The dtype in which a tensor meets a Python number: its own, or the complex one of as many digits."""
    return COMPLEX_OF.get(dtype, dtype) if number_type(value) is complex else dtype


def limits_of(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest of an integer dtype."""
    top = 1 << dtype.bits - (dtype.kind == SIGNED)
    return (-top if dtype.kind == SIGNED else 0), top - 1


def check_number(value: Number, dtype: DType) -> Number:
    """`value` as an element of `dtype`. Raises TypeError or OverflowError if it is none."""
    base = number_type(value)
    if dtype.kind not in ACCEPTED[base]:
        raise TypeError(f"a Python {base.__name__} does not meet {dtype}: cast with astype")
    if dtype.kind in INTEGRAL:
        assert not isinstance(value, complex)
        low, high = limits_of(dtype)
        if not low <= value <= high:
            raise OverflowError(f"{value} is no {dtype}")
    makes: Any = {FLOATING: float, COMPLEX: complex}.get(dtype.kind, base)
    return makes(value)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which tensors, dtypes and Python numbers meet."""
    numbers: list[Number] = [v for v in arrays_and_dtypes if isinstance(v, Number)]
    others: list[Any] = [v for v in arrays_and_dtypes if not isinstance(v, Number)]
    if not others:
        raise TypeError("result_type needs a tensor or a dtype")
    found = promoted(*(as_dtype(getattr(v, "dtype", v)) for v in others))
    for number in numbers:
        found = meeting_number(found, number)
        check_number(number, found)
    return found


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, one of the standard's words, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in ISDTYPE:
            raise ValueError(f"isdtype: {kind!r} is none of {', '.join(ISDTYPE)}")
        return as_dtype(dtype).kind in KINDS[kind]
    return as_dtype(dtype) is as_dtype(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion takes a dtype, or that of a tensor, to another."""
    source, target = as_dtype(getattr(from_, "dtype", from_)), as_dtype(to)
    try:
        return promoted(source, target) is target
    except TypeError:
        return False


def iinfo(type: Any, /) -> SimpleNamespace:
    """The limits of an integer dtype."""
    dtype = as_dtype(getattr(type, "dtype", type))
    if dtype.kind not in INTEGRAL:
        raise TypeError(f"iinfo is of integers, not of {dtype}")
    low, high = limits_of(dtype)
    return SimpleNamespace(bits=dtype.bits, min=low, max=high, dtype=dtype)


def finfo(type: Any, /) -> SimpleNamespace:
    """The limits of a float dtype, or of the parts of a complex one."""
    dtype = as_dtype(getattr(type, "dtype", type))
    dtype = PARTS.get(dtype, dtype)
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
