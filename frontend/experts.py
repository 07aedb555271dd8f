"""Products of groups of rows, each with a matrix of its own, as formulas: mixtures of experts.

    torch._grouped_mm(a, b, offs=[3, 3, 8])      # rows 0 to 2 by b[0], none by b[1], rows 3 to 7 by b[2]

Groups are padded to whole tiles of the same number of rows. The product is a batch of products, one for each
tile, which picks the matrix of its group. A tile, or a row, is in the group that follows all groups that end
at or before it. With tiles of 2 rows:

    tile    0     1     2     3     4
    group   0     0     2     2     2
    rows    0 1   2 -   3 4   5 6   7 -

The gradient of the matrices sums over the rows of each group, [m, rows] by [rows, n]. It is a batch of
products with a tile each, as long as an average group, that are added to the matrices of their groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .eager_strides import with_eager_strides

aten = torch.ops.aten

MOST_ROWS = 32
"""Rows of a tile, at most. A tile of 32 rows has 80 % of the speed of many rows, one of 16 has 70 %: matrices
of 256 by 512, f32, one core of an AMD EPYC with AVX-512."""


FEW_GROUPS = 16
"""Groups, at most, each of which looks at all tiles to add its own. Adding each tile to its group in order
takes as long for 17 groups: matrices of 256 by 512, f32, one core of an AMD EPYC with AVX-512."""


def _log2_of_tile(rows: int | torch.SymInt, groups: int, most: int | None) -> int:
    """The base-2 logarithm of the rows of a tile, the least power of two that holds an average group."""
    expected = rows.node.hint if isinstance(rows, torch.SymInt) else rows
    average = MOST_ROWS if expected is None else -(-expected // groups)
    return max((average if most is None else min(most, average)) - 1, 0).bit_length()


def _is_zero(extent: object) -> bool:
    """Whether an extent is 0; one that changes from call to call is not asked."""
    return isinstance(extent, int) and extent == 0


def _pick(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return aten.index_select(values, 0, index)


def _group_of(place: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The group that each place is in; the last one for places after all groups."""
    passed = (place.unsqueeze(-1) >= ends).sum(-1)
    return passed.clamp(0, ends.shape[0] - 1)


@dataclass(frozen=True)
class _Tiles:
    """Where the rows of groups stand in tiles of `size` rows."""

    size: int
    group: torch.Tensor
    """The group of each tile."""
    source: torch.Tensor
    """The row that each place of each tile holds, [tiles, size], inside the rows; of places of none, any."""
    is_held: torch.Tensor
    """Whether a place of a tile holds a row of the tile's group, [tiles, size]."""
    starts: torch.Tensor
    first: torch.Tensor
    """The first row and the first tile of each group."""
    ends: torch.Tensor

    @classmethod
    def of(
        cls, rows: Any, groups: int, offsets: torch.Tensor, most: int | None
    ) -> _Tiles:
        """Tiles of at most `most` rows, of `rows`, an int or a SymInt.

        Offsets that decrease, or are more than `rows`, stop the program.
        """
        where = offsets.device
        shift = _log2_of_tile(rows, groups, most)
        size = 1 << shift
        count = (rows + groups * (size - 1)) >> shift  # where all groups but one end in a tile of one row
        tile = torch.arange(count, device=where)
        ends = offsets.to(torch.int64)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        last = torch.cumsum((ends - starts + (size - 1)) >> shift, 0)
        first = torch.cat([last.new_zeros(1), last[:-1]])
        group = _group_of(tile, last)
        source = _pick(starts, group) + (tile - _pick(first, group)) * size
        source = source.unsqueeze(-1) + torch.arange(size, device=where)
        allowed = torch.arange(rows + 1, device=where).unsqueeze(-1)
        checked = aten.embedding(allowed, torch.where(ends >= starts, ends, -1)).squeeze(-1)
        is_held = source < _pick(checked, group).unsqueeze(-1)
        return cls(size, group, source.clamp(0, rows - 1), is_held, starts, first, checked)

    def pick(self, values: torch.Tensor) -> torch.Tensor:
        """The rows of `values` that stand in each tile, [tiles, size, columns]."""
        return _pick(values, self.source.reshape(-1)).reshape(*self.source.shape, values.shape[1])


def grouped_rows(left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Rows (s, k) by the matrices (g, k, n) of their groups, which end at `offsets` (g); 0 for rows of none.

    Offsets that decrease, or are more than s, stop the program.
    """
    rows, groups = left.shape[0], right.shape[0]
    if groups == 0 or _is_zero(rows):
        return left.new_zeros((rows, right.shape[2]))
    tiles = _Tiles.of(rows, groups, offsets, MOST_ROWS)
    product = torch.bmm(tiles.pick(left), _pick(right, tiles.group)).reshape(-1, right.shape[2])
    row = torch.arange(rows, device=left.device)
    group = _group_of(row, offsets.to(torch.int64))
    place = _pick(tiles.first, group) * tiles.size + row - _pick(tiles.starts, group)
    result = _pick(product, place.clamp(0, product.shape[0] - 1))
    return torch.where((row < tiles.ends[-1]).unsqueeze(-1), result, 0)


def grouped_sums(left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Columns (s, m) by columns (s, n), summed over the rows of each group, which end at `offsets` (g).

    Gives (g, m, n), 0 for groups of no rows. Offsets that decrease, or are more than s, stop the program.
    """
    rows, groups = left.shape[0], offsets.shape[0]
    shape = groups, left.shape[1], right.shape[1]
    if groups == 0 or _is_zero(rows):
        return left.new_zeros(shape)
    tiles = _Tiles.of(rows, groups, offsets, None)
    wide = torch.float64 if left.dtype == torch.float64 else torch.float32
    held = tiles.is_held.unsqueeze(-1)
    factors = [torch.where(held, tiles.pick(each), 0).to(wide) for each in (left, right)]
    product = torch.bmm(factors[0].mT, factors[1])
    return _sums_of_groups(product, tiles.group, groups).to(left.dtype)


def _sums_of_groups(values: torch.Tensor, group: torch.Tensor, groups: int) -> torch.Tensor:
    """The sum of the matrices of `values` that are of each group."""
    if groups > FEW_GROUPS:
        return values.new_zeros((groups, *values.shape[1:])).index_add(0, group, values)
    is_own = group == torch.arange(groups, device=group.device).unsqueeze(-1)
    return torch.where(is_own[:, :, None, None], values, 0).sum(1)


def _gradients(
    left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor, grad: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `grouped_rows`."""
    return grouped_rows(grad, right.mT, offsets), grouped_sums(left, grad, offsets)


def _grouped_mm(
    left: torch.Tensor,
    right: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """Groups of rows of `left`, of columns of `right`, or of what is summed over."""
    if bias is not None or out_dtype not in (None, left.dtype):
        return NotImplemented
    if offs is None:
        return torch.bmm(left, right)
    match left.ndim, right.ndim:
        case 2, 3:
            return grouped_rows(left, right, offs)
        case 3, 2:
            return grouped_rows(right.mT, left.mT, offs).mT
        case 2, 2:
            return grouped_sums(left.mT, right, offs)
        case _:
            return NotImplemented


def _without_padding(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for calls in which tiles have one row each; other calls stay."""

    def either(left: torch.Tensor, right: torch.Tensor, offs: Any = None, *rest: Any, **named: Any) -> Any:
        rows, groups = left.shape[0], right.shape[0]
        if right.ndim == 2 and offs is not None:
            rows, groups = right.shape[0], offs.shape[0]
        known = left.ndim == 2 and not isinstance(rows, torch.SymInt)
        return rule(left, right, offs, *rest, **named) if known and rows <= groups else NotImplemented

    return either


def grouped_products(*, calls_pytorch: bool) -> dict[Any, Callable[..., Any]]:
    """Operator -> its formula; without padding only where PyTorch may be called, whose kernels have none.

    The operator of transformers is there once its module is loaded.
    """
    rules: dict[Any, Callable[..., Any]] = {aten._grouped_mm.default: _grouped_mm}
    of_transformers = {"grouped_mm_fallback": grouped_rows, "grouped_mm_fallback_backward": _gradients}
    for name, rule in of_transformers.items():
        if (operator := getattr(torch.ops.transformers, name, None)) is not None:
            rules[operator.default] = rule
    if calls_pytorch:
        rules = {op: _without_padding(rule) for op, rule in rules.items()}
    return {op: with_eager_strides(op, rule) for op, rule in rules.items()}
