"""Transposed convolutions with a stride, phase by phase.

    conv_transpose1d(x, w, stride=2)
      ->  stack([conv_transpose1d(x, w[..., 0::2]), conv_transpose1d(x, w[..., 1::2])], -1).flatten(-2)

Positions that leave the same remainder when divided by the stride read the same weights, every `stride`-th
one: each phase is a contraction with no other weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import torch.nn.functional as F

aten = torch.ops.aten
Tensor = torch.Tensor

MOST_PHASES = 4
"""Of a transposed convolution that is computed phase by phase."""

SHORT_LINE = 16
"""Elements of a line up to which phases pay off though all have the same number of taps and of results:
measured on two cores of an AMD Zen 5. Longer lines are dealt to the phases in one kernel."""


def per_axis(rank: int, *options: Sequence[int]) -> list[list[int]]:
    """Options of a convolution with a number for each of its axes: one number is that of all of them."""
    return [list(option) * (rank if len(option) == 1 else 1) for option in options]


def transposed_convolution(
    value: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """`aten.convolution`, where it is transposed and has few phases, by phase; else it stays whole."""
    rank = value.dim() - 2
    if not transposed or rank < 1:
        return NotImplemented
    stride, padding, dilation, more = per_axis(rank, stride, padding, dilation, output_padding)
    extents, kernel = value.shape[2:], weight.shape[2:]
    known = not any(isinstance(size, torch.SymInt) for size in (*extents, *kernel))
    few = 1 < prod(stride) <= MOST_PHASES and max(dilation) == 1
    if not (known and few and value.device.type == "cpu"):
        return NotImplemented
    counts = [
        (extent - 1) * step - 2 * border + taps + extra
        for extent, step, border, taps, extra in zip(
            extents, stride, padding, kernel, more, strict=True
        )
    ]
    even = not any(n % step for step, *of in zip(stride, kernel, counts, strict=True) for n in of)
    overlap = any(taps > step for taps, step in zip(kernel, stride, strict=True))
    if not overlap or (even and extents[-1] > SHORT_LINE):
        return NotImplemented
    return _by_phase(value, weight, bias, stride, padding, counts, groups)


def _by_phase(
    value: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    extents: Sequence[int],
    groups: int,
) -> Tensor:
    """The results of all phases, in turn, up to `extents`.

    To position i of an axis belong the elements o of `value` with a tap i + padding - o * stride: the first
    of these taps is the remainder of i + padding, the others are `stride` further each.
    """
    counts = [-(-n // step) for n, step in zip(extents, stride, strict=True)]
    phases = [range(step) for step in stride]
    parts: dict[tuple[int, ...], Tensor] = {}
    for phase in itertools.product(*phases):
        places = [
            divmod(r + border, step) for r, border, step in zip(phase, padding, stride, strict=True)
        ]
        taps = weight
        for axis, ((_, tap), step) in enumerate(zip(places, stride, strict=True), 2):
            taps = taps[(slice(None),) * axis + (slice(tap, None, step),)]
        first = [place for place, _ in places]
        parts[phase] = _of_phase(value, taps, bias, first, counts, groups)
    for axis in reversed(range(len(stride))):
        outer = itertools.product(*phases[:axis])
        parts = {
            phase: torch.stack([parts[*phase, r] for r in phases[axis]], axis + 3)
            .flatten(axis + 2, axis + 3)
            .narrow(axis + 2, 0, extents[axis])
            for phase in outer
        }
    return parts[()]


def _of_phase(
    value: Tensor,
    taps: Tensor,
    bias: Tensor | None,
    first: Sequence[int],
    counts: Sequence[int],
    groups: int,
) -> Tensor:
    """So many positions of a phase, from the first ones on; nothing but the bias where no window reaches."""
    if 0 in taps.shape:
        shape = [value.shape[0], taps.shape[1] * groups, *counts]
        nothing = value.new_zeros(shape)
        return nothing if bias is None else nothing + bias.view(-1, *[1] * len(counts))
    borders: list[int] = []
    around: list[int] = []
    for axis, (start, count) in enumerate(zip(first, counts, strict=True), 2):
        # What begins further out begins at zeros, and what ends there ends at some.
        left = count + 2 * start - (value.shape[axis] + taps.shape[axis] - 1)
        borders.append(start + max(-left, 0))
        around = [max(-left, 0), max(left, 0), *around]
    ones, nothing = [1] * len(counts), [0] * len(counts)
    value = F.pad(value, around)
    return aten.convolution(value, taps, bias, ones, borders, ones, True, nothing, groups)
