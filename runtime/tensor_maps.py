"""Descriptors of arrays for a GPU's copy engine, as the CUDA driver encodes them.

What the driver wants is listed from the innermost axis out, with strides in bytes for all axes but that one
(CUDA driver API, "cuTensorMapEncodeTiled").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from .plan_parts import ITEM_BYTES, Array, TensorMap
from .sizes import static

DATA_TYPES = {
    "i1": "UINT8",
    "i8": "UINT8",
    "ui8": "UINT8",
    "i16": "UINT16",
    "i32": "INT32",
    "i64": "INT64",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "tf32": "FLOAT32",
    "f32": "FLOAT32",
    "f64": "FLOAT64",
}
"""The driver's name for each dtype; copies change no bits."""


@dataclass(frozen=True)
class Description:
    """The numbers of a descriptor, innermost axis first; `strides` are in bytes."""

    data_type: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str


def describe(array: Array, map: TensorMap) -> Description:
    """The numbers of the descriptor of `array`."""
    shape = [static(extent) for extent in array.shape]
    rank, item = len(shape), ITEM_BYTES[array.dtype]
    strides = [prod(shape[axis:]) * item for axis in range(rank - 1, 0, -1)]
    swizzle = f"{map.swizzle}B" if map.swizzle else "NONE"
    return Description(
        DATA_TYPES[array.dtype], tuple(shape[::-1]), tuple(strides), map.box[::-1], swizzle
    )


def encode(driver: Any, pointer: int, description: Description) -> tuple[Any, ...]:
    """The driver's answer to describing what lies at `pointer`: how it went, and the descriptor."""
    numbers, sizes = driver.cuuint64_t, driver.cuuint32_t
    rank = len(description.dims)
    return driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{description.data_type}"),
        rank,
        pointer,
        [numbers(n) for n in description.dims],
        [numbers(n) for n in description.strides],
        [sizes(n) for n in description.box],
        [sizes(1)] * rank,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{description.swizzle}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
