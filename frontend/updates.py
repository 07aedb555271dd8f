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


def take_updates(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Let a graph return what it copies to placeholders; gives these, in the order of the new values."""
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.find_nodes(op="call_function", target=COPY):
        target, value = node.args[:2]
        if isinstance(target, torch.fx.Node) and target.op == "placeholder":
            assert isinstance(value, torch.fx.Node)
            values[target] = value
            node.replace_all_uses_with(value)
            graph.erase_node(node)
    (returned,) = graph.output_node().args
    graph.output_node().args = ((*returned, *values.values()),)  # type: ignore[misc]
    return list(values)


def mark_updates(
    importer: Importer, updated: Sequence[torch.fx.Node], outputs: Sequence[Output]
) -> None:
    """Say which of the last outputs, the new values of placeholders, may take their places.

    None may where sizes are found in data: a program that finds one to be 0 begins anew, with its arguments
    as they were.
    """
    if importer.sizes.found:
        return
    owned = [output.index for output in outputs if output.source == "result"]
    for node, output in zip(updated, outputs[len(outputs) - len(updated) :], strict=True):
        whole = output.source == "result" and output.view is None and output.layout is None
        if whole and owned.count(output.index) == 1 and output.index is not None:
            importer.add_attribute(node, BECOMES, output.index)
