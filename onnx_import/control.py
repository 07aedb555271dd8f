"""Graphs within nodes: the branch of a known condition, and loops of known length, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnx import GraphProto

from ..lazy.dtypes import bool_, int64
from ..lazy.expression import Node
from .building import axis_of, concat, full, op, static_extent, unsqueeze
from .rules import Call, Refused

MAX_STEPS = 512
"""Steps of a loop; each is operations of its own."""

Nodes: TypeAlias = list[Node | None]
"""Results; None for those that were refused inside."""
Run: TypeAlias = Callable[[GraphProto, Sequence[Node]], Nodes]
"""Imports a graph, with these as its inputs."""


@dataclass(frozen=True)
class Control:
    """What an operator with graphs means, in the versions that are known."""

    function: Callable[[Call, Run], Nodes]
    versions: tuple[int, ...]


def _choose(call: Call, run: Run) -> Nodes:
    """The branch that is taken."""
    condition = call.array(0, "condition").reshape(-1)
    if condition.size != 1:
        raise Refused(f"{condition.size} conditions")
    branches = call.needed("else_branch"), call.needed("then_branch")
    return run(branches[bool(condition[0])], [])


def _loop(call: Call, run: Run) -> Nodes:
    """The body as often as the number says, and as the condition, which must be known after each turn."""
    body: GraphProto = call.needed("body")
    most = int(call.array(0, "number of turns").item()) if call.has(0) else None
    goes_on = bool(call.array(1, "condition").item()) if call.has(1) else True
    state: list[Node] = [call.tensor(i) for i in range(2, len(call.inputs))]
    carried, turns = len(state), 0
    given: list[list[Node]] = [[] for _ in body.output[1 + carried :]]
    while goes_on and (most is None or turns < most):
        if turns == MAX_STEPS:
            raise Refused(f"more than {MAX_STEPS} turns")
        inputs = [full((), turns, int64), full((), True, bool_)]
        found = run(body, [*inputs, *state])
        made = [node for node in found if node is not None]
        if len(made) < len(found):
            return [None] * len(call.outputs)
        try:
            goes_on = bool(call.know(made[0]).item())
        except Refused as reason:
            raise Refused(
                f"its condition must be known when the model is imported: {reason}"
            ) from None
        state, turns = made[1 : 1 + carried], turns + 1
        for several, node in zip(given, made[1 + carried :], strict=True):
            several.append(node)
    if given and not turns:
        raise Refused("results of a loop of no turns")
    return [*state, *(concat([unsqueeze(n, 0) for n in several], 0) for several in given)]


def _list(call: Call, name: str, number: int) -> list[int]:
    values = call.given(name)
    found = [0] * number if values is None else [int(n) for n in values]
    if len(found) != number:
        raise Refused(f"{name} = {found} of {number}")
    return found


def _scan(call: Call, run: Run) -> Nodes:
    """The body at each position of an axis of tensors, with a state from one to the next."""
    body: GraphProto = call.needed("body")
    number = call.integer("num_scan_inputs")
    nodes = call.tensors()
    carried = len(nodes) - number
    if number < 1 or carried < 0 or carried > len(body.output):
        raise Refused(f"num_scan_inputs = {number} of {len(nodes)}")
    state, scanned = nodes[:carried], nodes[carried:]
    axes = [
        axis_of(axis, len(node.shape))
        for axis, node in zip(_list(call, "scan_input_axes", number), scanned, strict=True)
    ]
    backwards = _list(call, "scan_input_directions", number)
    lengths = {static_extent(node, axis) for node, axis in zip(scanned, axes, strict=True)}
    (steps, *others) = sorted(lengths)
    if others or not 1 <= steps <= MAX_STEPS:
        raise Refused(f"{sorted(lengths)} steps; 1 to {MAX_STEPS} are taken apart")
    given: list[list[Node]] = [[] for _ in body.output[carried:]]
    for step in range(steps):
        parts = [
            op("select.int", node, dim=axis, index=steps - 1 - step if back else step)
            for node, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        found = run(body, [*state, *parts])
        made = [node for node in found if node is not None]
        if len(made) < len(found):
            return [None] * len(call.outputs)
        state = made[:carried]
        for several, node in zip(given, made[carried:], strict=True):
            several.append(node)
    out_axes = _list(call, "scan_output_axes", len(given))
    reverses = _list(call, "scan_output_directions", len(given))
    results: Nodes = [*state]
    for several, axis, back in zip(given, out_axes, reverses, strict=True):
        at = axis_of(axis, len(several[0].shape) + 1)
        ordered = several[::-1] if back else several
        results.append(concat([unsqueeze(node, at) for node in ordered], at))
    return results


CONTROL: Mapping[str, Control] = {
    "If": Control(_choose, (1, 11, 13, 16, 19, 21, 23, 24, 25)),
    "Loop": Control(_loop, (11, 13, 16, 19, 21, 23, 24, 25)),
    "Scan": Control(_scan, (9, 11, 16, 19, 21, 23, 24, 25)),
}
"""Operators of ONNX's own domain whose attributes are graphs."""
