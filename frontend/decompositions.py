"""Which operators PyTorch's own decompositions replace before import.

The table is that of torch.export, less what the dialect has, plus a few that export keeps whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

from ..dialects.torch import OPS_BY_ATEN

aten = torch.ops.aten

KEPT_BY_EXPORT = (
    aten.addmv.default,
    aten.dist.default,
    aten.grid_sampler_2d.default,
    aten.narrow_copy.default,
    aten.permute_copy.default,
    aten.slice_scatter.default,
    aten.unbind_copy.int,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
    aten.view_copy.default,
)
"""Operators that PyTorch can decompose exactly, though export does not."""


def _shift(function: Any) -> Callable[..., torch.Tensor]:
    def by_tensor(value: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        return function(value, amount)

    return by_tensor


def _shift_by_number(function: Any) -> Callable[..., torch.Tensor]:
    def by_number(value: torch.Tensor, amount: int) -> torch.Tensor:
        return function(value, aten.scalar_tensor(amount, dtype=value.dtype))

    return by_number


def _addbmm(
    value: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> torch.Tensor:
    """beta * value + alpha * the sum over the batch of left @ right, as one longer product."""
    rows = left.permute(1, 0, 2).reshape(left.shape[1], -1)
    columns = right.reshape(-1, right.shape[2])
    return torch.addmm(value, rows, columns, beta=beta, alpha=alpha)


OWN: dict[Any, Callable[..., Any]] = {
    aten.__lshift__.Tensor: _shift(aten.bitwise_left_shift.Tensor),
    aten.__rshift__.Tensor: _shift(aten.bitwise_right_shift.Tensor),
    aten.__lshift__.Scalar: _shift_by_number(aten.bitwise_left_shift.Tensor),
    aten.__rshift__.Scalar: _shift_by_number(aten.bitwise_right_shift.Tensor),
    aten.addbmm.default: _addbmm,
}
"""Operators that PyTorch has no decomposition of."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Operator -> what replaces it, for every operator that the dialect does not have."""
    table: dict[Any, Callable[..., Any]] = dict(torch.export.default_decompositions().items())
    table |= get_decompositions(list(KEPT_BY_EXPORT))
    table |= OWN
    return {op: rule for op, rule in table.items() if _contract_name(op) not in OPS_BY_ATEN}


def _contract_name(op: Any) -> str:
    return f"{op._schema.name.removeprefix('aten::')}.{op._overloadname}"
