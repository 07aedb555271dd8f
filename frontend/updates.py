"""Inputs that a graph changes: `copy_` of a new value to a placeholder, which AOTAutograd leaves at its end.

The graph returns the new values instead, behind what it returned. Where nothing else has the memory of one,
it may take the place of the input: an argument of `@main` with `deplo.becomes = 2` has the value of result 2
when the program is over, if the program returns the argument itself as that result; who calls copies others.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.fx

from ..analysis.updates import BECOMES
from .importer import Importer
from .view_outputs import Output

COPY = torch.ops.aten.copy_.default


def take_updates(graph: torch.fx.Graph) -> list[int]:
    """Return what is copied to placeholders; gives, of each value at the end of what is returned, which."""
    places = {node: i for i, node in enumerate(graph.find_nodes(op="placeholder"))}
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.find_nodes(op="call_function", target=COPY):
        target, value = node.args[:2]
        if target in places and isinstance(value, torch.fx.Node):
            values[target] = value
            node.replace_all_uses_with(value)
            graph.erase_node(node)
    (returned,) = graph.output_node().args
    graph.output_node().args = ((*returned, *values.values()),)  # type: ignore[misc]
    return [places[node] for node in values]


def mark_updates(importer: Importer, updated: Sequence[int], outputs: Sequence[Output]) -> None:
    """Say which results of `@main` may take the places of arguments, those with these positions.

    None may where sizes are dynamic: a program that finds one to be 0 begins anew, with its arguments as they
    were.
    """
    if importer.sizes.attributes:
        return
    owned = [output.index for output in outputs if output.source == "result"]
    for argument, output in zip(updated, outputs[len(outputs) - len(updated) :], strict=True):
        whole = output.source == "result" and output.view is None and output.axes is None
        if whole and owned.count(output.index) == 1 and output.index is not None:
            importer.add_attribute(argument, BECOMES, output.index)
