"""Captures a graph of ATen operators, as AOTAutograd makes it, as Torch IR."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from ..errors import UnsupportedOpError
from .capture import Argument, Captured, Output
from .importer import Importer


def capture_graph(graph: torch.fx.GraphModule) -> Captured:
    """`graph` as Torch IR; its placeholders become the arguments and what it returns the results.

    Raises UnsupportedOpError, which lists everything that is not supported.
    """
    importer = Importer()
    arguments: list[Argument] = []
    outputs: list[Output] = []
    returned: list[torch.fx.Node] = []
    graph.graph.eliminate_dead_code()
    for position, node in enumerate(n for n in graph.graph.nodes if n.op == "placeholder"):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise UnsupportedOpError(
                "sizes that change from call to call are not supported: torch.compile(..., dynamic=False)"
            )
        importer.add_argument(node, value, node.name, {})
        shape = tuple(value.shape)
        arguments.append(
            Argument(node.name, "input", node.name, position, shape, value.dtype, value.device)
        )
    for node in graph.graph.nodes:
        if node.op == "call_function":
            importer.add_call(node)
        elif node.op == "get_attr":
            importer.unsupported.add(node, "a sub-graph or constant")
    positions = {argument.name: i for i, argument in enumerate(arguments)}
    (values,) = graph.graph.output_node().args
    for value in pytree.tree_leaves(values, is_leaf=lambda x: x is None):
        if not isinstance(value, torch.fx.Node):
            outputs.append(Output("constant", value=value))
        elif value.name in positions:
            outputs.append(Output("argument", positions[value.name]))
        else:
            outputs.append(Output("result", len(returned)))
            returned.append(value)
    return Captured(
        module=importer.finish(returned),
        arguments=tuple(arguments),
        tensors={},
        constants={},
        outputs=tuple(outputs),
        in_spec=pytree.tree_structure((tuple(range(len(arguments))), {})),
        out_spec=pytree.tree_structure(list(range(len(outputs)))),
        keyword_order=(),
    )
