"""A program goes down again, pass by pass, watched: its texts, where each line came from, what each step did.

Passes give what they make the location of what they made it of, as users' messages need it. So before a
segment begins, each operation's location gets the line that says it, in place of a column; where it ends,
what is there names the lines that it came from. An operation that no pass placed has the location of what
uses it, else of what it uses, else of what it stands in.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation

from ..dialects.loop import KernelOp
from ..execution import Code
from ..passes.decisions import Decision, recording
from ..passes.tuned import tuned_by
from ..program_stages import make_context, passes_to, stage_of
from ..tools.explanation import WHOLE
from ..tune.book import open_book
from .texts import Text, cuda_text, joined, llvm_texts, mlir_text

TITLES = {
    "torch": "Torch IR",
    "tensor": "Tensor IR",
    "loop": "Loop IR",
    "tile": "Tile IR",
    "kernel": "Kernel IR",
    "cuda": "CUDA C++",
    "llvm": "LLVM IR",
    "asm": "assembly",
    "sass": "SASS",
}
"""What users call a stage."""

KEPT = {WHOLE: "whole", "assign-arena": "host"}
"""The passes after which a copy of the module is kept, and as what."""

_HUNK = re.compile(r"@@ -|[, ].*")

CONTEXT = 2
"""Lines around a change that a step shows."""


@dataclass
class Stage:
    """The text of a stage, and from which lines of the one before each line came."""

    name: str
    text: Text
    origins: list[list[int]]

    def as_data(self, names: dict[str, Sequence[str]]) -> dict[str, object]:
        """The same as JSON data; `names` are those that each kernel has here."""
        parts = self.text.parts
        return {
            "name": self.name,
            "title": TITLES[self.name],
            "language": self.name if self.name in ("cuda", "sass", "asm", "llvm") else "mlir",
            "lines": self.text.lines,
            "from": [each or None for each in self.origins],
            "kernels": {
                kernel: [[lines.start, lines.stop] for name in own for lines in parts.get(name, ())]
                for kernel, own in names.items()
                if any(name in parts for name in own)
            },
        }


@dataclass(frozen=True)
class Step:
    """What a pass from Loop IR to Tile IR did to a kernel, or why it did nothing."""

    kernel: str
    decision: Decision
    diff: list[str] | None

    def as_data(self) -> dict[str, object]:
        """The same as JSON data."""
        told = self.decision
        return {
            "pass": told.pass_name,
            "fired": told.fired,
            "reason": told.reason,
            "line": told.steps or None,
            "diff": self.diff,
        }


@dataclass
class Road:
    """What a program was at each stage of its way."""

    stages: list[Stage] = field(default_factory=list[Stage])
    modules: dict[str, ModuleOp] = field(default_factory=dict[str, ModuleOp])
    """Copies of the module: `loop`, `tile`; `whole`, on the way, with the loops of the algorithm; and `host`,
    in which the program launches kernels of its target.

    Their operations say the lines of the text that they are in (`line_of`).
    """
    steps: list[Step] = field(default_factory=list[Step])
    decisions: list[Decision] = field(default_factory=list[Decision])
    seconds: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])
    """Seconds of each pass of each segment."""

    @property
    def last(self) -> Stage:
        """Where it has come to."""
        return self.stages[-1]


def walk_down(code: Code) -> Road:
    """Run the passes of a program for its target once more; the program is as it was."""
    road, module, context = Road(), code.module.clone(), make_context()
    end = "cuda" if code.target.is_gpu else "llvm"
    first = stage_of(module)
    with recording(alone=True) as decisions, tuned_by(open_book(code.target, code.schedule).lines):
        _arrive(road, first, module)
        for name, passes in passes_to(end, code.target, code.schedule, first):
            kernels = _kernel_lines(module) if name == "tile" else {}
            for each in passes:
                known = len(decisions)
                start = time.perf_counter()
                each.apply(context, module)
                road.seconds.append((name, each.name, time.perf_counter() - start))
                _place(module)
                if name == "tile":
                    road.steps += _steps(decisions[known:], module, kernels)
                if kept := KEPT.get(each.name):
                    road.modules[kept] = module.clone()
            _arrive(road, name, module)
    road.decisions = decisions
    return road


def _arrive(road: Road, name: str, module: ModuleOp) -> None:
    """Note the text of a stage, and give each operation the line that says it."""
    match name:
        case "cuda":
            text = cuda_text(module)
        case "llvm":
            text = joined(llvm_texts(module))
        case _:
            text = mlir_text(module)
    origins: list[list[int]] = [[] for _ in text.lines]
    if road.stages:
        for line, ops in text.said.items():
            origins[line] = sorted({o for op in ops if (o := _line_in(op.location)) is not None})
    road.stages.append(Stage(name, text, origins))
    first = text.first_lines()
    for op in module.walk():
        op.location = _stamped(op.location, first.get(op))
    if kept := {"loop": "loop", "tile": "tile", "kernel": "host"}.get(name):
        road.modules[kept] = module.clone()
    if name == "tile":
        road.modules.setdefault("whole", road.modules["tile"])


def _stamped(location: Attribute, line: int | None) -> FileLineColLoc:
    """A location that says a line of a stage, beside the user's line."""
    number = IntAttr(0 if line is None else line + 1)
    if isinstance(location, FileLineColLoc):
        return FileLineColLoc(location.filename, location.line, number)
    return FileLineColLoc(StringAttr(""), IntAttr(0), number)


def _line_in(location: Attribute) -> int | None:
    """The line of the stage before that a location says."""
    if isinstance(location, FileLineColLoc) and location.column.data:
        return location.column.data - 1
    return None


def line_of(op: Operation) -> int | None:
    """The line that says an operation of one of `Road.modules`."""
    return _line_in(op.location)


def _place(module: ModuleOp) -> None:
    """Give operations that no pass has placed the location of users, of what they use, or around them."""
    for op in module.body.block.ops:
        for region in op.regions:
            for block in region.blocks:
                _place_in(block, UnknownLoc())


def _place_in(block: Block, around: LocationAttr) -> None:
    ops = list(block.ops)
    for op in reversed(ops):
        if isinstance(op.location, UnknownLoc):
            users = (use.operation.location for result in op.results for use in result.uses)
            op.location = next((x for x in users if not isinstance(x, UnknownLoc)), op.location)
    for op in ops:
        if isinstance(op.location, UnknownLoc):
            owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
            known = (x.location for x in owners if not isinstance(x.location, UnknownLoc))
            op.location = next(known, around)
        for region in op.regions:
            for inner in region.blocks:
                _place_in(inner, op.location)


# --------------------------------------------------------------------------- steps


def _kernel_lines(module: ModuleOp) -> dict[str, list[str]]:
    return {op.sym_name.data: str(op).splitlines() for op in module.walk() if isinstance(op, KernelOp)}


def _steps(
    decisions: Sequence[Decision], module: ModuleOp, before: dict[str, list[str]]
) -> list[Step]:
    """What a pass did to each kernel; `before` has their lines, which become those after it."""
    touched = {name for d in decisions if d.fired for name in (d.kernel, *d.others)}
    if touched:
        found = {op.sym_name.data: op for op in module.walk() if isinstance(op, KernelOp)}
        after = {name: str(found[name]).splitlines() for name in touched if name in found}
    else:
        after = {}
    steps: list[Step] = []
    for told in decisions:
        diff = None
        if told.fired and told.kernel in after:
            lines = after.pop(told.kernel)
            diff = _diff(before.get(told.kernel, []), lines)
            before[told.kernel] = lines
        steps.append(Step(told.kernel, told, diff))
    before |= after
    return steps


def _diff(before: list[str], after: list[str]) -> list[str]:
    """The changes between two texts: `@ LINE` of the first begins a hunk, a space, - or + each line."""
    changes = list(difflib.unified_diff(before, after, n=CONTEXT, lineterm=""))[2:]
    return [f"@ {_HUNK.sub('', each)}" if each.startswith("@@") else each for each in changes]
