"""Captures a graph of ATen operators, as AOTAutograd makes it, as Torch IR."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from ..errors import UnsupportedOpError
from .capture import Argument, Captured
from .importer import Importer
from .view_outputs import outputs_of, results_of


def capture_graph(graph: torch.fx.GraphModule) -> Captured:
    """`graph` as Torch IR; its placeholders become the arguments and what it returns the results.

    Raises UnsupportedOpError, which lists everything that is not supported.
    """
    importer = Importer()
    arguments: list[Argument] = []
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
    outputs = outputs_of(graph.graph, {argument.name: i for i, argument in enumerate(arguments)})
    graph.graph.eliminate_dead_code()
    for node in graph.graph.nodes:
        if node.op == "call_function":
            importer.add_call(node)
        elif node.op == "get_attr":
            importer.unsupported.add(node, "a sub-graph or constant")
    return Captured(
        module=importer.finish(results_of(graph.graph)),
        arguments=tuple(arguments),
        tensors={},
        constants={},
        outputs=outputs,
        in_spec=pytree.tree_structure((tuple(range(len(arguments))), {})),
        out_spec=pytree.tree_structure(list(range(len(outputs)))),
        keyword_order=(),
    )
