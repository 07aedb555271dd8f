"""Operators with effects, without the tokens by which AOTAutograd's graphs order them.

    after, y = with_effects(token, library.operator, x)

becomes

    y = library.operator(x)

and the graph returns None for tokens, which a call gets None for. Calls run in the order of the graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops.effects import with_effects
from torch.utils import _pytree as pytree

from .unsupported import OpOverload


def without_tokens(graph: torch.fx.Graph) -> None:
    """Replace each operator with effects by a plain call of it; tokens become placeholders without a value.

    Parts of a program and methods of objects stay, and so do their tokens.
    """
    nodes = list(graph.find_nodes(op="call_function", target=with_effects))
    if not all(isinstance(node.args[1], OpOverload) for node in nodes):
        return
    for node in nodes:
        _call(graph, node)
    first = [node.args[0] for node in nodes if node.args[0].op == "placeholder"]
    output = graph.output_node()
    tokens = [*first, *(user for node in nodes for user in node.users)]
    output.args = pytree.tree_map(lambda value: None if value in tokens else value, output.args)
    for node in reversed(nodes):
        for user in list(node.users):
            graph.erase_node(user)
        graph.erase_node(node)
    for token in first:
        token.meta["val"] = None


def _call(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Let what reads results of an operator with effects read those of a call; the token is left."""
    _, target, *args = node.args
    called: Any = target
    _, *results = node.meta["val"]
    with graph.inserting_before(node):
        made = graph.call_function(called, tuple(args), node.kwargs)
    is_one = len(called._schema.returns) == 1
    made.meta = {**node.meta, "val": results[0] if is_one else results}
    for user in [user for user in node.users if user.args[1] != 0]:
        index: Any = user.args[1]
        if is_one:
            user.replace_all_uses_with(made)
            graph.erase_node(user)
        else:
            user.args = (made, index - 1)
