"""Memory that nobody has written yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute

from .numpy_types import Array, numpy_dtype


def poisoned(element: Attribute, shape: Sequence[int]) -> Array:
    """An array of NaN, or of a number unlikely to be right where there is no NaN."""
    dtype = numpy_dtype(element)
    value = np.nan if dtype.kind in "fc" else (True if dtype == np.bool_ else 113)
    return np.full(shape, value, dtype)
