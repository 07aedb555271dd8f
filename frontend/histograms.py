"""Histograms between given edges, as formulas of operators that the dialect has."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_float
from typing import Any

import torch

aten = torch.ops.aten

HELD: dict[torch.dtype, Callable[[float], float]] = {
    torch.float32: lambda number: c_float(number).value,
    torch.float64: float,
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), int),
}
"""Rounds a number to a type of values. Half types, in which eager's counts end at 256 or 2048, stay calls."""


def _histc(value: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Count the values in equal bins. The last one includes `max`; NaN and values beyond count nowhere.

    Equal edges stand for the range of the data, which eager checks to be finite: that stays a call. Eager has
    histograms of integers on a GPU only.
    """
    if value.dtype not in HELD:
        return NotImplemented
    rounded = HELD[value.dtype]
    min, max = rounded(min), rounded(max)
    if min >= max:
        return NotImplemented
    flat, span = value.reshape(-1), rounded(max - min)
    if value.is_floating_point():
        place = (flat - min) * bins / span
    else:
        flat = flat.to(torch.int64)
        place = (flat - min) * bins // span
    inside = (flat >= min) & (flat <= max)
    place = torch.where(inside, place, 0).to(torch.int64).clamp(0, bins - 1)
    counts = torch.zeros(bins, dtype=torch.int64, device=value.device)
    return counts.scatter_add(0, place, inside.to(torch.int64)).to(value.dtype)


HISTOGRAMS: dict[Any, Callable[..., Any]] = {aten.histc.default: _histc}
"""Operator -> its formula."""
