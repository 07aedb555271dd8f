"""Whether two stages computed the same."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Attribute

from ..dialects.scalars import STORAGE_FLOATS
from .numpy_types import Array

RELATIVE_TOLERANCE = {8: 1e-10, 4: 2e-5, 2: 2e-3}
"""By bytes of the float type, tf32 as f16, whose fraction is as long. Reductions may re-associate between
stages and functions such as `exp` may differ by a few units in the last place, so a stage is compared with
the one above to this tolerance, relative to the element and to the root mean square of the result."""


def compare(expected: Array, actual: Array, element: Attribute | None = None) -> str | None:
    """What differs between two results of one output, or None if they agree.

    Shapes, dtypes, integers, bools, NaN and infinities must be equal.
    """
    if expected.shape != actual.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if expected.dtype != actual.dtype:
        return f"dtype {actual.dtype} instead of {expected.dtype}"
    if expected.dtype.kind != "f":
        wrong = expected != actual
    else:
        size = 2 if isinstance(element, STORAGE_FLOATS) else expected.dtype.itemsize
        tolerance = 1e-2 if isinstance(element, BFloat16Type) else RELATIVE_TOLERANCE[size]
        a, b = expected.astype(np.float64), actual.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        scale = np.sqrt(np.mean(np.square(a[finite]))) if finite.any() else 0.0
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= tolerance * (np.abs(a) + scale)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = ~(same | (finite & close))
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{count} of {wrong.size} elements differ; the first at {list(where)}: "
        f"{actual[where]!r} instead of {expected[where]!r}"
    )
