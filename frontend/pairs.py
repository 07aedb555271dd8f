"""Distances between rows, and bilinear forms, as formulas of operators that the dialect has."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _norms(differences: torch.Tensor, p: float) -> torch.Tensor:
    """The p-norms of rows; 0 for rows of nothing, of which PyTorch has no infinite norm."""
    if differences.shape[-1] == 0:
        return differences.new_zeros(differences.shape[:-1])
    return torch.linalg.vector_norm(differences, p, -1)


def _cdist(left: torch.Tensor, right: torch.Tensor, p: float, compute_mode: int | None) -> Any:
    """The distance of each row on the left (..., m, k) from each on the right (..., n, k)."""
    return _norms(left.unsqueeze(-2) - right.unsqueeze(-3), p)


def _pdist(value: torch.Tensor, p: float = 2) -> Any:
    """The distances of rows (n, k) from those after them, n (n - 1) / 2 of them."""
    if isinstance(value.shape[0], torch.SymInt):
        return NotImplemented
    rows, others = torch.triu_indices(value.shape[0], value.shape[0], 1, device=value.device)
    return _norms(value[rows] - value[others], p)


def _trilinear(
    first: torch.Tensor,
    second: torch.Tensor,
    third: torch.Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    """The product of three tensors, each with axes of 1 inserted, summed over axes."""
    axes = string.ascii_letters[: first.ndim + len(expand1)]
    without = (expand1, expand2, expand3, sumdim)
    one, two, three, result = (
        "".join(axis for i, axis in enumerate(axes) if i not in absent) for absent in without
    )
    return torch.einsum(f"{one},{two},{three}->{result}", first, second, third)


OF_PAIRS: dict[Any, Callable[..., Any]] = {
    aten._cdist_forward.default: _cdist,
    aten._pdist_forward.default: _pdist,
    aten._trilinear.default: _trilinear,
}
"""Operator -> its formula."""
