"""Functions and modules with closed-over constants as modules that torch.export takes."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .python_values import with_closed_over


class FunctionModule(torch.nn.Module):
    """A plain function as a module, under the function's own signature.

    Keeps the structure of what the function returned: export's forgets types such as torch.Size.
    """

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.forward = _named_forward(function)
        self.out_spec: pytree.TreeSpec | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = super().__call__(*args, **kwargs)
        self.out_spec = pytree.tree_structure(result)
        return result


class ClosedOver(torch.nn.Module):
    """A module some of whose inputs are constants that export does not see."""

    def __init__(self, module: torch.nn.Module, closed_over: Mapping[int, object]):
        super().__init__()
        self.module = module
        self.forward = with_closed_over(module.forward, closed_over)


def _named_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` under the name `forward`: export keeps the source lines of such frames only."""
    if isinstance(function, types.MethodType):
        return types.MethodType(_named_forward(function.__func__), function.__self__)
    if not isinstance(function, types.FunctionType):
        return _forwarding(function)
    renamed = types.FunctionType(
        function.__code__.replace(co_name="forward"),
        function.__globals__,
        "forward",
        function.__defaults__,
        function.__closure__,
    )
    renamed.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(renamed, function, updated=())


def _forwarding(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `function`, which may be built in and without a signature."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return forward
