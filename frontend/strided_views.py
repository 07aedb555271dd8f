"""`as_strided` and its kin of tensors that are no row-major memory: views, or axes in another order.

    x[1:].as_strided(size, stride)                   # x: 4 by 8 elements, the second axis the slowest

becomes

    x.permute(1, 0).as_strided(size, stride, 1)

The operators count places in memory. A tensor of the IR has none: it is taken to lie row by row, as the
permuted one does in PyTorch too. So a program that has one holds only for inputs of the strides that it was
captured with, as far as the places depend on them. Memory that `as_strided_scatter` changes is viewed again:

    x[1:].as_strided_scatter(y, size, stride)

becomes

    x.permute(1, 0).as_strided_scatter(y, size, stride, 1).permute(1, 0)[1:]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..errors import UsageError
from .arguments import BY_STRIDES, bound_arguments, is_plain
from .layouts import dense_strides, order_of
from .sizes import is_symbolic
from .updates import Updated
from .view_outputs import root_of, viewed_by

aten = torch.ops.aten


def permute_to_memory_order(graph: torch.fx.Graph) -> None:
    """Let each operator of a graph of ATen operators that goes by strides have memory row by row.

    One whose tensor is part of memory that no node is all of stays as it is.
    """
    for node in filter(_goes_by_strides, list(graph.nodes)):
        source = node.args[0]
        if is_plain(source) or (found := _memory_of(source)) is None:
            continue
        memory, views = found
        given = {argument.name: value for argument, value in bound_arguments(node)}
        if given["storage_offset"] is None:
            offset = source.meta["val"].storage_offset()
            node.kwargs = {**node.kwargs, "storage_offset": offset}
        order = order_of(memory.meta["val"]) or []
        with graph.inserting_before(node):
            row_major = _permuted(graph, memory, order)
        node.args = (row_major, *node.args[1:])
        if node.target is aten.as_strided_scatter.default:
            node.meta = node.meta | {"val": row_major.meta["val"]}
            _view_again(graph, node, order, memory, views)


def _memory_of(node: torch.fx.Node) -> tuple[torch.fx.Node, list[torch.fx.Node]] | None:
    """The tensor that is all of some memory, and the views from it to `node`; None if there is none."""
    views: list[torch.fx.Node] = []
    value = node.meta["val"]
    while not _is_whole(node):
        viewed = viewed_by(node)
        if viewed is None:
            return None
        views.insert(0, node)
        node = viewed
    whole = node.meta["val"]
    alike = whole.dtype == value.dtype and whole.is_neg() == value.is_neg()
    return (node, views) if alike else None


def _is_whole(node: torch.fx.Node) -> bool:
    """Whether the elements of a node are dense in memory, from its start."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or is_symbolic(value.storage_offset()):
        return False
    return value.storage_offset() == 0 and order_of(value) is not None


def _permuted(
    graph: torch.fx.Graph, node: torch.fx.Node, order: Sequence[int]
) -> torch.fx.Node:
    if list(order) == sorted(order):
        return node
    moved = graph.call_function(aten.permute.default, (node, list(order)))
    moved.meta = node.meta | {"val": node.meta["val"].permute(order)}
    return moved


def _view_again(
    graph: torch.fx.Graph,
    changed: torch.fx.Node,
    order: Sequence[int],
    memory: torch.fx.Node,
    views: Sequence[torch.fx.Node],
) -> None:
    """Let the users of memory that is changed, with its axes in `order`, have the views of it again."""
    users = list(changed.users)
    with graph.inserting_before(changed.next):
        last = _permuted(graph, changed, [order.index(axis) for axis in range(len(order))])
        again = {memory: last}
        for view in views:
            last = again[view] = graph.node_copy(view, lambda n: again.get(n, n))
    changed.replace_all_uses_with(last, delete_user_cb=lambda user: user in users)


def _goes_by_strides(node: torch.fx.Node) -> bool:
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
    """Where its memory begins, if that is what is read; else None."""
    why: str = "reads memory by strides (as_strided)"
    """What the program does for which they matter."""

    def fits(self, flat: Sequence[Any]) -> bool:
        """Whether the input of a call lies in memory as when captured."""
        value = flat[self.position]
        if not isinstance(value, torch.Tensor) or value.ndim != len(self.strides):
            return True  # other checks say so
        strides = zip(value.shape, value.stride(), self._wanted(value), strict=False)
        return self.offset in (None, value.storage_offset()) and (
            not value.numel() or all(n == 1 or has == needs for n, has, needs in strides)
        )

    def check(self, flat: Sequence[Any]) -> None:
        """Raise UsageError unless the input of a call fits."""
        if self.fits(flat):
            return
        value = flat[self.position]
        offset = "" if self.offset is None else f" and storage offset {self.offset}"
        raise UsageError(
            f"input {self.position} must have strides {tuple(self._wanted(value))}{offset}, as when "
            f"compiled, because the program {self.why}; it has "
            f"{value.stride()} and {value.storage_offset()}: pass a copy that lies so, or compile again"
        )

    def _wanted(self, value: torch.Tensor) -> Sequence[Any]:
        """The strides that an input of the shape of `value` has to have."""
        return self.strides if self.order is None else dense_strides(value.shape, self.order)


def read_inputs(graph: torch.fx.Graph, positions: Mapping[str, int]) -> tuple[ReadInput, ...]:
    """The inputs from which `as_strided` of a graph reads, or a tensor that has its strides from them.

    `positions` are those of the inputs, by name.
    """
    waiting = [node for node in graph.nodes if _goes_by_strides(node)]
    memory = {root_of(node.args[0]) for node in waiting}
    known = set(waiting)
    while waiting:
        new = [node for node in waiting.pop().all_input_nodes if node not in known]
        known.update(new)
        waiting += new
    return tuple(
        _read_input(node, positions[node.name], is_memory=node in memory)
        for node in graph.find_nodes(op="placeholder")
        if node in known and node.name in positions and isinstance(node.meta["val"], torch.Tensor)
    )


def changed_inputs(
    updated: Sequence[Updated], positions: Mapping[str, int]
) -> tuple[ReadInput, ...]:
    """The inputs that a program changes, for one in which strides say what is memory of an input."""
    why = "changes it in place, and what reshape, contiguous and random numbers give depends on strides"
    return tuple(
        replace(_read_input(each.node, positions[each.node.name], is_memory=False), why=why)
        for each in updated
        if each.node.name in positions
    )


def _read_input(node: torch.fx.Node, position: int, *, is_memory: bool) -> ReadInput:
    value = node.meta["val"]
    order = order_of(value)
    return ReadInput(
        position,
        None if order is None else tuple(order),
        tuple(value.stride()),
        value.storage_offset() if is_memory else None,
    )
