"""What scatters and sorts cost: as comparisons of everything with everything, and done in order.

Comparisons need no order between threads and become part of the kernels around them, but are as many as the
square of what there is to do. A CPU can do it in order instead, in a kernel of its own; so can PyTorch.

The figures are rough: two cores of an AMD Zen 5, PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..dialects.sizes import Extent, hinted
from ..machine.targets import get_target

TESTS_PER_SECOND = 2e9
FOLDS_PER_SECOND = 1e11
"""Tests of indices, and updates taken or not."""

COMPARISONS_PER_SECOND = 1.5e10
"""Comparisons of elements that are to be in order."""

UPDATES_PER_SECOND = 1e9
SLICED_UPDATES_PER_SECOND = 1e10
"""Updates in order, one by one, and slice by slice."""

SORTS_PER_SECOND = 1.2e9
PICKS_PER_SECOND = 2e9
"""Elements that are put in order, or looked at to find the first few."""

NTHS_PER_SECOND = 1e9
NTH_COMPARISONS = 512
"""Elements that are looked at to find a place of the order of a row, and what the row costs besides."""

KERNEL_SECONDS = 2e-6
"""What a kernel costs that could have been a part of another one."""


@dataclass(frozen=True)
class Work:
    """What it takes to compare everything with everything."""

    comparisons: int
    seconds: float


def runs_in_order(target: str) -> bool:
    """Whether what `target` runs may write where data says, in order; raises UsageError if there is none."""
    return not get_target(target).is_gpu


def scatter_work(
    shape: Sequence[Extent], indices: Sequence[Extent], count: Extent, axis: int, *, replaces: bool
) -> Work:
    """Each element of `shape` along `axis` against `count` updates, whose indices have a shape."""
    looked_at = indices if replaces else shape
    lists = hinted(prod(n for i, n in enumerate(indices) if i != axis))
    others = hinted(prod(n for i, n in enumerate(looked_at) if i != axis))
    pairs = hinted(shape[axis] * count)
    seconds = lists * pairs / TESTS_PER_SECOND + others * pairs / FOLDS_PER_SECOND
    return Work(others * pairs, seconds)


def scatter_in_order_seconds(
    shape: Sequence[Extent], indices: Sequence[Extent], count: Extent, axis: int
) -> float:
    """`count` updates along `axis` of `shape` one after the other, and a copy of what they change."""
    others = hinted(prod(n for i, n in enumerate(shape) if i != axis))
    sliced = axis != len(shape) - 1 and indices[-1] == 1
    rate = SLICED_UPDATES_PER_SECOND if sliced else UPDATES_PER_SECOND
    copied = others * hinted(shape[axis]) / SLICED_UPDATES_PER_SECOND
    return others * hinted(count) / rate + copied + KERNEL_SECONDS


def sort_work(shape: Sequence[Extent], axis: int) -> Work:
    """Each element along `axis` against each."""
    comparisons = hinted(prod(shape)) * hinted(shape[axis])
    return Work(comparisons, comparisons / COMPARISONS_PER_SECOND)


def sort_in_order_seconds(shape: Sequence[Extent], axis: int, count: Extent) -> float:
    """The first `count` along `axis`, in order."""
    few = hinted(count) * 4 <= hinted(shape[axis])
    return hinted(prod(shape)) / (PICKS_PER_SECOND if few else SORTS_PER_SECOND) + KERNEL_SECONDS


def nth_in_order_seconds(shape: Sequence[Extent], axis: int, count: Extent) -> float:
    """What stands at `count` places of the order along `axis`."""
    places = hinted(prod(n for i, n in enumerate(shape) if i != axis) * count)
    started = places * NTH_COMPARISONS / COMPARISONS_PER_SECOND
    return started + places * hinted(shape[axis]) / NTHS_PER_SECOND + KERNEL_SECONDS
