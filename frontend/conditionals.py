"""`torch.cond` as a choice between the results of both branches.

    torch.cond(p, lambda x: x * 2, lambda x: x - 1, (x,))

becomes

    aten.where(p, aten.mul(x, 2), aten.sub(x, 1))

That means the same if neither branch can fail or have an effect: if its operators are of the dialect, and
check no values. Any other stays a call of `cond` (`part_calls.py`).
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..dialects import torch_found_shapes, torch_scatter_shapes, torch_shapes, torch_sort_shapes
from ..dialects.torch import OPS_BY_ATEN
from ..dialects.torch_ops import BinaryCrossEntropyOp
from .unsupported import OpOverload

aten = torch.ops.aten

COND: Any = torch.ops.higher_order.cond

LOOKING_UP = (
    torch_found_shapes.IndexShapeOp,
    torch_shapes.EmbeddingShapeOp,
    torch_shapes.GatherShapeOp,
    torch_shapes.IndexSelectShapeOp,
    torch_scatter_shapes.IndexPutShapeOp,
    torch_scatter_shapes.IndexReduceShapeOp,
    torch_scatter_shapes.MaskedScatterShapeOp,
    torch_scatter_shapes.ScatterShapeOp,
    torch_sort_shapes.SearchShapeOp,
)
"""Families of operators that check indices from data."""

DIVIDING = {"div", "remainder", "fmod", "floor_divide", "pow"}
"""Operators that check values of integers."""


def choose_results(module: torch.fx.GraphModule, graph: torch.fx.Graph) -> None:
    """Replace each `cond` whose branches cannot fail, in a graph whose parts `module` has."""
    for node in list(graph.find_nodes(op="call_function", target=COND)):
        predicate, *branches, operands = node.args
        if not all(isinstance(each, torch.fx.Node) for each in (predicate, *branches)):
            continue  # a number, or parts that are held
        parts = [getattr(module, branch.target) for branch in branches]
        if all(_cannot_fail(inner) for part in parts for inner in part.graph.nodes):
            _choose(graph, node, predicate, [_inlined(node, part, operands) for part in parts])
            for branch in branches:
                if not branch.users:
                    graph.erase_node(branch)


def _cannot_fail(node: torch.fx.Node) -> bool:
    """Whether a node of a branch may run where the program does not ask for it."""
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op != "get_attr"
    target: Any = node.target
    if not isinstance(target, OpOverload):
        return False
    name = target._schema.name.removeprefix("aten::")
    family = OPS_BY_ATEN.get(f"{name}.{target._overloadname}")
    if family is None or issubclass(family, (*LOOKING_UP, BinaryCrossEntropyOp)):
        return False
    return name not in DIVIDING or node.meta["val"].is_floating_point()


def _inlined(
    node: torch.fx.Node, part: torch.fx.GraphModule, operands: tuple[Any, ...]
) -> list[torch.fx.Node]:
    """The results of a branch, computed in front of the call."""
    places = part.graph.find_nodes(op="placeholder")
    values: dict[torch.fx.Node, Any] = dict(zip(places, operands, strict=True))
    with node.graph.inserting_before(node):
        for inner in part.graph.nodes:
            if inner.op == "call_function":
                values[inner] = node.graph.node_copy(inner, values.__getitem__)
                values[inner].meta["stack_trace"] = node.meta.get("stack_trace")
    (results,) = part.graph.output_node().args
    return [values[result] for result in pytree.tree_leaves(results)]


def _choose(
    graph: torch.fx.Graph,
    node: torch.fx.Node,
    predicate: torch.fx.Node,
    results: list[list[torch.fx.Node]],
) -> None:
    """Let what reads the results of the call read those of the branch that the predicate says."""
    with graph.inserting_before(node):

        def call(target: Any, args: tuple[Any, ...], value: Any) -> torch.fx.Node:
            made = graph.call_function(target, args)
            made.meta = {**node.meta, "val": value}
            return made

        said = predicate.meta["val"]
        if said.ndim:
            predicate = call(aten.view.default, (predicate, []), said.view([]))
        chosen = [
            call(aten.where.self, (predicate, then, other), other.meta["val"].clone())
            for then, other in zip(*results, strict=True)
        ]
    for user in list(node.users):
        index: Any = user.args[1]
        user.replace_all_uses_with(chosen[index])
        graph.erase_node(user)
    graph.erase_node(node)
