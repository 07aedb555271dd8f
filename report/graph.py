"""The program as a graph of launches, and its memory over time, read off the host function and the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..analysis.launch_groups import written_arguments
from ..dialects import kernel
from ..dialects.inside import ops_in, ops_of
from ..runtime.plan import Plan
from ..runtime.plan_parts import Array, CallStep, Ref, references
from ..runtime.sizes import evaluate


def hinted(plan: Plan, hints: Sequence[int]) -> Plan:
    """A plan where its dynamic sizes are as long as it was compiled for."""
    if not plan.sizes:
        return plan
    shapes = [[evaluate(e, hints) for e in a.array.shape] for a in plan.arguments]
    found = {number: hint for number, hint in enumerate(hints) if plan.sizes[number].argument is None}
    return plan.at(shapes, found)


@dataclass
class Graph:
    """Nodes for arguments, launches, calls and results; an edge for each array that one gives another."""

    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def node(self, kind: str, name: str, array: Array | None = None) -> int:
        """Add a node; its number."""
        number = len(self.nodes)
        self.nodes.append({"id": number, "kind": kind, "name": name, **_described(array)})
        return number

    def edge(self, start: int, end: int, name: str, array: Array | None) -> None:
        """Add an edge, once."""
        edge = {"from": start, "to": end, "name": name, **_described(array)}
        if edge not in self.edges:
            self.edges.append(edge)


def _described(array: Array | None) -> dict[str, Any]:
    if array is None:
        return {"type": None, "bytes": None}
    return {"type": str(array), "bytes": array.nbytes}


@dataclass(frozen=True)
class _Step:
    """A step of a plan: its name, whether a kernel, and the arrays that it reads and writes."""

    name: str
    is_launch: bool
    reads: Sequence[Ref]
    writes: Sequence[Ref]


def _steps(plan: Plan, host: ModuleOp) -> list[_Step]:
    """The steps of a plan; `host` has them as operations, which say what they write."""
    operations = [op for op in ops_in(_main(host)) if isinstance(op, kernel.LaunchOp | kernel.CallOp)]
    found: list[_Step] = []
    for step, op in zip(plan.steps, operations, strict=True):
        if isinstance(step, CallStep):
            given = references([*step.arguments.values()])
            found.append(_Step(step.operator, False, list(given), step.results))
            continue
        assert isinstance(op, kernel.LaunchOp)
        arrays = [_array(plan, ref) for ref in step.arguments]
        written = [arrays[i] for i in written_arguments(host, op) if i < len(arrays)]
        found.append(_Step(step.kernel, True, arrays, written))
    return found


def _main(host: ModuleOp) -> Operation:
    return next(op for op in ops_of(host, func.FuncOp) if op.sym_name.data == "main")


def _array(plan: Plan, ref: Ref) -> Ref:
    """The argument or buffer that a launch gets, or gets a map or a slice of."""
    if ref.kind == "tensor_map":
        ref = plan.tensor_maps[ref.index].of
    return plan.places[ref.index].of if ref.kind == "place" else ref


def _names(plan: Plan, host: ModuleOp) -> dict[Ref, str]:
    names = {Ref("argument", i): argument.name for i, argument in enumerate(plan.arguments)}
    for number, op in enumerate(ops_of(_main(host), kernel.AllocOp)):
        names[Ref("buffer", number)] = op.result.name_hint or f"buffer {number}"
    return names


def graph_of(plan: Plan, host: ModuleOp) -> dict[str, Any]:
    """The graph of a plan whose sizes are known, as JSON data."""
    graph, names = Graph(), _names(plan, host)
    writers: dict[Ref, int] = {}

    def writer(ref: Ref) -> int | None:
        """The node that an array comes from, so far."""
        if ref not in writers and ref.kind == "argument":
            argument = plan.arguments[ref.index]
            writers[ref] = graph.node(argument.kind, argument.name, argument.array)
        return writers.get(ref)

    def connect(refs: Iterable[Ref], node: int) -> None:
        for ref in dict.fromkeys(refs):
            if (start := writer(ref)) is not None and start != node:
                graph.edge(start, node, names[ref], plan.array(ref))

    for step in _steps(plan, host):
        node = graph.node("kernel" if step.is_launch else "call", step.name)
        connect(step.reads, node)
        writers |= dict.fromkeys(step.writes, node)
    for number, ref in enumerate(plan.results):
        connect([ref], graph.node("result", f"result {number}", plan.array(ref)))
    return {"nodes": graph.nodes, "edges": graph.edges}


def memory_of(plan: Plan, host: ModuleOp) -> dict[str, Any]:
    """The buffers of a plan whose sizes are known over its steps, as JSON data."""
    steps, names = _steps(plan, host), _names(plan, host)
    used: dict[Ref, list[int]] = {}
    for number, step in enumerate(steps):
        for ref in (*step.reads, *step.writes):
            used.setdefault(ref, []).append(number)
    buffers: list[dict[str, Any]] = []
    for number, buffer in enumerate(plan.buffers):
        ref = Ref("buffer", number)
        times = used.get(ref, [0])
        last = len(steps) - 1 if ref in plan.results else max(times)
        buffers.append(
            {
                "name": names[ref],
                **_described(buffer.array),
                "offset": buffer.offset,
                "first": min(times),
                "last": last,
            }
        )
    return {
        "arena_bytes": plan.arena_bytes,
        "steps": [step.name for step in steps],
        "buffers": buffers,
    }
