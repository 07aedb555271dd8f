"""Outputs that are views, made at the call as eager makes them.

    def program(x):
        y = x * 2
        return x.t(), y, y[0]       # the first is x's memory, the third is the second's

`@main` returns the tensor that is viewed, unless it is an argument, and the views are taken of what a call
has: they share its memory and have eager's strides, and nothing is copied. A part of a tensor that is not
itself an output is computed alone instead: that saves the rest, and nobody can tell. A result that eager
lays out with other axes innermost is computed in that order, and viewed in its own.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sympy
import torch
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from .sizes import is_symbolic

aten = torch.ops.aten

BY_STRIDES = (aten.as_strided.default,)
"""Views of memory: what they give depends on how the input lies there, which only a call says."""

LAYOUTS = (
    aten.alias.default,
    aten.detach.default,
    aten.expand.default,
    aten.permute.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.t.default,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
)
"""Views that have every element of what they view."""


@dataclass(frozen=True)
class Step:
    """One view: an operator, or an item of the list that the one before gave."""

    target: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def of(self, value: Any) -> Any:
        """The view of `value`. One that its strides do not allow is a copy, as `reshape` makes it."""
        target = aten.reshape.default if self.target is aten.view.default else self.target
        return target(value, *self.arguments, **self.keywords)


@dataclass(frozen=True)
class View:
    """Views one of the other."""

    steps: tuple[Step, ...]

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The last view, of `tensor`."""
        value: Any = tensor
        for step in self.steps:
            value = step.of(value)
        return value


@dataclass(frozen=True)
class ReturnedSize:
    """A number that a program returns, computed from sizes of its arguments."""

    expr: Any
    axes: Mapping[sympy.Symbol, tuple[int, int]]

    def of(self, arguments: Sequence[Any]) -> int:
        """The number for these arguments."""
        known = {symbol: arguments[i].shape[axis] for symbol, (i, axis) in self.axes.items()}
        return int(self.expr.xreplace(known))


@dataclass(frozen=True)
class Output:
    """One flattened output: a result of `@main`, one of its arguments, a view of these, a constant or a size.

    Of a size, `value` computes it from the arguments.
    """

    source: Literal["result", "argument", "constant", "size"]
    index: int | None = None
    value: object = None
    view: View | None = None
    axes: tuple[int, ...] | None = None
    """The axes of a result in the order in which `@main` returns them, if that is not their own."""

    def of(self, tensor: Any) -> Any:
        """The output, from the result or argument that it is or views."""
        if self.axes is not None:
            tensor = tensor.permute([self.axes.index(i) for i in range(len(self.axes))])
        return tensor if self.view is None else self.view.of(tensor)

    def source_of(self, output: torch.Tensor) -> torch.Tensor | None:
        """The result that eager's `output` is or views; None if eager's is no view where this one is."""
        result = output if self.view is None else output._base
        return result if result is None or self.axes is None else result.permute(self.axes)


def outputs_of(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> tuple[Output, ...]:
    """What a graph returns; from now on it returns what `@main` has to return for that.

    `arguments` are the positions of the tensors among `@main`'s arguments, by name.
    """
    axes = _defining_axes(graph, arguments)
    (returned,) = graph.output_node().args
    flat = pytree.tree_leaves(returned, is_leaf=lambda value: value is None)
    results: dict[torch.fx.Node, int] = {}
    outputs: list[Output] = []
    for value, viewed in zip(flat, _viewed(flat), strict=True):
        said = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
        if is_symbolic(said) and said.node.expr.free_symbols <= axes.keys():
            outputs.append(Output("size", value=ReturnedSize(said.node.expr, axes)))
        elif is_symbolic(said):  # depends on values: what gives it must be imported, or refused
            outputs.append(Output("result", results.setdefault(value, len(results))))
        elif viewed is None:
            outputs.append(Output("constant", value=value))
        else:
            outputs.append(_tensor_output(*viewed, arguments, results))
    nodes = list(results)
    for index, node in enumerate(nodes):
        if (order := _order_in_memory(node)) is not None:
            nodes[index] = _permuted(graph, node, order)
            outputs = [
                replace(o, axes=tuple(order)) if (o.source, o.index) == ("result", index) else o
                for o in outputs
            ]
    graph.output_node().args = (tuple(nodes),)
    return tuple(outputs)


def _defining_axes(
    graph: torch.fx.Graph, arguments: Mapping[str, int]
) -> dict[sympy.Symbol, tuple[int, int]]:
    """For each symbol, an argument and its axis whose whole extent it is."""
    found: dict[sympy.Symbol, tuple[int, int]] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor) and node.name in arguments:
            for axis, extent in enumerate(value.shape):
                if isinstance(extent, torch.SymInt):
                    found.setdefault(extent.node.expr, (arguments[node.name], axis))
    return found


def _tensor_output(
    root: torch.fx.Node,
    view: View | None,
    arguments: Mapping[str, int],
    results: dict[torch.fx.Node, int],
) -> Output:
    """The output that is `view` of `root`, which becomes a result if it is no argument."""
    if root.name in arguments:
        return Output("argument", arguments[root.name], view=view)
    if root.op == "placeholder":
        return Output("constant", value=root.meta.get("val"))
    return Output("result", results.setdefault(root, len(results)), view=view)


def results_of(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """What `@main` returns, after `outputs_of`."""
    (returned,) = graph.output_node().args
    assert isinstance(returned, tuple)
    return [node for node in returned if isinstance(node, torch.fx.Node)]


def _order_in_memory(node: torch.fx.Node) -> list[int] | None:
    """The axes of a tensor, the slowest first, if it is dense and that is not the order they have."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or any(map(is_symbolic, value.shape)):
        return None
    order = sorted(range(value.ndim), key=lambda axis: -value.stride(axis))
    return order if not value.is_contiguous() and value.permute(order).is_contiguous() else None


def _permuted(graph: torch.fx.Graph, node: torch.fx.Node, order: list[int]) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        name = f"{node.name}_in_memory"
        moved = graph.create_node("call_function", aten.permute.default, (node, order), name=name)
    moved.meta = node.meta | {"val": node.meta["val"].permute(order)}
    return moved


def _viewed(returned: Sequence[Any]) -> list[tuple[torch.fx.Node, View | None] | None]:
    """For each output, the node of which it is a view, or itself; None for what is no node."""
    chains = [_chain(value) if isinstance(value, torch.fx.Node) else None for value in returned]
    shared = Counter(chain[0] for chain in chains if chain is not None)
    outputs: list[tuple[torch.fx.Node, View | None] | None] = []
    for value, chain in zip(returned, chains, strict=True):
        if chain is None:
            outputs.append(None)
            continue
        root, nodes = chain
        known = root.op == "placeholder" or shared[root] > 1
        if not nodes:
            outputs.append((root, None))
        elif known or all(node.target in LAYOUTS for node in nodes):
            outputs.append((root, View(tuple(map(_step, nodes)))))
        else:
            outputs.append((value, None))
    return outputs


def _chain(value: torch.fx.Node) -> tuple[torch.fx.Node, list[torch.fx.Node]]:
    """The tensor that `value` views, and the views from there to `value`."""
    nodes: list[torch.fx.Node] = []
    while _is_view(value):
        nodes.insert(0, value)
        (value,) = value.all_input_nodes
    return value, nodes


def _is_view(node: torch.fx.Node) -> bool:
    """Whether `node` is a view of its one tensor, and nothing else about it is known at the call only."""
    if len(node.all_input_nodes) != 1 or node.args[0] is not node.all_input_nodes[0]:
        return False
    if any(map(is_symbolic, pytree.tree_leaves((node.args[1:], node.kwargs)))):
        return False
    if node.target is operator.getitem:
        return _is_view(node.all_input_nodes[0])
    if not isinstance(node.target, OpOverload) or node.target in BY_STRIDES:
        return False
    schema: Any = node.target._schema  # type: ignore[union-attr]
    first, *_ = schema.arguments
    return first.alias_info is not None and not first.alias_info.is_write


def _step(node: torch.fx.Node) -> Step:
    return Step(node.target, tuple(node.args[1:]), dict(node.kwargs))
