"""Products of groups of rows, each with a matrix of its own, as formulas: mixtures of experts.

    torch._grouped_mm(a, b, offs=[3, 3, 8])      # rows 0 to 2 by b[0], none by b[1], rows 3 to 7 by b[2]

Groups are padded to whole tiles of the same number of rows. The product is a batch of products, one for each
tile, which picks the matrix of its group. A tile, or a row, is in the group that follows all groups that end
at or before it. With tiles of 2 rows:

    tile    0     1     2     3     4
    group   0     0     2     2     2
    rows    0 1   2 -   3 4   5 6   7 -
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .eager_strides import with_eager_strides

aten = torch.ops.aten

MOST_ROWS = 32
"""Rows of a tile, at most. A tile of 32 rows has 80 % of the speed of many rows, one of 16 has 70 %: matrices
of 256 by 512, f32, one core of an AMD EPYC with AVX-512."""


def _log2_of_tile(rows: int | torch.SymInt, groups: int) -> int:
    """The base-2 logarithm of the rows of a tile, the least power of two that holds an average group."""
    expected = rows.node.hint if isinstance(rows, torch.SymInt) else rows
    average = MOST_ROWS if expected is None else min(MOST_ROWS, -(-expected // groups))
    return max(average - 1, 0).bit_length()


def _is_zero(extent: object) -> bool:
    """Whether an extent is 0; one that changes from call to call is not asked."""
    return isinstance(extent, int) and extent == 0


def _pick(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return aten.index_select(values, 0, index)


def _group_of(place: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The group that each place is in; the last one for places after all groups."""
    passed = (place.unsqueeze(-1) >= ends).sum(-1)
    return passed.clamp(0, ends.shape[0] - 1)


def grouped_rows(left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Rows (s, k) by the matrices (g, k, n) of their groups, which end at `offsets` (g); 0 for rows of none.

    Offsets that decrease, or are more than s, stop the program.
    """
    rows, groups, where = left.shape[0], right.shape[0], left.device
    if groups == 0 or _is_zero(rows):
        return left.new_zeros((rows, right.shape[2]))
    shift = _log2_of_tile(rows, groups)
    size = 1 << shift
    count = (rows + groups * (size - 1)) >> shift  # where all groups but one end in a tile of one row
    row, tile = (torch.arange(n, device=where) for n in (rows, count))
    ends = offsets.to(torch.int64)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    last = torch.cumsum((ends - starts + (size - 1)) >> shift, 0)
    first = torch.cat([last.new_zeros(1), last[:-1]])

    group = _group_of(tile, last)
    source = _pick(starts, group) + (tile - _pick(first, group)) * size
    source = (source.unsqueeze(-1) + torch.arange(size, device=where)).clamp(0, rows - 1)
    tiles = _pick(left, source.reshape(-1)).reshape(count, size, left.shape[1])
    product = torch.bmm(tiles, _pick(right, group)).reshape(count * size, right.shape[2])

    group = _group_of(row, ends)
    place = _pick(first, group) * size + row - _pick(starts, group)
    result = _pick(product, place.clamp(0, count * size - 1))
    allowed = torch.arange(rows + 1, device=where).unsqueeze(-1)
    checked = aten.embedding(allowed, torch.where(ends >= starts, ends, -1)).squeeze(-1)
    return torch.where((row < checked[-1]).unsqueeze(-1), result, 0)


def _grouped_mm(
    left: torch.Tensor,
    right: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """Groups of rows of `left`, or of columns of `right`; groups of what is summed over stay a call."""
    if bias is not None or out_dtype not in (None, left.dtype):
        return NotImplemented
    if offs is None:
        return torch.bmm(left, right)
    match left.ndim, right.ndim:
        case 2, 3:
            return grouped_rows(left, right, offs)
        case 3, 2:
            return grouped_rows(right.mT, left.mT, offs).mT
        case _:
            return NotImplemented


def _without_padding(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for calls in which tiles have one row each; other calls stay."""

    def either(left: torch.Tensor, right: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        rows, groups = left.shape[0], right.shape[0]
        known = left.ndim == 2 and right.ndim == 3 and not isinstance(rows, torch.SymInt)
        return rule(left, right, *args, **kwargs) if known and rows <= groups else NotImplemented

    return either


def grouped_products(*, calls_pytorch: bool) -> dict[Any, Callable[..., Any]]:
    """Operator -> its formula; without padding only where PyTorch may be called, whose kernels have none.

    The operator of transformers is there once its module is loaded.
    """
    rules: dict[Any, Callable[..., Any]] = {aten._grouped_mm.default: _grouped_mm}
    if (fallback := getattr(torch.ops.transformers, "grouped_mm_fallback", None)) is not None:
        rules[fallback.default] = grouped_rows
    if calls_pytorch:
        rules = {op: _without_padding(rule) for op, rule in rules.items()}
    return {op: with_eager_strides(op, rule) for op, rule in rules.items()}
