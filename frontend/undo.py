"""Runs of a program after which all tensors are as before: those that find out why and where it fails."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

STATISTICS = ("running_mean", "running_var")
"""Arguments that operators of PyTorch may change without a word about it in their schemas."""


def is_written(argument: Any) -> bool:
    """Whether an operator may change an argument, by its schema."""
    alias = argument.alias_info
    return (alias is not None and alias.is_write) or argument.name in STATISTICS


class _Changes(TorchDispatchMode):
    """Remembers what tensors were before an operator changed them."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.before: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._seen: set[tuple[object, ...]] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if isinstance(func, HigherOrderOperator):
            # PyTorch refuses functions in it that change tensors.
            return func(*args, **(kwargs or {}))
        for place, argument in enumerate(func._schema.arguments):
            if is_written(argument):
                value = args[place] if place < len(args) else (kwargs or {}).get(argument.name)
                for each in pytree.tree_leaves(value):
                    if isinstance(each, torch.Tensor) and each.layout is torch.strided:
                        self._keep(each)
        return func(*args, **(kwargs or {}))

    def _keep(self, tensor: torch.Tensor) -> None:
        key = tensor.data_ptr(), tensor.dtype, *tensor.shape, *tensor.stride()
        if key not in self._seen:
            self._seen.add(key)
            self.before.append((tensor.detach(), tensor.detach().clone()))


@contextmanager
def undone(module: torch.nn.Module) -> Generator[None]:
    """Have all tensors, and the buffers of a module, in the end as they are now."""
    buffers = [
        (part, name, value)
        for part in module.modules()
        for name, value in part.named_buffers(recurse=False, remove_duplicate=False)
    ]
    changes = _Changes()
    try:
        # Under a mode Dynamo skips, for good, the function in which it traces `torch.while_loop`.
        with torch.compiler.set_stance("force_eager"), changes:
            yield
    finally:
        with torch.no_grad():
            for tensor, was in reversed(changes.before):
                tensor.copy_(was)
        for part, name, value in buffers:
            if getattr(part, name) is not value:
                setattr(part, name, value)
