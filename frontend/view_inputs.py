"""Inputs of a gradient that lie in memory with their axes in another order, read as they lie.

    def gradient(saved, g):          # saved: 512 by 256 elements with strides (1, 512), a weight's transpose
        return g @ saved.t()

becomes

    def gradient(saved, g):          # 256 by 512 elements, row by row
        return g @ saved.permute([1, 0]).t()

What a forward pass saves is often a view. A program takes arrays row by row, and anything else would be
copied at each call: so a call hands over the memory that is viewed, and the view is part of the program,
where it costs nothing. Images whose channels come last stay what they are, as convolutions are scheduled for
channels first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from .decompositions import is_mutable
from .layouts import order_in_memory

aten = torch.ops.aten

CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def read_as_they_lie(graph: torch.fx.Graph) -> dict[int, list[int]]:
    """Change a graph of ATen operators so that it takes dense inputs row by row.

    Gives, by the position of a changed input, the order in which a call has to permute its axes.
    """
    orders: dict[int, list[int]] = {}
    for position, node in enumerate(graph.find_nodes(op="placeholder")):
        order = order_in_memory(node)
        if order is None or not all(map(_only_reads, node.users)) or _has_channels_last(node):
            continue
        first = next((user for user in graph.nodes if user in node.users), None)
        if first is None:
            continue
        # Where it is first read: so it is part of a layer that the program has several times.
        with graph.inserting_before(first):
            inverse = [order.index(axis) for axis in range(len(order))]
            name = f"{node.name}_viewed"
            view = graph.create_node(
                "call_function", aten.permute.default, (node, inverse), name=name
            )
        node.replace_all_uses_with(view, delete_user_cb=lambda user, view=view: user is not view)
        value = node.meta["val"]
        view.meta = dict(node.meta)
        node.meta = node.meta | {"val": value.permute(order)}
        orders[position] = order
    return orders


def permuted(inputs: Sequence[Any], orders: Mapping[int, list[int]]) -> Sequence[Any]:
    """The inputs of a call as a changed graph takes them."""
    if not orders:
        return inputs
    return [
        value.permute(orders[position]) if position in orders else value
        for position, value in enumerate(inputs)
    ]


def _only_reads(user: torch.fx.Node) -> bool:
    """Whether a node computes something, and returns or changes no input as it is."""
    return isinstance(user.target, OpOverload) and not is_mutable(user.target)


def _has_channels_last(node: torch.fx.Node) -> bool:
    """Whether an input is an image whose channels come last."""
    value = node.meta["val"]
    order = CHANNELS_LAST.get(value.ndim)
    return order is not None and value.is_contiguous(memory_format=order)
