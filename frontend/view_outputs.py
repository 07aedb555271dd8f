"""Outputs that are views, made at the call as eager makes them.

    def program(x):
        y = x * 2
        return x.t(), y, y[0]       # the first is x's memory, the third is the second's

`@main` returns the tensor that is viewed, unless it is an argument, and the views are taken of what a call
has: they share its memory and have eager's strides, and nothing is copied. A view of a tensor that is not
itself an output is computed alone instead: that saves the rest, and nobody can tell. A result that eager
lays out with other axes innermost is computed in that order, and its axes are renumbered at the call.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import sympy
import torch
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from ..dialects.multiples import Multiple
from .call_sizes import Axes, DefiningAxis, ReturnedSize, at_call, defining_axes, symbol_of
from .decompositions import is_part
from .layouts import Layout, layout_of
from .sizes import is_symbolic

aten = torch.ops.aten


BY_STRIDES = (aten.as_strided.default,)
"""Views of memory: what they give depends on how the input lies there, which only a call says."""

REPLAYED: dict[Any, Any] = {
    aten.view.default: aten.reshape.default,
    aten.alias.default: aten.detach.default,
}
"""Views that a call makes by another operator."""


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

        One that its strides do not allow is a copy, as `reshape` makes it. An alias is detached: the
        operator's other callers, `detach` aside, are none of a program's.
        """
        target = REPLAYED.get(self.target, self.target)
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
class Output:
    """One flattened output: a result of `@main`, one of its arguments, a view of these, a constant or a size.

    Of a size, `value` computes it from the arguments, or if it was found in data from the results.
    """

    source: Literal["result", "argument", "output", "constant", "size", "found"]
    """`output`: the same tensor as an earlier output."""
    index: int | None = None
    value: object = None
    view: View | None = None
    own: View | None = None
    """If the result is computed as a view of what is a tensor in eager, that view."""
    layout: Layout | None = None
    """Where the elements of the result are in eager, if not in row-major order."""

    def of(self, tensor: Any, arguments: Sequence[Any]) -> Any:
        """The output, from the tensor that it is or views, in a call with these arguments.

        A result is laid out already.
        """
        return tensor if self.view is None else self.view.of(tensor, arguments)

    def source_of(self, output: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor | None:
        """The result that eager's `output` is or views; None if eager's is no view where this one is."""
        result = output if self.view is None else output._base
        if result is not None and self.own is not None:
            result = self.own.of(result, arguments)
        order = None if self.layout is None else self.layout.order
        return result if result is None or order is None else result.permute(order)


def outputs_of(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> tuple[Output, ...]:
    """What a graph returns; from now on it returns what `@main` has to return for that.

    `arguments` are the positions of the tensors among `@main`'s arguments, by name.
    """
    axes = defining_axes(graph, arguments)
    (returned,) = graph.output_node().args
    flat = pytree.tree_leaves(returned, is_leaf=lambda value: value is None)
    results: dict[torch.fx.Node, int] = {}
    firsts: dict[torch.fx.Node, int] = {}
    outputs: list[Output] = []
    for value, viewed in zip(flat, _viewed(flat, axes), strict=True):
        said = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
        if isinstance(value, torch.fx.Node) and value in firsts:
            outputs.append(Output("output", firsts[value]))
        elif is_symbolic(said) and said.node.expr.free_symbols <= axes.keys():
            outputs.append(Output("size", value=ReturnedSize(said.node.expr, axes)))
        elif is_symbolic(said):  # depends on values
            outputs.append(_found_output(graph, value, said.node.expr, results))
        elif viewed is None:
            outputs.append(Output("constant", value=value))
        else:
            firsts[value] = len(outputs)
            outputs.append(_tensor_output(*viewed, arguments, results))
    nodes = list(results)
    for index, node in enumerate(nodes):
        if (layout := layout_of(node, axes)) is not None:
            if layout.order is not None:
                nodes[index] = _permuted(graph, node, layout.order)
            outputs = [
                replace(o, layout=layout) if (o.source, o.index) == ("result", index) else o
                for o in outputs
            ]
    graph.output_node().args = (tuple(nodes),)
    return tuple(outputs)


def _tensor_output(
    root: torch.fx.Node,
    view: View | None,
    own: View | None,
    arguments: Mapping[str, int],
    results: dict[torch.fx.Node, int],
) -> Output:
    """The output that is `view` of `root`, which becomes a result if it is no argument."""
    if root.name in arguments:
        return Output("argument", arguments[root.name], view=view)
    if root.op == "placeholder":
        return Output("constant", value=root.meta.get("val"))
    return Output("result", results.setdefault(root, len(results)), view=view, own=own)


def _found_output(
    graph: torch.fx.Graph, node: torch.fx.Node, expr: Any, results: dict[torch.fx.Node, int]
) -> Output:
    """A size that is found in data, from a tensor of that extent, which becomes a result.

    Where there is none, `node` becomes one, which must be imported, or refused.
    """
    axes: dict[sympy.Symbol, DefiningAxis] = {}
    for each in (*results, *graph.nodes):
        value = each.meta.get("val")
        if each.op == "call_function" and isinstance(value, torch.Tensor):
            for axis, extent in enumerate(value.shape):
                said: Any = extent.node.expr if isinstance(extent, torch.SymInt) else None
                if said in expr.free_symbols and said not in axes:
                    result = results.setdefault(each, len(results))
                    axes[said] = DefiningAxis(result, axis, Multiple())
    if expr.free_symbols <= axes.keys():
        return Output("found", value=ReturnedSize(expr, axes))
    return Output("result", results.setdefault(node, len(results)))


def results_of(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """What `@main` returns, after `outputs_of`."""
    (returned,) = graph.output_node().args
    assert isinstance(returned, tuple)
    return [node for node in returned if isinstance(node, torch.fx.Node)]


def _permuted(graph: torch.fx.Graph, node: torch.fx.Node, order: Sequence[int]) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        name = f"{node.name}_in_memory"
        moved = graph.create_node(
            "call_function", aten.permute.default, (node, list(order)), name=name
        )
    moved.meta = node.meta | {"val": node.meta["val"].permute(order)}
    return moved


_Viewed: TypeAlias = tuple[torch.fx.Node, View | None, View | None]


def _viewed(returned: Sequence[Any], axes: Axes) -> list[_Viewed | None]:
    """For each output, the node of which it is a view, or itself; None for what is no node.

    And the view that the node is of what is a tensor in eager, if it is one.

    A view of what is not returned otherwise is a tensor of its own, in which autograd lets a caller write,
    but for the elements that it repeats.
    """
    chains = {value: _chain(value, axes) for value in returned if isinstance(value, torch.fx.Node)}
    shared = Counter(root for root, _ in chains.values())

    def view_of(nodes: Sequence[torch.fx.Node]) -> View | None:
        return View(tuple(_steps(nodes, axes))) if nodes else None

    def viewed(value: torch.fx.Node) -> _Viewed:
        root, nodes = chains[value]
        own: Sequence[torch.fx.Node] = ()
        if root.op != "placeholder" and shared[root] == 1:
            repeats = (i for i, node in enumerate(nodes) if node.target is aten.expand.default)
            first = next(repeats, len(nodes))
            own = nodes[:first] if first < len(nodes) else ()
            root, nodes = ([root, *nodes][first], nodes[first:])
        return root, view_of(nodes), view_of(own)

    return [viewed(value) if isinstance(value, torch.fx.Node) else None for value in returned]


def _chain(value: torch.fx.Node, axes: Axes) -> tuple[torch.fx.Node, list[torch.fx.Node]]:
    """The tensor that `value` views, and the views from there to `value`."""
    nodes: list[torch.fx.Node] = []
    while (viewed := viewed_by(value)) is not None and _is_known_at_call(value, axes):
        nodes.insert(0, value)
        value = viewed
    if any(map(_goes_by_strides, nodes)) and value.op != "placeholder":
        *_, last = (node for node in nodes if _goes_by_strides(node))
        return last, nodes[nodes.index(last) + 1 :]
    return value, nodes


def viewed_by(node: torch.fx.Node) -> torch.fx.Node | None:
    """What `node` is a view of, if it is one in eager, or the list of views that it is an item of."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    if is_part(node):
        return None
    viewed = node.args[0]
    if node.target is operator.getitem:
        return viewed if viewed_by(viewed) is not None else None
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


def _is_dynamic(node: torch.fx.Node) -> bool:
    return any(symbol_of(value) is not None for value in _leaves(node))


def _is_known_at_call(node: torch.fx.Node, axes: Axes) -> bool:
    """Whether the arguments of a view follow from the extents of the program's arguments."""
    if node.target is operator.getitem:
        (views,) = node.all_input_nodes
        return _is_known_at_call(views, axes)
    for value in _leaves(node):
        expr = symbol_of(value)
        if expr is None and isinstance(value, torch.fx.Node):
            return False
        if expr is not None and not expr.free_symbols <= axes.keys():
            return False
    return True


def _step(node: torch.fx.Node, axes: Axes) -> Step:
    arguments, keywords = pytree.tree_map(
        lambda value: at_call(value, axes), (tuple(node.args[1:]), dict(node.kwargs))
    )
    return Step(node.target, arguments, keywords, _is_dynamic(node))


def _steps(nodes: Sequence[torch.fx.Node], axes: Axes) -> Iterator[Step]:
    """The steps of views of each other; a part of a complex number is one, also where it is conjugated."""
    left = list(nodes)
    while left:
        node = left.pop(0)
        if left and (part := _part(node, left[0])) is not None:
            left.pop(0)
            yield Step(part, (), {})
        else:
            yield _step(node, axes)


def _part(node: torch.fx.Node, following: torch.fx.Node) -> Any | None:
    """`torch.real` or `torch.imag`, if that is what two views are together."""
    if node.target is not aten.view_as_real.default or following.target is not aten.select.int:
        return None
    axis, index = following.args[1:]
    parts = (torch.real, torch.imag)
    return parts[index] if axis in (-1, node.meta["val"].ndim - 1) else None  # type: ignore[index]


def hidden_views(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> list[torch.fx.Node]:
    """What a graph returns that views an argument, or what else it returns, and is not taken as that view.

    Whoever wants memory to be shared as in PyTorch would take it for one: AOTAutograd makes such views
    itself, of the tensor that is viewed, with the strides and the offset that it gets.
    """
    axes = defining_axes(graph, arguments)
    (returned,) = graph.output_node().args
    nodes = [node for node in pytree.tree_leaves(returned) if isinstance(node, torch.fx.Node)]
    roots = {node: root_of(node) for node in nodes}
    shared = Counter(roots.values())
    return [
        node
        for node, root in roots.items()
        if node is not root
        and (root.op == "placeholder" or shared[root] > 1)
        and _chain(node, axes)[0] is not root
    ]


def root_of(node: torch.fx.Node) -> torch.fx.Node:
    """The tensor whose memory `node` views in eager, or itself."""
    while (viewed := viewed_by(node)) is not None:
        node = viewed
    return node
