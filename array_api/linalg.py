"""The standard's extension for linear algebra; what is no expression is numpy's, computed at once."""

from __future__ import annotations

from typing import Any

from ..lazy.linear_algebra import LINALG

globals().update(LINALG)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *LINALG
]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"deplo.array_api.linalg has no {name!r}")
