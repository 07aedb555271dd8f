"""Whether numpy arrays that a program changes share memory with its other arguments, or with themselves.

A compiled program reads all arguments before it changes one. In PyTorch an operator sees each change before
it, also in another tensor of the same memory. So a call with such arrays is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..errors import UsageError

MAX_WORK = 10_000
"""Candidate solutions that numpy tries at most to decide whether two strided arrays share an element."""


def check_changed(names: Sequence[str], values: Sequence[Any], changed: Collection[int]) -> None:
    """Raise UsageError if an array that a program changes may not be, has an element twice, or shares one.

    `changed` are the positions of the arrays that it changes. Other values than arrays do not count.
    """
    spans: list[tuple[int, int, int]] = []
    for place, value in enumerate(values):
        if not isinstance(value, np.ndarray | np.generic):
            continue
        if place in changed:
            _check_array(names[place], value)
        if isinstance(value, np.ndarray) and value.size:
            spans.append((*_span(value), place))
    spans.sort()
    before: list[tuple[int, int, int]] = []
    for span in spans:
        begin, _, place = span
        before = [each for each in before if each[1] > begin]
        for _, _, other in before:
            if (place in changed or other in changed) and _share(values[place], values[other]):
                first, second = (place, other) if place in changed else (other, place)
                raise UsageError(
                    f"argument '{names[first]}': the program changes it, and it may share memory with "
                    f"'{names[second]}'; pass a copy"
                )
        before.append(span)


def _check_array(name: str, array: Any) -> None:
    if not array.flags.writeable:
        raise UsageError(f"argument '{name}': the program changes it, and it is read only")
    if _repeats_elements(array):
        raise UsageError(
            f"argument '{name}': the program changes it, and some of its elements are the same memory; "
            "pass a copy"
        )


def _span(array: Any) -> tuple[int, int]:
    """The addresses of an array's first byte, and of that behind its last."""
    address: int = array.__array_interface__["data"][0]
    if array.flags.c_contiguous:
        return address, address + array.nbytes
    reaches = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    begin = address + sum(reach for reach in reaches if reach < 0)
    return begin, address + sum(reach for reach in reaches if reach > 0) + array.itemsize


def _repeats_elements(array: Any) -> bool:
    """Whether two positions may be the same memory: not if each stride is beyond all smaller axes."""
    if array.flags.c_contiguous or not array.size:
        return False
    reach = array.itemsize - 1
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True)):
        if extent > 1 and stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def _share(one: Any, other: Any) -> bool:
    """Whether two arrays have a byte of memory in common, or that takes too long to decide."""
    try:
        shares: Any = np.shares_memory
        return shares(one, other, MAX_WORK)
    except np.exceptions.TooHardError:
        return True
