"""What a forward pass saves of an input that it changes is a copy from before the change.

    def f(x, buffer):
        scale = buffer * 2
        with torch.no_grad():
            buffer.mul_(0.5)
        return x * scale

The partition has the backward pass compute `scale` again, from `buffer`, which then has other elements.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from .aliasing import may_alias
from .unsupported import OpOverload

aten = torch.ops.aten


def save_before_change(forward: torch.fx.GraphModule, results: int) -> None:
    """Copy inputs that are both changed and saved, or views of which are saved, for all that reads them.

    `forward` returns as many `results` of the program, then what it saves.
    """
    graph = forward.graph
    changes = graph.find_nodes(op="call_function", target=aten.copy_.default)
    output = graph.output_node()
    values: Any = output.args[0]
    saved = [value for value in values[results:] if isinstance(value, torch.fx.Node)]
    sources = {_source(value): None for value in saved}
    changed = [each for each in sources if any(change.args[0] is each for change in changes)]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    stay = {output, *changes}
    for source in changed:
        with graph.inserting_before(first):
            before = graph.call_function(aten.clone.default, (source,))
        before.meta = dict(source.meta)
        source.replace_all_uses_with(before, delete_user_cb=lambda user: user not in stay)
        before.args = (source,)
        last = (before if value is source else value for value in values[results:])
        values = (*values[:results], *last)
    if changed:
        output.args = (values,)
        forward.recompile()


def _source(node: torch.fx.Node) -> torch.fx.Node:
    """Return what has the memory of a value: itself, or what it is a view of."""
    while node.target is operator.getitem or (
        isinstance(node.target, OpOverload) and may_alias(node.target)
    ):
        node = node.all_input_nodes[0]
    return node
