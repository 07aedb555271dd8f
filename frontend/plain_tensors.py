"""Which tensors a program may be compiled for: those whose operators are PyTorch's.

torch.export traces a tensor of a subclass as a plain one: what the subclass does in `__torch_function__` or
`__torch_dispatch__` would be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ..errors import UnsupportedOpError

_PLAIN: Any = torch.Tensor


def check_plain(module: torch.nn.Module, inputs: object) -> None:
    """Raise UnsupportedOpError for an input, parameter or buffer with operators of its own."""
    for what, tensor in _tensors_of(module, inputs):
        if tensor.is_nested:
            raise UnsupportedOpError(f"{what} is a nested tensor; nested tensors are not supported")
        if has_own_operators(type(tensor)):
            raise UnsupportedOpError(
                f"{what} is a {type(tensor).__name__}, a tensor that has operators of its own, which are not "
                "supported: compile the program for plain tensors, such as .as_subclass(torch.Tensor) gives"
            )


def has_own_operators(kind: Any) -> bool:
    """Whether a class of tensors says what operators do; fake tensors do as plain ones."""
    if kind is torch.Tensor or kind is torch.nn.Parameter or issubclass(kind, FakeTensor):
        return False
    function = getattr(kind.__torch_function__, "__func__", None)
    own_function = function is not None and function is not _PLAIN.__torch_function__.__func__
    return own_function or kind.__torch_dispatch__ is not _PLAIN.__torch_dispatch__


def _tensors_of(module: torch.nn.Module, inputs: object) -> Iterator[tuple[str, torch.Tensor]]:
    for path, leaf in pytree.tree_leaves_with_path(inputs):
        if isinstance(leaf, torch.Tensor):
            yield f"input {pytree.keystr(path[1:])}", leaf
    yield from ((f"parameter '{name}'", value) for name, value in module.named_parameters())
    yield from ((f"buffer '{name}'", value) for name, value in module.named_buffers())
