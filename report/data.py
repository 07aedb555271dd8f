"""Everything that a report says of a program, as JSON data: `docs/report.md` says what stands where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from ..analysis.roofline import peak
from ..dialects.inside import ops_of
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..errors import MissingEnvironmentError
from ..machine.targets import Target
from ..passes.schedule_lines import roots_of
from ..program import Program
from ..tools.explanation import Cost, KernelExplanation, explain, kernels_of
from .accesses import accesses_of
from .graph import graph_of, hinted, memory_of
from .machine_code import machine_code
from .stages import Road, Stage, walk_down
from .timeline import timeline_of

VERSION = 1
"""Of the data's form."""

AROUND = 3
"""Lines of a source file that are shown around those that operations name."""


def report_data(
    program: Program,
    title: str,
    rates: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """A program's report as JSON data.

    `rates` are those of a CPU as `measured_rates` gives them, `run` is what running it gave: `seconds` and
    `eager_seconds` of a call, `largest_difference`, `agrees`; `seconds` are those of a launch, by kernel.
    """
    road = walk_down(program.code)
    forms = kernels_of(road.modules["whole"]), kernels_of(road.modules["tile"])
    explained, note = explain(program, forms)
    notes = [] if note is None else [note]
    try:
        road.stages.append(machine_code(road.last, program.target))
    except MissingEnvironmentError as error:
        notes.append(str(error))
    plan = hinted(program.plan, [*program.code.compiled_for[0].values()])
    sources = _Sources(program.code.module.walk())
    loops = _loop_kernels(road, [each.name for each in explained])
    measured = seconds or {}
    kernels = [
        {**_kernel(each, program, road, loops, rates), "measured_seconds": measured.get(each.name)}
        for each in explained
    ]
    return {
        "version": VERSION,
        "program": title,
        "deplo": version("deplo"),
        "target": _target(program.target, rates),
        "notes": notes,
        "sources": sources.excerpts,
        "stages": [_stage(each, sources, loops) for each in road.stages],
        "graph": graph_of(plan, road.modules["host"]),
        "kernels": kernels,
        "totals": _totals(kernels),
        "memory": memory_of(plan, road.modules["host"]),
        "compile": _compile_time(road),
        "decisions": [
            {"pass": d.pass_name, "kernel": d.kernel, "fired": d.fired, "reason": d.reason}
            for d in road.decisions
        ],
        "calls": program.report()["calls"],
        "run": run,
    }


def _loop_kernels(road: Road, names: Sequence[str]) -> dict[str, list[str]]:
    """The kernels of Loop IR that each kernel is, is a part of, or was merged from."""
    roots = roots_of(step.decision for step in road.steps if step.decision.fired)
    there = kernels_of(road.modules["loop"])
    return {
        name: [each for each in there if roots.get(each, each) == roots.get(name, name)]
        for name in names
    }


def _stage(stage: Stage, sources: _Sources, loops: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    data = stage.as_data(dict(loops) if stage.name == "loop" else {name: [name] for name in loops})
    if not any(stage.origins):
        data["from"] = [
            sources.places(stage.text.said.get(line, ())) or None
            for line in range(len(stage.text.lines))
        ]
    return data


def _measured_cost(cost: dict[str, Any] | None, rates: Mapping[str, Any]) -> dict[str, Any] | None:
    """A cost with the seconds that this CPU needs at least."""
    if cost is None:
        return None
    peak = rates["peaks"][0]["per_second"]
    known = Cost(
        cost["operations"],
        cost["bytes"],
        cost["bytes"] / rates["bytes_per_second"],
        cost["operations"] / peak,
        peak,
    )
    return {**asdict(known), "bound": known.bound}


def _totals(kernels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Launches, and what all of them move and need at least, if that is known of each."""
    costs = [(kernel["launches"], kernel["cost"]) for kernel in kernels]
    known = all(cost is not None for _, cost in costs)
    timed = known and all(cost["bound"] is not None for _, cost in costs)
    return {
        "launches": sum(count for count, _ in costs),
        "bytes": sum(count * cost["bytes"] for count, cost in costs) if known else None,
        "least_seconds": sum(
            count * max(cost["memory_seconds"], cost["compute_seconds"]) for count, cost in costs
        )
        if timed
        else None,
    }


def _kernel(
    kernel: KernelExplanation,
    program: Program,
    road: Road,
    loops: Mapping[str, Sequence[str]],
    rates: Mapping[str, Any] | None,
) -> dict[str, Any]:
    told = kernel.as_data()
    launch = next(
        (
            op
            for each in ops_of(road.modules["tile"], KernelOp)
            if each.sym_name.data == kernel.name
            for op in ops_of(each, LaunchOp)
        ),
        None,
    )
    on_gpu = program.target.is_gpu
    timeline = timeline_of(road.modules["host"], kernel.name) if on_gpu else "it is for a CPU"
    used = kernel.usage
    return {
        **{key: told[key] for key in ("name", "location", "launches", "blocks", "threads")},
        **{key: told[key] for key in ("fused", "not_fused", "schedule", "occupancy")},
        "cost": told["cost"] if rates is None else _measured_cost(told["cost"], rates),
        "resources": None
        if used is None
        else {**asdict(used), "shared_bytes": kernel.shared_bytes},
        "steps": [
            step.as_data() for step in road.steps if step.kernel in (kernel.name, *loops[kernel.name])
        ],
        "accesses": [] if launch is None else accesses_of(launch, on_gpu=on_gpu),
        "timeline": None if isinstance(timeline, str) else timeline,
        "no_timeline": timeline if isinstance(timeline, str) else None,
    }


def _target(target: Target, rates: Mapping[str, Any] | None) -> dict[str, Any]:
    data: dict[str, Any] = {"name": target.text if target.cpu else target.name, "gpu": target.is_gpu}
    if not target.is_gpu:
        return {**data, "bytes_per_second": None, "peaks": [], "source": "", **(rates or {})}
    each = max(target.mma_per_cycle, target.wgmma_per_cycle)
    matrix = target.processors * each * 2 * target.clock
    return {
        **data,
        "bytes_per_second": target.dram_bytes_per_second,
        "peaks": [
            {"name": "f32 by threads", "per_second": peak(target)},
            {"name": "16-bit floats by tensor cores", "per_second": matrix},
        ],
        "source": "data sheet",
    }


def _compile_time(road: Road) -> dict[str, Any]:
    """The passes as a tree: those of each segment below it."""
    segments: dict[str, list[dict[str, Any]]] = {}
    for segment, name, seconds in road.seconds:
        segments.setdefault(f"to {segment}", []).append(_timed(name, seconds))
    parts = [
        _timed(name, sum(each["seconds"] for each in passes), passes)
        for name, passes in segments.items()
    ]
    return _timed("passes", sum(each["seconds"] for each in parts), parts)


def _timed(name: str, seconds: float, parts: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "children": [*parts]}


class _Sources:
    """The parts of users' files that operations name."""

    def __init__(self, operations: Iterator[Operation]):
        lines: dict[str, set[int]] = {}
        for op in operations:
            if isinstance(op.location, FileLineColLoc):
                file, line = op.location.filename.data, op.location.line.data
                lines.setdefault(file, set()).add(line)
        self.excerpts: list[dict[str, Any]] = []
        for file, numbers in lines.items():
            path = Path(file)
            text = path.read_text(errors="replace").splitlines() if path.is_file() else []
            for first, end in _parts(sorted(numbers)):
                shown = text[first - 1 : end - 1]
                if shown:
                    self.excerpts.append({"file": file, "first": first, "lines": shown})

    def places(self, operations: Sequence[Operation]) -> list[list[int]]:
        """Which excerpt, and which of its lines, operations name."""
        found: list[list[int]] = []
        for op in operations:
            if not isinstance(op.location, FileLineColLoc):
                continue
            file, line = op.location.filename.data, op.location.line.data
            for number, each in enumerate(self.excerpts):
                if each["file"] == file and 0 <= line - each["first"] < len(each["lines"]):
                    found.append([number, line - each["first"]])
                    break
        return found


def _parts(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that hold some lines and those around them; what overlaps is one."""
    first = end = 0
    for line in lines:
        begin = max(line - AROUND, 1)
        if begin > end:
            if end:
                yield first, end
            first = begin
        end = line + AROUND + 1
    if end:
        yield first, end
