"""`F.embedding_bag` in terms of other operators: rows of a table, folded by bags.

    F.embedding_bag(indices, weight, offsets, mode="sum")

becomes

    zeros(bags, width).index_add(0, bag, F.embedding(indices, weight))

where `bag` says for each index how many bags begin at or before it. Bags of equal length, the rows of indices
with two axes, are an axis that is folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The fold of each bag's rows of `weight`, [bags, width]; the parameters are those of `F.embedding_bag`.

    Calls that eager refuses, and those whose gradient is not that of these operators, are left to PyTorch.
    """
    factors = per_sample_weights
    learns = torch.is_grad_enabled() and weight.requires_grad
    bags = None
    if _is_taken(input, weight, factors, mode, padding_idx) and not (
        learns and (scale_grad_by_freq or sparse or mode == "max")
    ):
        bags = _bags_of(input, offsets, include_last=include_last_offset)
    if bags is None:
        return F.embedding_bag(
            input,
            weight,
            offsets,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            per_sample_weights,
            include_last_offset,
            padding_idx,
        )
    if max_norm is not None:  # eager changes the table, too
        with torch.no_grad():
            torch.embedding_renorm_(weight.detach(), input.reshape(-1), max_norm, norm_type)
    rows = F.embedding(input, weight)
    wide = rows if weight.dtype == torch.float64 else rows.float()
    if factors is not None:
        wide = wide * factors.unsqueeze(-1)
    counts = None
    if padding_idx is not None:
        counts = input != padding_idx % weight.shape[0]
    return _folded(wide, counts, bags, mode).to(weight.dtype)


def _is_taken(
    input: Tensor, weight: Tensor, factors: Tensor | None, mode: str, padding: int | None
) -> bool:
    """Whether eager takes a call, as far as these arguments go."""
    if weight.ndim != 2 or not weight.is_floating_point() or mode not in ("sum", "mean", "max"):
        return False
    if padding is not None and not -weight.shape[0] <= padding < weight.shape[0]:
        return False
    return factors is None or (
        mode == "sum" and factors.dtype == weight.dtype and factors.shape == input.shape
    )


@dataclass(frozen=True)
class _Bags:
    """How to fold what has the axes of the indices, and any others behind, along the bags' elements."""

    sum: Callable[[Tensor], Tensor]
    maximum: Callable[[Tensor], Tensor]
    """Of an empty bag it is negative infinity."""
    first: Callable[[Tensor], Tensor]
    """Whether each index is the first of its bag that counts."""


def _bags_of(input: Tensor, offsets: Tensor | None, *, include_last: bool) -> _Bags | None:
    """The bags of a call, or None for one that eager refuses."""
    if input.ndim == 2 and offsets is None and input.shape[1] != 0:
        return _rows()
    if input.ndim != 1 or offsets is None or offsets.ndim != 1 or offsets.shape[0] == 0:
        return None
    return _segments(input, offsets, include_last=include_last)


def _rows() -> _Bags:
    """Bags that are the rows of indices with two axes."""
    return _Bags(
        sum=lambda value: value.sum(1),
        maximum=lambda value: value.amax(1),
        first=lambda counts: counts & (counts.long().cumsum(1) == 1),
    )


def _segments(input: Tensor, offsets: Tensor, *, include_last: bool) -> _Bags:
    """Bags that begin at `offsets`, the last of which may be the end of all.

    An index before the first bag, or behind that end, is of no bag: the scatter refuses it.
    """
    extent = input.shape[0]
    count = offsets.shape[0] - include_last
    starts = torch.zeros(extent + 1, dtype=torch.int64, device=input.device)
    starts = starts.index_add(0, offsets.long(), torch.ones_like(offsets, dtype=torch.int64))
    bag = starts.cumsum(0)[:extent] - 1
    place = torch.arange(extent, device=input.device)

    def full(value: Tensor, start: float) -> Tensor:
        return torch.full((count, *value.shape[1:]), start, dtype=value.dtype, device=value.device)

    def first(counts: Tensor) -> Tensor:
        places = torch.where(counts, place, extent)
        firsts = full(places, extent).index_reduce(0, bag, places, "amin")
        return counts & (firsts[bag] == place)

    return _Bags(
        sum=lambda value: full(value, 0).index_add(0, bag, value),
        maximum=lambda value: full(value, -math.inf).index_reduce(0, bag, value, "amax"),
        first=first,
    )


def _folded(rows: Tensor, counts: Tensor | None, bags: _Bags, mode: str) -> Tensor:
    """The rows of each bag folded, those that do not count left out; 0 for a bag without any."""
    if mode == "sum":
        return bags.sum(rows if counts is None else torch.where(counts.unsqueeze(-1), rows, 0))
    every = torch.ones(rows.shape[:-1], dtype=torch.bool, device=rows.device)
    size = bags.sum((every if counts is None else counts).to(rows.dtype)).unsqueeze(-1)
    if mode == "mean":
        return _folded(rows, counts, bags, "sum") / size.clamp(min=1)
    counts = every if counts is None else counts
    # In eager no number is greater than a NaN, and a NaN than no number: one that is first stays.
    taken = bags.first(counts).unsqueeze(-1) | (counts.unsqueeze(-1) & ~rows.isnan())
    made = bags.maximum(torch.where(taken, rows, -math.inf))
    return torch.where(size > 0, made, 0)
