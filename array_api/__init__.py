"""The array API standard, version 2024.12, of `deplo.Tensor`; see docs/lazy-tensors.md.

    import deplo.array_api as xp
    xp.sum(xp.asarray([1.0, 2.0]))

It has more than the standard, such as `softmax` and `einsum`. Its names are made from the tables of `lazy/`.
"""

from __future__ import annotations

import math
from typing import Any

from ..lazy import dtypes
from ..lazy.functions import FUNCTIONS
from ..lazy.tensor import VERSION
from . import fft, linalg
from .info import Info

__array_api_version__ = VERSION
__array_namespace_info__ = Info

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

can_cast, finfo, iinfo = dtypes.can_cast, dtypes.finfo, dtypes.iinfo
isdtype, result_type = dtypes.isdtype, dtypes.result_type

globals().update(FUNCTIONS)
globals().update(dtypes.BY_NAME)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"deplo.array_api has no {name!r}")


__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "__array_api_version__",
    "__array_namespace_info__",
    "can_cast",
    "e",
    "fft",
    "finfo",
    "iinfo",
    "inf",
    "isdtype",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "result_type",
    *FUNCTIONS,
    *dtypes.BY_NAME,
]
