"""The standard's extension for Fourier transforms, which are numpy's, computed at once."""

from __future__ import annotations

from typing import Any

from ..lazy.fourier import FFT

globals().update(FFT)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *FFT
]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"deplo.array_api.fft has no {name!r}")
