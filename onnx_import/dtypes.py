"""ONNX's element types, and what stands for them here."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..lazy import dtypes
from ..lazy.dtypes import FLOATING, INTEGRAL, DType, uint8
from .rules import Refused

BY_ONNX: dict[int, DType] = {
    TensorProto.BOOL: dtypes.bool_,
    TensorProto.UINT8: uint8,
    TensorProto.INT8: dtypes.int8,
    TensorProto.INT16: dtypes.int16,
    TensorProto.INT32: dtypes.int32,
    TensorProto.INT64: dtypes.int64,
    TensorProto.FLOAT16: dtypes.float16,
    TensorProto.BFLOAT16: dtypes.bfloat16,
    TensorProto.FLOAT: dtypes.float32,
    TensorProto.DOUBLE: dtypes.float64,
}
"""The dtype of each element type that deplo computes with."""

TO_ONNX: dict[DType, int] = {dtype: element for element, dtype in BY_ONNX.items()}


def dtype_of(element: int) -> DType:
    """The dtype of an element type. Raises Refused for one that deplo does not compute with."""
    if element not in BY_ONNX:
        raise Refused(f"elements of {element_name(element)}")
    return BY_ONNX[element]


def element_name(element: int) -> str:
    """What ONNX calls an element type."""
    known = TensorProto.DataType.items()
    return next((name for name, number in known if number == element), f"type {element}")


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The dtype of the arrays that a user gives and gets; bfloat16 is that of `ml_dtypes`."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(TO_ONNX[dtype]))


def array_of(tensor: onnx.TensorProto) -> tuple[np.ndarray[Any, Any], DType]:
    """The elements of a tensor in a model, as they are stored. Raises Refused; ValueError if it is broken."""
    dtype = dtype_of(tensor.data_type)
    array = onnx.numpy_helper.to_array(tensor)
    return np.ascontiguousarray(array).reshape(array.shape).view(dtype.storage), dtype


def is_float(dtype: DType) -> bool:
    """Whether elements are floats."""
    return dtype.kind == FLOATING


def is_integer(dtype: DType) -> bool:
    """Whether elements are integers."""
    return dtype.kind in INTEGRAL
