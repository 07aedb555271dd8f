"""Python values among a program's inputs that torch.export does not take: dtypes, devices, slices.

They are constants of the program. Export sees None in their place, and the program gets them back. Among its
results shapes stay shapes.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

CLOSED_OVER = (
    torch.dtype,
    torch.device,
    torch.memory_format,
    torch.layout,
    slice,
    types.EllipsisType,
)
"""Types of inputs that a program is compiled for, and that export refuses."""


@dataclass(frozen=True)
class Inputs:
    """A program's inputs as export takes them, and what was taken out."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    closed_over: Mapping[int, object] = field(default_factory=lambda: dict[int, object]())
    """What was replaced by None, by flat position."""


def close_over(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Inputs:
    """Replace by None what export refuses."""
    flat, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    closed = {i: leaf for i, leaf in enumerate(flat) if isinstance(leaf, CLOSED_OVER)}
    if not closed:
        return Inputs(tuple(args), dict(kwargs))
    visible = [None if i in closed else leaf for i, leaf in enumerate(flat)]
    new_args, new_kwargs = pytree.tree_unflatten(visible, spec)
    return Inputs(new_args, new_kwargs, closed)


def distinct(inputs: Inputs, module: torch.nn.Module) -> Inputs:
    """The inputs as tensors that are no two the same, nor a parameter or buffer of the module.

    Export takes the same tensor for the same input, and its program would read only one of them ever after.
    """
    flat, spec = pytree.tree_flatten((inputs.args, inputs.kwargs))
    seen = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    changed = False
    for position, value in enumerate(flat):
        if not isinstance(value, torch.Tensor):
            continue
        if id(value) in seen:
            flat[position] = value.detach().clone()
            changed = True
        seen.add(id(value))
    if not changed:
        return inputs
    args, kwargs = pytree.tree_unflatten(flat, spec)
    return Inputs(args, kwargs, inputs.closed_over)


def with_closed_over(
    function: Callable[..., Any], closed_over: Mapping[int, object]
) -> Callable[..., Any]:
    """`function`, with what export does not see put back among its inputs."""
    if not closed_over:
        return function

    def forward(*args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten((args, kwargs))
        restored = [closed_over.get(i, leaf) for i, leaf in enumerate(flat)]
        args, kwargs = pytree.tree_unflatten(restored, spec)
        return function(*args, **kwargs)

    if isinstance(function, types.FunctionType | types.MethodType):
        return functools.wraps(function)(forward)  # export names inputs by its parameters
    return forward


def unflatten(flat: Sequence[Any], spec: pytree.TreeSpec) -> Any:
    """The same as `pytree.tree_unflatten`, but a `torch.Size` is none of its tuples."""
    return _with_shapes(iter(flat), spec) if _has_shapes(spec) else pytree.tree_unflatten(flat, spec)


def _has_shapes(spec: pytree.TreeSpec) -> bool:
    return spec.type is torch.Size or any(map(_has_shapes, spec.children()))


def _with_shapes(leaves: Iterator[Any], spec: pytree.TreeSpec) -> Any:
    if spec.is_leaf():
        return next(leaves)
    children = [_with_shapes(leaves, child) for child in spec.children()]
    if spec.type is torch.Size:
        return torch.Size(children)
    leaf = pytree.tree_structure(None)
    flat = pytree.TreeSpec(spec.type, spec.context, [leaf] * len(children))
    return pytree.tree_unflatten(children, flat)
