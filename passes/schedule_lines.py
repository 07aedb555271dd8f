"""From what the passes of `loop-to-tile` decided to a line for each kernel: the steps that do it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline

from .decisions import Decision
from .pipeline_text import steps_text
from .pipelines import make_passes
from .schedule.fill import FillPass
from .schedule.primitive import Primitive
from .tile.apply_schedules import ApplySchedulesPass


@dataclass(frozen=True)
class ScheduleLine:
    """How kernels of Loop IR that become one are scheduled."""

    kernels: tuple[str, ...]
    """Their names, the last one's is kept."""
    steps: str | None
    """A pipeline of primitives, or None where it takes more than these."""
    others: tuple[str, ...] = ()
    """The passes that it takes, then."""

    def __str__(self) -> str:
        if self.steps is None:
            return f"{self.kernels[-1]}: no pipeline yet: {', '.join(self.others)}"
        return f"{'+'.join(self.kernels)}: {self.steps}"


def schedule_lines(
    decided: Sequence[Decision], passes: Iterable[ModulePass], kernels: Sequence[str]
) -> list[ScheduleLine]:
    """The lines of `kernels`, which are left after `passes` that `decided` so."""
    road = {each.name for each in passes}
    decisions = [d for d in decided if d.fired and d.pass_name in road]
    roots = roots_of(decisions)
    left = set(kernels)
    names = dict.fromkeys(roots.get(kernel, kernel) for kernel in kernels)
    merged = {name: [n for n in roots if roots[n] == name and n not in left] for name in names}
    beside = {roots[kernel] for kernel in roots if kernel in left and roots[kernel] in left}
    named = {*roots, *beside}
    return [_line((*merged[name], name), decisions, roots, named) for name in names]


def roots_of(decisions: Iterable[Decision]) -> dict[str, str]:
    """For the kernels that became others, or part of one, the name that stands for all of these."""
    roots: dict[str, str] = {}
    for decision in decisions:
        root = roots.get(decision.kernel, decision.kernel)
        roots |= {name: root for name in decision.others if name != root}
    return roots


def _line(
    kernels: tuple[str, ...], decisions: list[Decision], roots: dict[str, str], named: set[str]
) -> ScheduleLine:
    """What became of kernels of Loop IR that are one at the end.

    Steps about one of several kernels that it became, which are `named`, name it.
    """
    name = kernels[-1]
    own = [d for d in decisions if name in (d.kernel, roots.get(d.kernel))]
    if others := tuple(dict.fromkeys(d.pass_name for d in own if d.steps is None)):
        return ScheduleLine(kernels, None, others)
    steps = [
        replace(step, kernel=d.kernel) if isinstance(step, Primitive) and d.kernel in about else step
        for d in own
        for about in (set[str]() if d.pass_name == ApplySchedulesPass.name else named,)
        for step in make_passes(parse_pipeline(d.steps or ""))
    ]
    # Passes that are no primitives are about all kernels: the last time is enough.
    once = [s for n, s in enumerate(steps) if isinstance(s, Primitive) or s not in steps[n + 1 :]]
    return ScheduleLine(kernels, steps_text(_merged(once)))


def _merged(steps: Sequence[ModulePass]) -> list[ModulePass]:
    """Steps that do what these do; what neighbours say of slabs, one says."""
    merged: list[ModulePass] = []
    for step in steps:
        last = merged[-1] if merged else None
        if (
            isinstance(step, FillPass)
            and isinstance(last, FillPass)
            and step.kernel == last.kernel
            and not step.given.keys() & last.given.keys()
        ):
            merged[-1] = replace(last, **step.given)
        else:
            merged.append(step)
    return merged
