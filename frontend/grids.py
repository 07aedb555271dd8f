"""Images read at given positions (`F.grid_sample`). All channels share the positions and their weights.

PyTorch's decomposition computes both for each channel. Outside of the image it multiplies an element of it
by 0, which gives NaN if that is infinite; eager reads nothing there. It also loses the NaN of a position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import torch

aten = torch.ops.aten

_BILINEAR, _NEAREST, _ = range(3)
_ZEROS, _, _REFLECTION = range(3)
"""The numbers by which ATen's operator gets how it interpolates and pads."""

_INT_END = 2.0**31
_OUTSIDE = -100.0
"""Where eager's kernel for GPUs moves positions that are no int (ATen's GridSampler.cuh)."""

Taps = list[tuple[torch.Tensor, torch.Tensor]]
"""Which elements of an axis are read, by their numbers as floats, and their weights."""


def _grid_sampler_2d(
    image: torch.Tensor, grid: torch.Tensor, interpolation: int, padding: int, align_corners: bool
) -> torch.Tensor:
    """`image` (N, C, H, W) at the points of `grid` (N, h, w, 2), x before y: (N, C, h, w)."""
    count, channels, height, width = image.shape
    dtype = torch.promote_types(image.dtype, torch.float32)
    pixels = image.reshape(count, channels, height * width)
    x, y = grid.to(dtype).reshape(count, 1, grid.shape[1] * grid.shape[2], 2).unbind(-1)
    down, across = (_Axis(size, padding, align_corners) for size in (height, width))

    def read(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return _read(pixels, y, x, height, width)

    if interpolation == _NEAREST:
        made = read(down.inside(down.position(y)).round(), across.inside(across.position(x)).round())
    elif interpolation == _BILINEAR:
        rows, columns = down.two(y), across.two(x)
        made = reduce(add, [read(j, i) * (v * w) for j, v in rows for i, w in columns])
    else:
        rows, columns = down.four(y), across.four(x)
        made = reduce(add, [reduce(add, [read(j, i) * w for i, w in columns]) * v for j, v in rows])
    return made.to(image.dtype).reshape(count, channels, *grid.shape[1:3])


class _Axis:
    """An axis of `size` elements, of which -1 and 1 are the ends."""

    def __init__(self, size: int, padding: int, align_corners: bool):
        self.size = size
        self.padding = padding
        self.align_corners = align_corners

    def position(self, at: torch.Tensor) -> torch.Tensor:
        """The positions counted in elements."""
        if self.align_corners:
            return (at + 1) * ((self.size - 1) / 2)
        return (at + 1) * (self.size / 2) - 0.5

    def inside(self, at: torch.Tensor) -> torch.Tensor:
        """The positions as padding moves them into the axis. It moves NaN to 0."""
        if self.padding == _ZEROS:
            if at.device.type == "cpu":
                return at
            return torch.where(at.abs() < _INT_END, at, _OUTSIDE)
        if self.padding == _REFLECTION:
            at = self._reflected(at)
        return torch.where(at > 0, at, 0).clamp(max=self.size - 1)

    def _reflected(self, at: torch.Tensor) -> torch.Tensor:
        low = 0 if self.align_corners else -0.5
        period = 2 * (self.size - 1 if self.align_corners else self.size)
        if period == 0:
            return torch.zeros_like(at)
        far = (at - low).abs()
        rest = far - (far / period).trunc() * period
        return torch.minimum(rest, period - rest) + low

    def two(self, at: torch.Tensor) -> Taps:
        """Both neighbours of each position."""
        at = self.inside(self.position(at))
        first = at.floor()
        behind = at - first
        return [(first, 1 - behind), (first + 1, behind)]

    def four(self, at: torch.Tensor) -> Taps:
        """Four neighbours, two on each side."""
        at = self.position(at)
        second = at.floor()
        weights = enumerate(_cubic(at - second), -1)
        return [(self.inside(second + i), weight) for i, weight in weights]


def _cubic(t: torch.Tensor) -> list[torch.Tensor]:
    """Weights of four neighbours, `t` behind the second: Keys's cubic convolution with a = -0.75."""
    a = -0.75

    def near(d: torch.Tensor) -> torch.Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: torch.Tensor) -> torch.Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _read(pixels: torch.Tensor, y: torch.Tensor, x: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """`pixels` (N, C, height * width) at integral positions (N, 1, P), 0 outside of the image: (N, C, P)."""
    is_inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    x, y = (torch.where(is_inside, at, 0).to(torch.int64) for at in (x, y))
    index = (y * width + x).expand(-1, pixels.shape[1], -1)
    return torch.where(is_inside, pixels.gather(2, index), 0)


GRIDS: dict[Any, Callable[..., Any]] = {aten.grid_sampler_2d.default: _grid_sampler_2d}
"""Operator -> what it is in terms of others."""
