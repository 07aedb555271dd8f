"""Parts of inputs that are assigned to, as the caches of a decoder are: `cache[:, at : at + 1] = keys`.

To autograd's tracer this makes a whole new tensor, with a choice for each of its elements, which the input is
then overwritten with. What is said by positions, `cache.index_copy_(1, arange(at, at + 1), keys)`, changes
these elements in place.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

SMALL = 1 << 12
"""Elements of an input that are not worth it."""


@dataclass(frozen=True)
class _Part:
    """The positions along one axis from `start` on, before `stop`; or the one `start`, which is `counted`."""

    axis: int
    start: Any
    stop: Any
    counted: bool


def assign_by_positions(graph: torch.fx.GraphModule) -> None:
    """Let assignments to a part of an input along one axis name the positions, in a graph of Dynamo's."""
    changed = False
    for node in list(graph.graph.find_nodes(op="call_function", target=operator.setitem)):
        target, index, value = node.args
        if not isinstance(target, torch.fx.Node) or target.op != "placeholder":
            continue
        if not isinstance(value, torch.fx.Node) or node.users:
            continue
        whole, source = _example(target), _example(value)
        if not isinstance(whole, torch.Tensor) or not isinstance(source, torch.Tensor):
            continue
        elements = prod(_number(n) or 0 for n in whole.shape)
        if elements < SMALL or whole.dtype.is_complex or whole.device != source.device:
            continue
        if (part := _part_of(index, whole)) is None:
            continue
        shape = _shape_of(part, whole)
        same = len(shape) == source.ndim and all(map(_same, source.shape, shape))
        if same or _broadcasts(source.shape, shape):
            _rewrite(graph.graph, node, part, shape)
            changed = True
    if changed:
        graph.recompile()


def _example(value: Any) -> Any:
    return value.meta.get("example_value") if isinstance(value, torch.fx.Node) else value


def _number(value: Any) -> int | None:
    """What a number is in the example; asks no guard."""
    value = _example(value)
    if isinstance(value, torch.SymInt):
        return value.node.hint if value.node.has_hint() else None
    return value if type(value) is int else None


def _part_of(index: Any, whole: torch.Tensor) -> _Part | None:
    """The part that an index names, if it is one along one axis of known length."""
    places = list(index) if isinstance(index, Sequence) else [index]
    if any(place is Ellipsis for place in places):
        at = next(i for i, place in enumerate(places) if place is Ellipsis)
        places[at : at + 1] = [slice(None)] * (whole.ndim - len(places) + 1)
    if len(places) > whole.ndim or any(place is Ellipsis or place is None for place in places):
        return None
    named = [(axis, place) for axis, place in enumerate(places) if place != slice(None)]
    if len(named) != 1:
        return None
    ((axis, place),) = named
    size = whole.shape[axis]
    if type(size) is not int:
        return None
    if isinstance(place, slice):
        start = 0 if place.start is None else place.start
        stop = size if place.stop is None else place.stop
        part = _Part(axis, start, stop, counted=False)
        ends = _number(start), _number(stop)
        plain = place.step in (None, 1)
    else:  # of a number that changes Dynamo makes graphs anew
        first = place if type(place) is int else None
        part = _Part(axis, place, None, counted=True)
        ends = first, None if first is None else first + 1
        plain = True
    # Which ends are negative or past the last position Dynamo has asked, so that it holds in all calls.
    if not plain or ends[0] is None or ends[1] is None or not 0 <= ends[0] < ends[1] <= size:
        return None
    return part


def _shape_of(part: _Part, whole: torch.Tensor) -> list[Any]:
    """The shape of a part, without an axis that is counted."""
    shape: list[Any] = list(whole.shape)
    if part.counted:
        del shape[part.axis]
    else:
        length = _example(part.stop) - _example(part.start)
        symbolic = isinstance(length, torch.SymInt) and length.node.expr.is_Integer
        shape[part.axis] = int(length.node.expr) if symbolic else length
    return shape


def _same(one: Any, other: Any) -> bool:
    """Whether two sizes are the same in all calls; asks no guard."""
    left, right = (n.node.expr if isinstance(n, torch.SymInt) else n for n in (one, other))
    return bool(left == right)


def _broadcasts(shape: Sequence[Any], to: Sequence[Any]) -> bool:
    """Whether a tensor of one shape can be repeated to have another, which is known."""
    if len(shape) > len(to) or not all(type(n) is int for n in (*shape, *to)):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def _rewrite(graph: torch.fx.Graph, node: torch.fx.Node, part: _Part, shape: list[Any]) -> None:
    """Put the change of the positions of a part, of some shape, in the place of an assignment."""
    target, _, value = node.args
    assert isinstance(target, torch.fx.Node)
    whole, source, last = _example(target), _example(value), node.prev
    with graph.inserting_before(node):
        if len(source.shape) != len(shape) or not all(map(_same, source.shape, shape)):
            value = graph.call_method("expand", (value, shape))
        stop = part.stop
        if part.counted:
            stop = part.start + 1
            value = graph.call_method("unsqueeze", (value, part.axis))
        if source.dtype != whole.dtype:
            value = graph.call_method("to", (value, whole.dtype))
        positions = graph.call_function(torch.arange, (part.start, stop), {"device": whole.device})
        graph.call_method("index_copy_", (target, part.axis, positions, value))
    new = node.prev
    while new is not last:
        new.meta["stack_trace"] = node.meta.get("stack_trace")
        new = new.prev
    graph.erase_node(node)
