"""How the interpreters hold IR values in numpy.

f16, f32, f64, the integers, bool and what only calls of PyTorch use are numpy's own. numpy has neither bf16
nor tf32: their values are held as float32 arrays that contain only numbers they can represent, which
`round_to_bfloat16` and `round_to_tf32` make.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IndexType,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ..dialects.scalars import ui8

Array = NDArray[Any]

_INTEGERS: dict[Attribute, type[np.generic]] = {
    i1: np.bool_,
    i8: np.int8,
    i16: np.int16,
    i32: np.int32,
    i64: np.int64,
    ui8: np.uint8,
}


class NotExecutable(Exception):
    """An operation or a type has no meaning in this interpreter; says which and why."""


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy dtype that holds values of `element`; float32 for bf16 and tf32.

    Raises NotExecutable for a type that has none.
    """
    match element:
        case Float16Type():
            return np.dtype(np.float16)
        case Float32Type() | BFloat16Type() | FloatTF32Type():
            return np.dtype(np.float32)
        case Float64Type():
            return np.dtype(np.float64)
        case IndexType():
            return np.dtype(np.int64)
        case _ if element in _INTEGERS:
            return np.dtype(_INTEGERS[element])
        case ComplexType(element_type=part):
            return np.result_type(numpy_dtype(part), np.complex64)
        case _:
            raise NotExecutable(f"there are no arrays of {element} here")


def round_to_bfloat16(values: Array) -> Array:
    """Round float32 or float64 to the nearest bf16, ties to even, held as float32; NaN stays NaN."""
    values = np.asarray(values)
    if values.dtype == np.float64:
        values = _round_to_odd_float32(values)
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(
        0xFFFF0000
    )
    return np.where(np.isnan(values), np.float32(np.nan), rounded.view(np.float32))


def round_to_tf32(values: Array) -> Array:
    """Round float32 to the nearest tf32, ties away from zero, held as float32; NaN stays NaN."""
    values = np.asarray(values, np.float32)
    rounded = (values.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(values), np.float32(np.nan), rounded.view(np.float32))


def _round_to_odd_float32(values: Array) -> Array:
    """float64 to float32 so that one more rounding is correct: an inexact result gets an odd bit."""
    near = values.astype(np.float32)
    inexact = (near.astype(np.float64) != values) & np.isfinite(values) & np.isfinite(near)
    away = np.abs(near.astype(np.float64)) > np.abs(values)
    bits = near.view(np.uint32)
    truncated = np.where(inexact & away, bits - np.uint32(1), bits)
    return np.where(inexact, truncated | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def convert(values: Array, target: Attribute) -> Array:
    """Convert numpy values as `tensor_ir.cast` says: to nearest even, truncation, wrap-around."""
    values = np.asarray(values)
    if isinstance(target, BFloat16Type | Float16Type) and values.dtype.kind != "f":
        values = values.astype(np.float32)  # as PyTorch converts integers to half types
    if isinstance(target, BFloat16Type):
        return round_to_bfloat16(values)
    if isinstance(target, FloatTF32Type):
        return round_to_tf32(values)
    dtype = numpy_dtype(target)
    if dtype == np.bool_:
        return values != 0
    if dtype.kind in "iu" and values.dtype.kind == "f":
        return float_to_integer(values, dtype)
    with np.errstate(all="ignore"):  # too large for the target is infinity
        return values.astype(dtype)


def float_to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    """Truncate towards zero; what does not fit gives the smallest integer, as on x86.

    Integers narrower than 32 bits take the low bits of the 32-bit result.
    """
    wide = np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(np.int32)
    limit = float(1 << (8 * wide.itemsize - 1))
    with np.errstate(invalid="ignore"):
        whole = np.trunc(values.astype(np.float64))
        fits = (whole >= -limit) & (whole < limit)
        safe = np.where(fits, whole, 0.0).astype(wide)
    return np.where(fits, safe, np.iinfo(wide).min).astype(dtype)
