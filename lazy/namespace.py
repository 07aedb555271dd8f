"""The namespace of the array API standard: what `tensor.__array_namespace__()` gives.

It has more than the standard, such as `softmax` and `einsum`. What of the standard is missing says why.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from . import dtypes, linear, neural, random, reductions
from .functions import FUNCTIONS
from .tensor import NAMESPACES

VERSION = "2024.12"

_COMPLEX = "deplo has no complex numbers"
_UNSIGNED = "the standard's sums of them are uint64, which deplo does not have"
_SHAPE = "the shape of its result would depend on elements"

ABSENT = {
    **{name: _UNSIGNED for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: _COMPLEX for name in ("complex64", "complex128", "conj", "imag", "real")},
    "nonzero": _SHAPE,
    **{f"unique_{name}": _SHAPE for name in ("all", "counts", "inverse", "values")},
    "nextafter": "no IR of deplo has the bits of a float",
}
"""What of the standard is not here, and why."""


class Namespace(SimpleNamespace):
    """The functions, dtypes and constants."""

    def __getattr__(self, name: str) -> Any:
        why = f": {ABSENT[name]}" if name in ABSENT else ""
        raise AttributeError(f"the namespace of deplo.Tensor has no {name!r}{why}")


class Info:
    """What `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on elements, and how many axes there are at most."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": None}

    def default_device(self) -> str:
        """Where tensors are."""
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """The dtypes of Python numbers."""
        return {
            "real floating": dtypes.float32,
            "complex floating": None,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> list[str]:
        """Where tensors can be."""
        return ["cpu"]

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes, or those of a kind, by name."""
        chosen = (d for d in dtypes.ALL_DTYPES if kind is None or dtypes.isdtype(d, kind))
        return {dtype.name: dtype for dtype in chosen}


array_api = Namespace(
    **FUNCTIONS,
    **dtypes.BY_NAME,
    **{f.__name__: f for f in (dtypes.result_type, dtypes.isdtype, dtypes.can_cast)},
    iinfo=dtypes.iinfo,
    finfo=dtypes.finfo,
    e=math.e,
    pi=math.pi,
    inf=math.inf,
    nan=math.nan,
    newaxis=None,
    __array_api_version__=VERSION,
    __array_namespace_info__=Info,
)

NAMESPACES[VERSION] = array_api

_ENTERED = (linear, neural, random, reductions)
"""The modules whose functions are in `FUNCTIONS` once they are imported."""
