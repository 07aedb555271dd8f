"""How PyTorch's dtypes, shapes and values read in the IR."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from xdsl.dialects.builtin import (
    ComplexType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ..dialects.scalars import ui8
from ..dialects.sizes import Extent, tensor_of

ELEMENTS: dict[torch.dtype, Attribute] = {
    torch.float32: f32,
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float64: f64,
    torch.bool: i1,
    torch.int8: i8,
    torch.int16: i16,
    torch.int32: i32,
    torch.int64: i64,
    torch.uint8: ui8,
}
"""The element type for each dtype that deplo computes with."""

OPAQUE_ELEMENTS: dict[torch.dtype, Attribute] = {
    torch.complex64: ComplexType(f32),
    torch.complex128: ComplexType(f64),
}
"""The element type for each dtype that only calls of PyTorch read and make."""

DTYPES: dict[Attribute, torch.dtype] = {
    element: dtype for dtype, element in (ELEMENTS | OPAQUE_ELEMENTS).items()
}
"""The dtype for each element type."""


def tensor_type_of(
    dtype: torch.dtype, shape: Sequence[Extent], *, opaque: bool = False
) -> TensorType:
    """The IR type of a tensor, with `opaque` also one that only calls know.

    Raises KeyError if the dtype has none.
    """
    elements = ELEMENTS | OPAQUE_ELEMENTS if opaque else ELEMENTS
    return tensor_of(elements[dtype], shape)
