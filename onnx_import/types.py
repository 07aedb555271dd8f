"""What ONNX says of operators and values: schemas, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TypeProto, defs

from ..dialects.sizes import Extent
from ..lazy.dtypes import DType
from .dtypes import dtype_of
from .rules import Refused


def schema_of(operator: str, version: int, domain: str) -> defs.OpSchema:
    """What ONNX says of an operator in a version of its domain. Raises Refused if it is none of it."""
    try:
        return defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        raise Refused(f"operator {operator} in opset {version}") from None


Dimensions = Callable[[str], Extent]
"""What stands for a dimension with a name."""


def type_of(type: TypeProto, named: Dimensions) -> tuple[DType, tuple[Extent, ...]]:
    """A tensor's dtype and shape. Raises Refused for what has none."""
    if not type.HasField("tensor_type"):
        raise Refused(f"a value of type {type.WhichOneof('value') or 'none'}")
    tensor = type.tensor_type
    dtype = dtype_of(tensor.elem_type)
    if not tensor.HasField("shape"):
        raise Refused("a tensor whose number of axes is not said")
    return dtype, tuple(_extent(dim, named) for dim in tensor.shape.dim)


def _extent(dim: Any, named: Dimensions) -> Extent:
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            raise Refused(f"an axis of {dim.dim_value} elements")
        return int(dim.dim_value)
    if dim.dim_param:
        return named(dim.dim_param)
    raise Refused("a dimension is neither fixed nor named; fix it in the model")
