"""Tensors that a program closes over: torch.export runs operators on those of one element while it traces.

    count = torch.tensor(0)
    def program(x): count.add_(1); return x * count

The program changes `count`, its export must not. If the program also decides by the value of such a tensor,
export decides once for all: that is refused for a program that changes one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from ..errors import UnsupportedOpError

_functorch: Any = cast(Any, torch)._C._functorch
_is_functional: Any = cast(Any, torch)._is_functional_tensor

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Classes of tensors with memory; those of a trace are of others."""

READING = {
    "item",
    "tolist",
    "numpy",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
    "__complex__",
}
"""Functions that give values of a tensor to Python."""


class Constants:
    """The tensors of one element that a program uses and that are none of its arguments."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """By identity: the tensor, and a copy of what it was."""
        self._is_read = False

    def see(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Remember what the constants in a call are before it."""
        self._is_read |= getattr(function, "__name__", "") in READING
        for value in pytree.tree_leaves(arguments):
            if type(value) in PLAIN and value.numel() == 1 and id(value) not in self._before:
                if _functorch.is_functorch_wrapped_tensor(value) or _is_functional(value):
                    continue
                with _disable_current_modes():
                    self._before[id(value)] = value, value.detach().clone()

    @contextmanager
    def kept(self) -> Generator[None]:
        """Set constants as they were in the end. Raises UnsupportedOpError if one decides and one changes."""
        self._before.clear()
        self._is_read = False
        try:
            yield
        finally:
            # Not under `no_grad`: export would see it, and cut the graph there.
            with _disable_current_modes():
                changed = [(t, was) for t, was in self._before.values() if not torch.equal(t, was)]
                for tensor, was in changed:
                    tensor.detach().copy_(was)
        if changed and self._is_read:
            raise UnsupportedOpError(
                "this program changes a tensor of one element that it closes over, and decides by the value "
                "of a tensor; make it a buffer of a module, or compute with the tensor instead"
            )
