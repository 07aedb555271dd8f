"""Memory that nobody has written yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from .numpy_types import Array, numpy_dtype


def poison_of(dtype: np.dtype[Any]) -> float | bool:
    """NaN, or a number unlikely to be right where there is no NaN."""
    return np.nan if dtype.kind in "fc" else (True if dtype == np.bool_ else 113)


def poisoned(element: Attribute, shape: Sequence[int]) -> Array:
    """An array of poison."""
    dtype = numpy_dtype(element)
    return np.full(shape, poison_of(dtype), dtype)
