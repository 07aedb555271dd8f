"""Whether tensors that a program changes share memory with its other arguments.

A compiled program reads all arguments before it changes one. In PyTorch an operator sees each change before
it, also in another tensor of the same memory. So a call with such tensors is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import UsageError, also

MAX_WORK = 10_000
"""Candidate solutions that numpy tries at most to decide whether two strided arrays share an element."""


class _Memory:
    """Places in memory as numpy's array interface; nothing is read from them."""

    def __init__(self, address: int, size: int, shape: Sequence[int], strides: Sequence[int]):
        """`size` is that of an element, in bytes; strides are in elements."""
        self.__array_interface__ = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(stride * size for stride in strides),
            "typestr": f"|V{size}",
            "version": 3,
        }


def check_apart(names: Sequence[str], tensors: Sequence[Any], changed: Collection[int]) -> None:
    """Raise UsageError if a changed tensor has an element twice, or shares one with another tensor.

    `changed` are the positions of the tensors that a program changes. Other values than tensors do not count.
    """
    spans = sorted(
        (*span, position)
        for position, value in enumerate(tensors)
        if isinstance(value, torch.Tensor) and (span := _span(value)) is not None
    )
    open_spans: list[tuple[Any, int, int, int]] = []
    for span in spans:
        device, begin, _, position = span
        if position in changed and _repeats_elements(tensors[position]):
            raise also(UsageError, RuntimeError)(
                f"argument '{names[position]}': the program changes it in place, but some of its elements "
                "are the same memory (it is expanded, or its strides overlap); pass a .clone()"
            )
        open_spans = [each for each in open_spans if each[0] == device and each[2] > begin]
        for *_, other in open_spans:
            either = position in changed or other in changed
            if either and _share_elements(tensors[position], tensors[other]):
                _raise_shared(names, position, other, changed)
        open_spans.append(span)


def _raise_shared(names: Sequence[str], one: int, other: int, changed: Collection[int]) -> None:
    first, second = (one, other) if one in changed else (other, one)
    raise UsageError(
        f"the program changes argument '{names[first]}' in place, which shares memory with argument "
        f"'{names[second]}': a compiled program reads both before it changes one, PyTorch does not; "
        "pass a .clone() of one of them"
    )


def _span(tensor: torch.Tensor) -> tuple[tuple[str, int], int, int] | None:
    """The device, the address of a tensor's first byte, and that behind its last; None if it has none.

    The runtime refuses sparse tensors and those of a transform of torch.func, which have no such memory.
    """
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    try:
        begin = tensor.data_ptr()
    except RuntimeError:
        return None
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((extent - 1) * stride for extent, stride in steps)
    device = tensor.device.type, tensor.device.index or 0
    return device, begin, begin + (last + 1) * tensor.element_size()


def _repeats_elements(tensor: torch.Tensor) -> bool:
    """Whether two positions may be the same memory: not if each stride is beyond all smaller axes."""
    if tensor.is_contiguous():
        return False
    reach = 0
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent > 1 and stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def _share_elements(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have a byte of memory in common, or that takes too long to decide."""
    return _share(
        *(_Memory(t.data_ptr(), t.element_size(), t.shape, t.stride()) for t in (one, other))
    )


def overlap_partly(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two fake tensors of the same memory share an element that is at another position in each.

    Dynamic sizes are those of the example.
    """
    places = [
        (_hints(t.shape), _hints(t.stride()), *_hints([t.storage_offset()]), t.element_size())
        for t in (one, other)
    ]
    if places[0] == places[1] or 0 in (*places[0][0], *places[1][0]):
        return False
    return _share(
        *(_Memory(64 + at * size, size, shape, strides) for shape, strides, at, size in places)
    )


def _hints(numbers: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else n.node.hint for n in numbers)


def _share(one: _Memory, other: _Memory) -> bool:
    try:
        shares: Any = np.shares_memory
        return shares(np.asarray(one), np.asarray(other), MAX_WORK)
    except np.exceptions.TooHardError:
        return True
