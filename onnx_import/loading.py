"""Reads model files: parses and checks them and infers their types, all with ONNX's own tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import (
    ModelProto,
    ValueInfoProto,
    checker,
    external_data_helper,
    numpy_helper,
    shape_inference,
)

from ..errors import UsageError


@dataclass(frozen=True)
class Fixed:
    """What a model leaves to its calls, and is said when it is imported."""

    sizes: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    """The extents of dimensions that have names."""
    inputs: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    """The elements of inputs, which are none of the program then."""


def read_model(path: str | os.PathLike[str], fixed: Fixed) -> ModelProto:
    """The model in a file, checked, with the types of its values as far as ONNX infers them.

    Raises UsageError for a file that cannot be read or is no right model, and for what it cannot fix.
    """
    name = os.fspath(path)
    if not Path(name).is_file():
        raise UsageError(f"no file {name}")
    try:
        model = onnx.load(name, load_external_data=False)
        checker.check_model(name)
        _check_batch_dims(model)
        _fix(model, fixed)
        model = shape_inference.infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=True
        )
        external_data_helper.load_external_data_for_model(model, os.path.dirname(name))
    except UsageError:
        raise
    except Exception as error:  # ONNX's tools raise what their parser, checker and C++ raise
        raise UsageError(f"{name} is no right ONNX model: {_line(error)}") from error
    return model


def checked(model: ModelProto, fixed: Fixed) -> ModelProto:
    """The same for a model that is in memory."""
    try:
        checker.check_model(model)
        _check_batch_dims(model)
        copy = ModelProto()
        copy.CopyFrom(model)
        _fix(copy, fixed)
        return shape_inference.infer_shapes(copy, check_type=True, strict_mode=True, data_prop=True)
    except UsageError:
        raise
    except Exception as error:  # ONNX's tools raise what their parser, checker and C++ raise
        raise UsageError(f"this is no right ONNX model: {_line(error)}") from error


def _check_batch_dims(model: ModelProto) -> None:
    """Raise UsageError for what ONNX's inference of shapes (1.23) reads memory out of bounds for."""
    waiting: list[Any] = [model.graph, *model.functions]
    while waiting:
        for node in waiting.pop().node:
            for each in node.attribute:
                waiting += [each.g] if each.HasField("g") else []
                if node.op_type == "GatherND" and each.name == "batch_dims" and each.i < 0:
                    raise UsageError(f"GatherND '{node.name}' has batch_dims = {each.i}")


def _line(error: Exception) -> str:
    """An error's text in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"


def _fix(model: ModelProto, fixed: Fixed) -> None:
    """Make what is said a part of the model."""
    _fix_sizes(model, fixed.sizes)
    held = {each.name for each in model.graph.initializer}
    inputs = {each.name: each for each in model.graph.input if each.name not in held}
    for name, array in fixed.inputs.items():
        if name not in inputs:
            listed = ", ".join(inputs) or "none"
            raise UsageError(f"constants: the model has no input '{name}'; its inputs are {listed}")
        if not isinstance(array, np.ndarray | np.generic):
            raise UsageError(
                f"constants: '{name}' must be a numpy array, not {type(array).__name__}"
            )
        tensor = numpy_helper.from_array(np.asarray(array), name)
        wanted = inputs[name].type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else None for d in wanted.shape.dim]
        fits = not wanted.HasField("shape") or (
            len(dims) == array.ndim
            and all(n in (None, m) for n, m in zip(dims, array.shape, strict=True))
        )
        if tensor.data_type != wanted.elem_type or not fits:
            raise UsageError(
                f"constants: input '{name}' does not take {array.dtype} {list(array.shape)}"
            )
        model.graph.initializer.append(tensor)


def _fix_sizes(model: ModelProto, sizes: Mapping[str, int]) -> None:
    """Give dimensions with names their extents."""
    known: set[str] = set()
    held = {each.name for each in model.graph.initializer}
    for each in model.graph.input:
        if each.name not in held:
            known.update(_names(each))
    if strange := sorted(set(sizes) - known):
        has = f"they have {', '.join(sorted(known))}" if known else "they have fixed shapes"
        raise UsageError(f"sizes: no input has a dimension '{strange[0]}'; {has}")
    for name, extent in sizes.items():
        if type(extent) is not int or extent < 1:
            raise UsageError(f"sizes: '{name}' must be a positive integer, not {extent!r}")
    if not sizes:
        return
    for each in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in each.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def _names(info: ValueInfoProto) -> list[str]:
    """The names of a value's dimensions."""
    return [dim.dim_param for dim in info.type.tensor_type.shape.dim if dim.dim_param]
