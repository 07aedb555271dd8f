"""From a model file, or a model in memory, to Torch IR."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from onnx import ModelProto

from . import (
    activations,
    creation,
    elementwise,
    indexing,
    linear,
    movement,
    normalization,
    quantization,
    recurrent,
    reductions,
    resizing,
    sampling,
    windows,
)
from .importing import Importer
from .loading import Fixed, checked, read_model
from .program import Model, model_of
from .rules import RULES

__all__ = ["RULES", "load", "load_proto"]

_ENTERED = (
    *(activations, creation, elementwise, indexing, linear, movement),
    *(normalization, quantization, recurrent, reductions, resizing, sampling, windows),
)
"""The modules whose rules are in the table once they are imported."""


def load(
    path: str | os.PathLike[str],
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Model:
    """The model in a file. Raises UsageError and UnsupportedOpError."""
    fixed = Fixed(sizes or {}, constants or {})
    return model_of(Importer(read_model(path, fixed)).run())


def load_proto(
    proto: ModelProto,
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Model:
    """A model that is in memory. Raises UsageError and UnsupportedOpError."""
    fixed = Fixed(sizes or {}, constants or {})
    return model_of(Importer(checked(proto, fixed)).run())
