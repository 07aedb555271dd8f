"""Borders, windows and enlarged images as views and concatenations.

PyTorch decomposes these operators into tensors of positions, which a program would compute at every call, and
lookups by them, which nothing can fuse with. A rule may leave a call to PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten

Pad = Callable[[torch.Tensor, int, int, int], tuple[torch.Tensor, torch.Tensor]]
"""What stands in front of an axis and behind it, so many elements each."""


def _is_plain(*values: Any) -> bool:
    """Whether sizes are known numbers."""
    return all(isinstance(value, int) for value in values)


def _mirrored(
    value: torch.Tensor, dim: int, before: int, after: int
) -> tuple[torch.Tensor, torch.Tensor]:
    first = value.narrow(dim, 1, before).flip(dim)
    return first, value.narrow(dim, value.shape[dim] - 1 - after, after).flip(dim)


def _wrapped(
    value: torch.Tensor, dim: int, before: int, after: int
) -> tuple[torch.Tensor, torch.Tensor]:
    first = value.narrow(dim, value.shape[dim] - before, before)
    return first, value.narrow(dim, 0, after)


def _repeated(
    value: torch.Tensor, dim: int, before: int, after: int
) -> tuple[torch.Tensor, torch.Tensor]:
    ends = (before, value.narrow(dim, 0, 1)), (after, value.narrow(dim, value.shape[dim] - 1, 1))
    first, last = (end.expand([*value.shape[:dim], n, *value.shape[dim + 1 :]]) for n, end in ends)
    return first, last


def _bordered(pad: Pad) -> Callable[..., Any]:
    """Pads the last axes; `padding` has two numbers for each, the last axis first."""

    def rule(value: torch.Tensor, padding: Sequence[int]) -> Any:
        if not _is_plain(*padding) or min(padding) < 0:
            return NotImplemented
        for number in range(len(padding) // 2):
            before, after = padding[2 * number : 2 * number + 2]
            if before or after:
                dim = value.ndim - 1 - number
                first, last = pad(value, dim, before, after)
                value = torch.cat([first, value, last], dim)
        return value

    return rule


def _circular(value: torch.Tensor, padding: Sequence[int]) -> Any:
    """Around what a border of negative width leaves."""
    if not _is_plain(*padding):
        return NotImplemented
    kept = torch.nn.functional.pad(value, [min(width, 0) for width in padding])
    return _bordered(_wrapped)(kept, [max(width, 0) for width in padding])


def _nearest(value: torch.Tensor, output_size: Sequence[int], *scales: float | None) -> Any:
    """Each element so many times, along the axes behind the first two, if that is a power of 2."""
    sizes = value.shape[2:]
    if not _is_plain(*sizes, *output_size) or 0 in sizes:
        return NotImplemented
    factors = [new / old for new, old in zip(output_size, sizes, strict=True)]
    asked = [scale or factor for scale, factor in zip(scales, factors, strict=False)]
    if asked != factors[: len(asked)] or any(factor not in (1, 2, 4, 8, 16) for factor in factors):
        return NotImplemented
    made = value
    for number, factor in enumerate(factors):
        dim, times = 3 + number, int(factor)
        shape = [*made.shape[:dim], times, *made.shape[dim:]]
        made = made.unsqueeze(dim).expand(shape).flatten(dim - 1, dim)
    return made


def _nearest_by(
    value: torch.Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> Any:
    """The same, by sizes or by scales."""
    if output_size is not None:
        return _nearest(value, output_size)
    if not _is_plain(*value.shape) or scale_factors is None:
        return NotImplemented
    sizes = zip(value.shape[2:], scale_factors, strict=True)
    return _nearest(value, [int(size * scale) for size, scale in sizes], *scale_factors)


def _windows(
    value: torch.Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """Windows of images as columns: channels and places in a window by windows."""
    if value.ndim != 4 or tuple(dilation) != (1, 1):
        return NotImplemented
    (high, wide), (down, right) = kernel_size, stride
    padded = torch.nn.functional.pad(value, (padding[1], padding[1], padding[0], padding[0]))
    found = padded.unfold(2, high, down).unfold(3, wide, right)
    return found.permute(0, 1, 4, 5, 2, 3).flatten(4).flatten(1, 3)


RESAMPLING: dict[Any, Callable[..., Any]] = {
    aten._pad_circular.default: _circular,
    aten.im2col.default: _windows,
    **{
        getattr(aten, f"{name}_pad{axes}d").default: _bordered(pad)
        for name, pad in (("reflection", _mirrored), ("replication", _repeated))
        for axes in (1, 2, 3)
    },
    **{getattr(aten, f"upsample_nearest{axes}d").vec: _nearest_by for axes in (1, 2, 3)},
    **{getattr(aten, f"upsample_nearest{axes}d").default: _nearest for axes in (1, 2, 3)},
}
"""Operator -> what it is in terms of others."""
