"""The standard's extension for Fourier transforms, which are numpy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from .calls import computed
from .creation import arange
from .dtypes import COMPLEX, COMPLEX_OF, FLOATING, PARTS, as_dtype, float32
from .functions import Axes, astype, axes_of, checking, tensor
from .manipulation import concat, roll
from .tensor import Tensor

Norm: TypeAlias = Literal["backward", "ortho", "forward"]

FFT: dict[str, Callable[..., Any]] = {}
"""The functions of `array_api.fft`, by name."""

TRANSFORMS = {
    "fft": ("floating", COMPLEX),
    "ifft": ("floating", COMPLEX),
    "rfft": (FLOATING, COMPLEX),
    "irfft": ("floating", FLOATING),
    "hfft": ("floating", FLOATING),
    "ihfft": (FLOATING, COMPLEX),
}
"""Transforms, and those of several axes: the kinds of dtypes that they take and give."""


def _transformed(name: str, x: Tensor, *options: Any) -> Tensor:
    takes, gives = TRANSFORMS[name.removesuffix("n")]
    dtype = tensor(x, takes, name).dtype
    part = PARTS.get(dtype, dtype)
    if part not in COMPLEX_OF:
        raise TypeError(f"{name} takes float32, float64 and complex numbers, not {dtype}")
    made = computed(getattr(np.fft, name), x, *options)
    return astype(made, COMPLEX_OF[part] if gives == COMPLEX else part)


def _enter(name: str) -> None:
    def along(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return _transformed(name, x, n, axis, norm)

    def over(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        axes = range(-len(s), 0) if s is not None and axes is None else axes
        return _transformed(name, x, s, axes, norm)

    function = over if name.endswith("n") else along
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"numpy's `fft.{name}`, in the precision of x."
    FFT[name] = checking(function, f"fft.{name}")


for _name in TRANSFORMS:
    _enter(_name)
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _enter(_name)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of a transform of n samples at distances d, in its order."""
    half = (n - 1) // 2 + 1
    first, second = arange(half, device=device), arange(-(n // 2), 0)
    return _frequencies(concat([first, second]), n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of a transform of n real samples at distances d."""
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype)


def _frequencies(places: Tensor, n: int, d: float, dtype: Any) -> Tensor:
    chosen = float32 if dtype is None else as_dtype(dtype)
    if chosen.kind != FLOATING:
        raise TypeError(f"frequencies are floats, not {chosen}")
    return astype(astype(places, "float64") / (n * d), chosen)


def fftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """With the frequency 0 in the middle of axes."""
    return _shifted(x, axes, 1)


def ifftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """What fftshift gave x for."""
    return _shifted(x, axes, -1)


def _shifted(x: Tensor, axes: Axes, sign: int) -> Tensor:
    chosen = axes_of(axes, len(tensor(x, name="fftshift").shape))
    return roll(x, [sign * (int(x.shape[axis]) // 2) for axis in chosen], axis=chosen)


for _function in (fftfreq, rfftfreq, fftshift, ifftshift):
    FFT[_function.__name__] = checking(_function, f"fft.{_function.__name__}")
