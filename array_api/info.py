"""What `deplo.array_api` says about itself."""

from __future__ import annotations

from typing import Any

from ..lazy import dtypes
from ..lazy.functions import on_cpu


class Info:
    """What `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on elements, and how many axes there are at most."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """Where tensors are."""
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """The dtypes of Python numbers."""
        on_cpu(device)
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> list[str]:
        """Where tensors can be."""
        return ["cpu"]

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes, or those of a kind, by name."""
        on_cpu(device)
        chosen = (d for d in dtypes.STANDARD if kind is None or dtypes.isdtype(d, kind))
        return {dtype.name: dtype for dtype in chosen}
