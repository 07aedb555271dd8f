"""Composite operators whose parts eager hides: it runs a kernel for all of it, or sets strides by hand.

    F.adaptive_avg_pool2d(x, 1)      # mean(...).as_strided_(...), if channels come last in x

The gradient of `as_strided` writes memory by strides, which the IR has not. Tracing asks for the parts of
composite operators before a backend sees them, so calls that Dynamo kept are replaced before AOTAutograd
traces them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch._C import DispatchKey  # pyright: ignore[reportPrivateUsage]
from torch._decomp import get_decompositions
from torch._prims_common import suggest_memory_format

from . import recurrent
from .embedding_bags import embedding_bag

aten = torch.ops.aten

CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


def _mean_of_all(value: torch.Tensor, output_size: Any, rank: int) -> Any:
    """Adaptive pooling to one element, along the last `rank` axes; None if it is to more."""
    sizes = output_size if isinstance(output_size, Sequence) else [output_size]
    if any(size != 1 for size in cast(Sequence[Any], sizes)):
        return None
    mean = value.mean(list(range(-rank, 0)), keepdim=True)
    if suggest_memory_format(value) not in CHANNELS_LAST:
        return mean
    images, channels, *ones = mean.shape
    last = mean.view(images, *ones, channels)
    return last.permute(0, rank + 1, *range(1, rank + 1))


def _pool(rank: int, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Average pooling with `rank` axes; `otherwise` gives calls that are to more than one element."""

    def pool(input: torch.Tensor, output_size: Any) -> Any:
        made = _mean_of_all(input, output_size, rank)
        return otherwise(input, output_size) if made is None else made

    return pool


def _pool_1d(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The same with one axis, which eager takes for images of one line."""

    def pool(input: torch.Tensor, output_size: Any) -> Any:
        made = _mean_of_all(input.unsqueeze(-2), output_size, 2)
        return otherwise(input, output_size) if made is None else made.squeeze(-2)

    return pool


def channel_shuffle(input: torch.Tensor, groups: int) -> torch.Tensor:
    """The channels of all groups in turn; images with channels last stay so."""
    memory_format = suggest_memory_format(input)
    moved = input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    return moved.clone(memory_format=memory_format)


def _one_hot(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Looks its classes up in a list of all of them, which checks them; eager asserts that they are there."""

    def one_hot(input: torch.Tensor, num_classes: int = -1) -> Any:
        if num_classes < 1 or input.dtype is not torch.int64:
            return otherwise(input, num_classes)
        classes = torch.arange(num_classes, device=input.device)
        found = aten.embedding(classes.unsqueeze(-1), input)
        return (found == classes).to(torch.int64)

    return one_hot


def _affine_grid(
    theta: torch.Tensor, size: Sequence[Any], align_corners: bool | None = None
) -> torch.Tensor:
    """By its decomposition: the operator's gradient takes no dynamic sizes (PyTorch 2.13)."""
    op = aten.affine_grid_generator.default
    rule: Any = get_decompositions([op])[op]
    return rule(theta, size, bool(align_corners))


def _left(*args: Any) -> Any:
    return NotImplemented


def _in_parts(op: Any) -> Callable[..., Any]:
    """What eager runs for a composite operator, beneath the rule that stands for it while PyTorch traces."""
    return partial(op._op_dk, DispatchKey.CompositeImplicitAutograd)


_NN: Any = cast(Any, torch)._C._nn

COMPOSITES: dict[Any, Callable[..., Any]] = {
    aten.adaptive_avg_pool1d.default: _pool_1d(_in_parts(aten.adaptive_avg_pool1d.default)),
    aten.adaptive_avg_pool2d.default: _pool(2, _in_parts(aten.adaptive_avg_pool2d.default)),
    aten.adaptive_avg_pool3d.default: _pool(3, _in_parts(aten.adaptive_avg_pool3d.default)),
    aten.channel_shuffle.default: channel_shuffle,
    aten.one_hot.default: _one_hot(_left),
}
"""Operator -> what it is in terms of others; a rule may leave a call as it is."""

_CALLED: dict[Any, Callable[..., Any]] = {
    torch.adaptive_avg_pool1d: _pool_1d(torch.adaptive_avg_pool1d),
    F.adaptive_avg_pool2d: _pool(2, F.adaptive_avg_pool2d),
    F.adaptive_avg_pool3d: _pool(3, F.adaptive_avg_pool3d),
    _NN.adaptive_avg_pool2d: _pool(2, _NN.adaptive_avg_pool2d),
    _NN.adaptive_avg_pool3d: _pool(3, _NN.adaptive_avg_pool3d),
    F.affine_grid: _affine_grid,
    F.embedding_bag: embedding_bag,
    F.one_hot: _one_hot(F.one_hot),
    torch.channel_shuffle: channel_shuffle,
    **recurrent.CALLED,
}
"""The same for what the user calls, as Dynamo keeps it."""


def replace_composites(graph: torch.fx.GraphModule) -> None:
    """Replace the composite operators of a graph of Dynamo's."""
    replace_calls(graph, _CALLED)


def replace_calls(graph: torch.fx.GraphModule, functions: Mapping[Any, Callable[..., Any]]) -> None:
    """Let a graph of Dynamo's, and its sub-graphs, call other functions."""
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            found = [node for node in module.graph.nodes if node.target in functions]
            for node in found:
                node.target = functions[node.target]
            if found:
                module.recompile()
