"""`deplo.from_onnx`, which says what is missing where the package `onnx` is not installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import MissingEnvironmentError

if TYPE_CHECKING:
    from .program import Model, OnnxProgram


def load_model(
    path: str | os.PathLike[str],
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Model:
    """The model in a file as Torch IR. Raises what `from_onnx` does."""
    if find_spec("onnx") is None:
        raise MissingEnvironmentError(
            "ONNX models need the package onnx: pip install 'deplo[onnx]'"
        )
    module: Any = import_module(".model_files", __package__)
    return module.load(path, sizes, constants)


def from_onnx(
    path: str | os.PathLike[str],
    *,
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
    target: str = "cpu",
    schedule: str | None = None,
) -> OnnxProgram:
    """The model in a `.onnx` file as a compiled program, which takes and gives numpy arrays.

    `sizes` are the extents of dimensions that have names, such as {"batch": 1}, and `constants` are
    arrays in the place of inputs, such as those that say shapes. Raises UsageError for a file that is no
    right model, UnsupportedOpError, which lists all of the model that deplo does not compute, and
    MissingEnvironmentError without the package `onnx`.
    """
    model = load_model(path, sizes, constants)
    module: Any = import_module(".program", __package__)
    return module.OnnxProgram(model, target, schedule)
