"""`as_strided` of tensors that lie in memory with their axes in another order.

    x.transpose(0, 1).as_strided(size, stride)       # x: 4 by 8 elements, row by row

becomes

    x.transpose(0, 1).permute(1, 0).as_strided(size, stride)

The operator counts places in memory. A tensor of the IR has none: it is taken to lie row by row, as the
permuted one does in PyTorch too. So a program that has one holds only for inputs of the strides that it was
captured with, as far as what is read depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import UsageError
from .arguments import BY_STRIDES, is_plain
from .layouts import dense_strides, order_in_memory, order_of

aten = torch.ops.aten


def permute_to_memory_order(graph: torch.fx.Graph) -> None:
    """Let each `as_strided` of a graph of ATen operators that reads all of some memory read it row by row.

    One that reads a part of memory, or memory from another place on, stays as it is.
    """
    for node in filter(_reads_memory, list(graph.nodes)):
        source = node.args[0]
        order = None if is_plain(source) else order_in_memory(source)
        if order is None or source.meta["val"].storage_offset() != 0:
            continue
        with graph.inserting_before(node):
            moved = graph.call_function(aten.permute.default, (source, order))
        moved.meta = source.meta | {"val": source.meta["val"].permute(order)}
        node.args = (moved, *node.args[1:])


def _reads_memory(node: torch.fx.Node) -> bool:
    return str(node.target).removeprefix("aten.") in BY_STRIDES


@dataclass(frozen=True)
class ReadInput:
    """An input on whose strides depends what `as_strided` reads."""

    position: int
    """Among the flattened inputs."""
    order: tuple[int, ...] | None
    """Its axes in memory, the slowest first, if it is dense."""
    strides: tuple[Any, ...]
    offset: Any

    def check(self, flat: Sequence[Any]) -> None:
        """Raise UsageError unless the input of a call lies in memory as when captured."""
        value = flat[self.position]
        if not isinstance(value, torch.Tensor) or value.ndim != len(self.strides):
            return  # other checks say so
        wanted = self.strides if self.order is None else dense_strides(value.shape, self.order)
        strides = zip(value.shape, value.stride(), wanted, strict=False)
        if value.storage_offset() == self.offset and (
            not value.numel() or all(n == 1 or has == needs for n, has, needs in strides)
        ):
            return
        raise UsageError(
            f"input {self.position} must have strides {tuple(wanted)} and storage offset {self.offset}, as "
            "when compiled, because the program reads memory by strides (as_strided); it has "
            f"{value.stride()} and {value.storage_offset()}: pass a copy that lies so, or compile again"
        )


def read_inputs(graph: torch.fx.Graph, positions: Mapping[str, int]) -> tuple[ReadInput, ...]:
    """The inputs from which `as_strided` of a graph reads, or a tensor that has its strides from them.

    `positions` are those of the inputs, by name.
    """
    waiting = [node for node in graph.nodes if _reads_memory(node)]
    known = set(waiting)
    while waiting:
        new = [node for node in waiting.pop().all_input_nodes if node not in known]
        known.update(new)
        waiting += new
    return tuple(
        _read_input(node, positions[node.name])
        for node in graph.find_nodes(op="placeholder")
        if node in known and node.name in positions and isinstance(node.meta["val"], torch.Tensor)
    )


def _read_input(node: torch.fx.Node, position: int) -> ReadInput:
    value = node.meta["val"]
    order = order_of(value)
    return ReadInput(
        position,
        None if order is None else tuple(order),
        tuple(value.stride()),
        value.storage_offset(),
    )
