"""Calls of `torch.scan`: a part of the program that runs once per step of a leading axis.

    scan(body, [h0], [flip(x, [0])], (w,))       # what `reverse=True` comes to

is a `torch.scan reversed` of `x`, whose results are flipped.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._higher_order_ops.scan import scan_op
from torch.utils.checkpoint import CheckpointPolicy

from .prims import prims_as_aten

aten = torch.ops.aten

SCAN: Any = scan_op


@dataclass(frozen=True)
class Scan:
    """What a call of `torch.scan` is about."""

    body: torch.fx.Graph
    carried: list[torch.fx.Node]
    slices: list[torch.fx.Node]
    shared: list[torch.fx.Node]
    reversed: bool


_LAYOUT = {aten.flip.default, aten.slice.Tensor, aten.cat.default, aten.unsqueeze.default}
"""What only says in which order a scan reads."""


def partition(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """PyTorch's min-cut partition, in which a backward scan reads what the forward pass made.

    Else the forward pass may save a copy in the order of the backward pass.
    """
    calls = joint.graph.find_nodes(op="call_function", target=SCAN)
    ahead: list[Any] = [each for call in calls for each in call.args[2]]
    while ahead:
        node = ahead.pop()
        if node.target in _LAYOUT:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
            ahead += node.all_input_nodes
    return min_cut_rematerialization_partition(joint, inputs, **options)


def hold_parts(module: torch.fx.GraphModule, node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    """Let a call hold the parts of the program that it runs, in place of their names in `module`."""
    held: list[torch.fx.GraphModule] = []
    for name in [x for x in node.args if isinstance(x, torch.fx.Node) and x.op == "get_attr"]:
        part = operator.attrgetter(str(name.target))(module)
        if isinstance(part, torch.fx.GraphModule):
            prims_as_aten(part.graph)
            args: Any = tuple(part if each is name else each for each in node.args)
            node.args = args
            held.append(part)
            if not name.users:
                node.graph.erase_node(name)
    return held


def read_scan(node: torch.fx.Node) -> Scan:
    """The parts of a call whose body `hold_parts` put there."""
    args: Any = node.args
    part, carried, slices, shared = args
    flipped = all(x.target is aten.flip.default and x.args[1] == [0] for x in slices)
    sources = [x.args[0] if flipped else x for x in slices]
    return Scan(part.graph, list(carried), sources, list(shared), flipped)
