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
from typing import Any, Literal, TypeAlias

import sympy
import torch
from sympy.logic.boolalg import Boolean
from torch._ops import OpOverload
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import Max

from ..dialects.multiples import Multiple
from .sizes import is_symbolic, multiple_of

aten = torch.ops.aten


@dataclass(frozen=True)
class DefiningAxis:
    """The axis of an argument that says a size."""

    argument: int
    axis: int
    multiple: Multiple
    """What its extent is."""

    def size(self, arguments: Sequence[Any]) -> int:
        """The size in a call with these arguments."""
        return self.multiple.least_size(arguments[self.argument].shape[self.axis])


Axes: TypeAlias = Mapping[sympy.Symbol, DefiningAxis]

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
    """Among both may be a `ReturnedSize`."""
    dynamic: bool = False
    """Whether there is one."""

    def of(self, value: Any, arguments: Sequence[Any]) -> Any:
        """The view of `value`, in a call with these arguments of `@main`.

        One that its strides do not allow is a copy, as `reshape` makes it.
        """
        target = aten.reshape.default if self.target is aten.view.default else self.target
        own, keywords = self.arguments, self.keywords
        if self.dynamic:
            own, keywords = pytree.tree_map(
                lambda v: v.of(arguments) if isinstance(v, ReturnedSize) else v, (own, keywords)
            )
        return target(value, *own, **keywords)


@dataclass(frozen=True)
class View:
    """Views one of the other."""

    steps: tuple[Step, ...]

    def of(self, tensor: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor:
        """The last view, of `tensor`, in a call with these arguments of `@main`."""
        value: Any = tensor
        for step in self.steps:
            value = step.of(value, arguments)
        return value


@dataclass(frozen=True)
class ReturnedSize:
    """A number that a program returns, or makes a view with, computed from sizes of its arguments."""

    expr: Any
    axes: Axes

    def of(self, arguments: Sequence[Any]) -> int:
        """The number for these arguments."""
        known = {symbol: axis.size(arguments) for symbol, axis in self.axes.items()}
        found = self.expr.xreplace(known)
        return bool(found) if isinstance(found, Boolean) else int(found)


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

    def of(self, tensor: Any, arguments: Sequence[Any]) -> Any:
        """The output, from the result or argument that it is or views, in a call with these arguments."""
        if self.axes is not None:
            tensor = tensor.permute([self.axes.index(i) for i in range(len(self.axes))])
        return tensor if self.view is None else self.view.of(tensor, arguments)

    def source_of(self, output: torch.Tensor) -> torch.Tensor | None:
        """The result that eager's `output` is or views; None if eager's is no view where this one is."""
        result = output if self.view is None else output._base
        return result if result is None or self.axes is None else result.permute(self.axes)


def outputs_of(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> tuple[Output, ...]:
    """What a graph returns; from now on it returns what `@main` has to return for that.

    `arguments` are the positions of the tensors among `@main`'s arguments, by name.
    """
    axes = defining_axes(graph, arguments)
    (returned,) = graph.output_node().args
    flat = pytree.tree_leaves(returned, is_leaf=lambda value: value is None)
    results: dict[torch.fx.Node, int] = {}
    outputs: list[Output] = []
    for value, viewed in zip(flat, _viewed(flat, axes), strict=True):
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
        if (order := order_in_memory(node)) is not None:
            nodes[index] = _permuted(graph, node, order)
            outputs = [
                replace(o, axes=tuple(order)) if (o.source, o.index) == ("result", index) else o
                for o in outputs
            ]
    graph.output_node().args = (tuple(nodes),)
    return tuple(outputs)


def defining_axes(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> Axes:
    """For each symbol, the axis of an argument that says it."""
    found: dict[sympy.Symbol, DefiningAxis] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor) and node.name in arguments:
            for axis, extent in enumerate(value.shape):
                said = multiple_of(extent.node.expr) if isinstance(extent, torch.SymInt) else None
                if said is not None:
                    place = DefiningAxis(arguments[node.name], axis, said[1])
                    found.setdefault(said[0], place)
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


def is_row_major(extents: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether a tensor of some extents is known to have its elements one after the other.

    Asks no guard of export: numbers that depend on sizes are compared as expressions.
    """
    if any(type(extent) is int and extent == 0 for extent in extents):
        return True
    dense: Any = 1
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if type(extent) is int and extent == 1:
            continue
        if sympy.expand(_positive(stride) - dense) != 0:
            return False
        dense = dense * _positive(extent)
    return True


def _positive(number: Any) -> Any:
    """A number as an expression in which extents are at least 1: without elements, strides do not matter."""
    if not is_symbolic(number):
        return sympy.Integer(number)
    maxima = [m for m in number.node.expr.atoms(Max) if sympy.Integer(1) in m.args]
    return number.node.expr.xreplace({m: Max(*(set(m.args) - {1})) for m in maxima})


def order_in_memory(node: torch.fx.Node) -> list[int] | None:
    """The axes of a tensor, the slowest first, if it is dense and that is not the order they have."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    strides = value.stride()
    if is_row_major(value.shape, strides):
        return None
    hints = [stride.node.hint if is_symbolic(stride) else stride for stride in strides]
    if None in hints:
        return None
    order = sorted(range(value.ndim), key=lambda axis: -hints[axis])
    dense = is_row_major([value.shape[a] for a in order], [strides[a] for a in order])
    return order if dense else None


def _permuted(graph: torch.fx.Graph, node: torch.fx.Node, order: list[int]) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        name = f"{node.name}_in_memory"
        moved = graph.create_node("call_function", aten.permute.default, (node, order), name=name)
    moved.meta = node.meta | {"val": node.meta["val"].permute(order)}
    return moved


def _viewed(returned: Sequence[Any], axes: Axes) -> list[tuple[torch.fx.Node, View | None] | None]:
    """For each output, the node of which it is a view, or itself; None for what is no node."""
    chains = [
        _chain(value, axes) if isinstance(value, torch.fx.Node) else None for value in returned
    ]
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
        elif known or all(map(_has_every_element, nodes)):
            outputs.append((root, View(tuple(_step(node, axes) for node in nodes))))
        else:
            outputs.append((value, None))
    return outputs


def _has_every_element(node: torch.fx.Node) -> bool:
    """Whether a view has every element of what it views, and is made at a call for next to nothing."""
    return node.target in LAYOUTS and (node.target is aten.expand.default or not _is_dynamic(node))


def _chain(value: torch.fx.Node, axes: Axes) -> tuple[torch.fx.Node, list[torch.fx.Node]]:
    """The tensor that `value` views, and the views from there to `value`."""
    nodes: list[torch.fx.Node] = []
    while (viewed := _viewed_by(value)) is not None and _is_known_at_call(value, axes):
        nodes.insert(0, value)
        value = viewed
    if any(map(_goes_by_strides, nodes)) and value.op != "placeholder":
        *_, last = (node for node in nodes if _goes_by_strides(node))
        return last, nodes[nodes.index(last) + 1 :]
    return value, nodes


def _viewed_by(node: torch.fx.Node) -> torch.fx.Node | None:
    """What `node` is a view of, if it is one, or the list of views that it is an item of."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    viewed = node.args[0]
    if node.target is operator.getitem:
        return viewed if _viewed_by(viewed) is not None else None
    if not isinstance(node.target, OpOverload):
        return None
    schema: Any = node.target._schema  # type: ignore[union-attr]
    first, *_ = schema.arguments
    return viewed if first.alias_info is not None and not first.alias_info.is_write else None


def _goes_by_strides(node: torch.fx.Node) -> bool:
    return node.target in BY_STRIDES


def _leaves(node: torch.fx.Node) -> list[Any]:
    """The arguments of a view but for what it views."""
    return pytree.tree_leaves((node.args[1:], node.kwargs))


def _symbol_of(value: Any) -> sympy.Expr | None:
    """The expression of a number that depends on sizes, or None for another value."""
    said = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    return said.node.expr if is_symbolic(said) else None


def _is_dynamic(node: torch.fx.Node) -> bool:
    return any(_symbol_of(value) is not None for value in _leaves(node))


def _is_known_at_call(node: torch.fx.Node, axes: Axes) -> bool:
    """Whether the arguments of a view follow from the extents of the program's arguments."""
    if node.target is operator.getitem:
        (views,) = node.all_input_nodes
        return _is_known_at_call(views, axes)
    for value in _leaves(node):
        expr = _symbol_of(value)
        if expr is None and isinstance(value, torch.fx.Node):
            return False
        if expr is not None and not expr.free_symbols <= axes.keys():
            return False
    return True


def at_call(value: Any, axes: Axes) -> Any:
    """A value; of a number that depends on sizes what computes it, or None if some size is not known."""
    expr = _symbol_of(value)
    if expr is None:
        return value
    return ReturnedSize(expr, axes) if expr.free_symbols <= axes.keys() else None


def _step(node: torch.fx.Node, axes: Axes) -> Step:
    arguments, keywords = pytree.tree_map(
        lambda value: at_call(value, axes), (tuple(node.args[1:]), dict(node.kwargs))
    )
    return Step(node.target, arguments, keywords, _is_dynamic(node))


def hidden_views(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> list[torch.fx.Node]:
    """What a graph returns that views an argument, or what else it returns, and is not taken as that view.

    Whoever wants memory to be shared as in PyTorch would take it for one: AOTAutograd makes such views
    itself, of the tensor that is viewed, with the strides and the offset that it gets.
    """
    axes = defining_axes(graph, arguments)
    (returned,) = graph.output_node().args
    nodes = [node for node in pytree.tree_leaves(returned) if isinstance(node, torch.fx.Node)]
    roots = {node: _root(node) for node in nodes}
    shared = Counter(roots.values())
    return [
        node
        for node, root in roots.items()
        if node is not root
        and (root.op == "placeholder" or shared[root] > 1)
        and _chain(node, axes)[0] is not root
    ]


def _root(node: torch.fx.Node) -> torch.fx.Node:
    while (viewed := _viewed_by(node)) is not None:
        node = viewed
    return node
