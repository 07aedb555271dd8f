"""From a model file, or a model in memory, to Torch IR."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onnx import ModelProto

from . import elementwise, linear
from .importing import Importer
from .loading import checked, read_model
from .program import Model, model_of

_ENTERED = (elementwise, linear)
"""The modules whose rules are in the table once they are imported."""


def load(path: str | os.PathLike[str], sizes: Mapping[str, int]) -> Model:
    """The model in a file. Raises UsageError and UnsupportedOpError."""
    return model_of(Importer(read_model(path, sizes)).run())


def load_proto(proto: ModelProto, sizes: Mapping[str, int] | None = None) -> Model:
    """A model that is in memory. Raises UsageError and UnsupportedOpError."""
    return model_of(Importer(checked(proto, sizes or {})).run())
