"""Inputs that a graph changes: `copy_` of a new value to a placeholder, which AOTAutograd leaves at its end.

The graph returns the new values instead, behind what it returned. Where nothing else has the memory of one,
it may take the place of the input: an argument of `@main` with `deplo.becomes = 2` has the value of result 2
when the program is over, if the program returns the argument itself as that result; who calls copies others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.fx

from ..analysis.updates import BECOMES
from .importer import Importer
from .view_outputs import Output

COPY = torch.ops.aten.copy_.default


Owner: TypeAlias = tuple[torch.nn.Module, str]
"""A part of a module, and the name of a buffer of it."""


@dataclass(frozen=True)
class Updated:
    """A placeholder that a program changes."""

    node: torch.fx.Node
    owner: Owner | None = None
    """Who has the buffer, if the program puts a new tensor in its place and leaves the old one as it is."""


@dataclass(frozen=True)
class Update:
    """An argument of `@main` that a program changes, and its new value."""

    argument: int
    value: Output
    """An `output` that it is may be another update's value, which counts as an output behind the others."""
    owner: Owner | None = None
    """As of `Updated`."""


def write(updates: Sequence[Update], values: Sequence[Any], arguments: Sequence[Any]) -> None:
    """Give arguments their new values, of which each may be the argument itself, written to by a kernel.

    Autograd is told of it, as by an operator that changes its argument.
    """
    changed = {update.argument for update in updates if update.owner is None}
    copied: list[tuple[Any, Any]] = []
    for update, value in zip(updates, values, strict=True):
        target = arguments[update.argument]
        if update.owner is not None:
            setattr(*update.owner, value)
            continue
        if value is target:
            torch.autograd.graph.increment_version(target)
            continue
        moves = update.value.source == "argument" and update.value.index in changed
        copied.append((target, value.clone() if moves else value))
    for target, value in copied:
        target.detach().copy_(value)


def take_updates(graph: torch.fx.Graph) -> list[Updated]:
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
    return list(map(Updated, values))


def mark_updates(
    importer: Importer,
    updated: Sequence[Updated],
    outputs: Sequence[Output],
    updates: Sequence[Update],
) -> None:
    """Say which new values may take the places of their arguments.

    None may where sizes are found in data: a program that finds one to be 0 begins anew, with its arguments
    as they were. Nor may one whose old value is another argument's new one.
    """
    if importer.sizes.found:
        return
    values = [*outputs, *(update.value for update in updates)]
    owned = [value.index for value in values if value.source == "result"]
    read = {update.value.index for update in updates if update.value.source == "argument"}
    for each, update in zip(updated, updates, strict=True):
        value = update.value
        whole = value.source == "result" and value.view is None and value.layout is None
        if not whole or update.argument in read or value.index is None or each.owner is not None:
            continue
        if owned.count(value.index) == 1:
            importer.add_attribute(each.node, BECOMES, value.index)


def updates_of(
    updated: Sequence[Updated], outputs: Sequence[Output], positions: Mapping[str, int]
) -> tuple[tuple[Output, ...], tuple[Update, ...]]:
    """The outputs of a program, and its updates, whose values are the last of `outputs`.

    `positions` are those of arguments, by name.
    """
    count = len(outputs) - len(updated)
    updates = zip(updated, outputs[count:], strict=True)
    return tuple(outputs[:count]), tuple(
        Update(positions[each.node.name], value, each.owner) for each, value in updates
    )
