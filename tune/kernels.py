"""The kernels of a program that can be tuned, each as a program of its own, with those merged into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from ..analysis.cost import longest_reduction
from ..analysis.launches import kernels_of
from ..analysis.sizes import symbols_used
from ..dialects.inside import ops_in
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..errors import DeploError
from ..machine.host_cpu import find_target
from ..machine.targets import Target
from ..passes.decisions import recording
from ..passes.schedule_lines import ScheduleLine, schedule_lines
from ..passes.tuned import digest_of, without_names
from ..program_stages import make_context, passes_to, stages_of
from .alone import alone
from .database import Choices
from .scheduling import Find, SchedulingPass, scheduling_for
from .spaces import Space


@dataclass(frozen=True)
class Tunable:
    """Kernels that become one, which the search can measure."""

    name: str
    """What the last of them is called."""
    digests: tuple[str, ...]
    """Of what each of them computes."""
    module: str
    """The text of a program in Loop IR that is these kernels alone."""
    scheduled_by: str
    """The name of the pass that decides."""
    space: Space
    reduction: int
    """The length of the longest reduction."""
    target: str

    @cached_property
    def digest(self) -> str:
        """What the database knows them by."""
        return "+".join(self.digests)

    def steps_for(self, choices: Choices) -> str:
        """The steps of the line that makes these choices, without names. Raises DeploError without a line."""
        context, target = make_context(), find_target(self.target)
        kept, module = (Parser(context, self.module).parse_module() for _ in range(2))
        (line,) = lines_after(context, module, passes_with(target, self.scheduled_by, choices))
        if line.steps is None:
            raise DeploError(f"with these choices it takes {', '.join(line.others)}, which is no step")
        return without_names(line.steps, [*kernels_of(kept)])


def passes_with(target: Target, name: str, choices: Choices | None) -> list[ModulePass]:
    """The passes from Loop IR to Tile IR; that called `name` is asked for choices, if there are any."""
    passes = list(dict(passes_to("tile", target, since="loop"))["tile"])
    if choices is not None:
        (place,) = [i for i, each in enumerate(passes) if each.name == name]
        scheduling = passes[place]
        assert isinstance(scheduling, SchedulingPass)
        passes[place] = replace(scheduling, **choices)
    return passes


def passes_below(target: Target) -> list[ModulePass]:
    """The passes from Tile IR to what is compiled: LLVM's or CUDA."""
    *_, last = (stage for stage in stages_of(target) if stage != "asm")
    return [each for _, passes in passes_to(last, target, since="tile") for each in passes]


def lines_after(
    context: Context, module: ModuleOp, passes: Sequence[ModulePass]
) -> list[ScheduleLine]:
    """Carry out passes on a module, and give the lines of the kernels that are left."""
    with recording(alone=True) as decisions:
        for each in passes:
            each.apply(context, module)
    return schedule_lines(decisions, passes, [op.sym_name.data for op in kernels_of(module)])


def tunable_kernels(module: ModuleOp, target: Target) -> tuple[list[Tunable], dict[str, str]]:
    """The kernels of a program in Torch IR that can be tuned, each once, and why the others cannot."""
    context, module = make_context(), module.clone()
    for each in [p for _, passes in passes_to("loop", target) for p in passes]:
        each.apply(context, module)
    passes = passes_with(target, "", None)
    found: dict[str, Tunable] = {}
    others: dict[str, str] = {}
    for line in lines_after(context, module.clone(), passes):
        kernels = [op for op in kernels_of(module) if op.sym_name.data in line.kernels]
        made = _tunable(context, kernels, line, target, passes)
        if isinstance(made, Tunable):
            found.setdefault(made.digest, made)
        else:
            others[line.kernels[-1]] = made
    return list(found.values()), others


def _tunable(
    context: Context,
    kernels: Sequence[KernelOp],
    line: ScheduleLine,
    target: Target,
    passes: Sequence[ModulePass],
) -> Tunable | str:
    """Kernels of Loop IR that become one, as a program of their own, or why nothing is to be decided."""
    if line.steps is None:
        return f"its schedule takes {', '.join(line.others)}, which is no step"
    if any(map(symbols_used, kernels)):
        return "its sizes may change from call to call"
    if any(kernel.replaced_inputs for kernel in kernels):
        return "it accumulates in an input"
    program = alone(kernels)
    text, reduction = f"{program!s}\n", longest_reduction(program)
    found = _space(context, program, target, passes)
    if isinstance(found, str):
        return found
    digests = tuple(map(digest_of, kernels))
    return Tunable(kernels[-1].sym_name.data, digests, text, *found, reduction, target.name)


def _space(
    context: Context, program: ModuleOp, target: Target, passes: Sequence[ModulePass]
) -> tuple[str, Space] | str:
    """The first pass that has something to decide for a program, which is changed, and the space of that."""
    scheduling = scheduling_for(target)
    reasons: dict[str, None] = {}
    for each in passes:
        for kernel in kernels_of(program) if each.name in scheduling else ():
            found = _decided(kernel, target, scheduling[each.name])
            if not isinstance(found, str):
                return each.name, found
            reasons[found] = None
        each.apply(context, program)
    return [*reasons][-1] if reasons else "it has nothing to choose"


def _decided(kernel: KernelOp, target: Target, find: Find) -> Space | str:
    launches = [op for op in ops_in(kernel) if isinstance(op, LaunchOp)]
    if len(launches) != 1:
        return "it is not one launch"
    if launches[0].schedule is not None:
        return "its schedule is decided"
    return find(kernel, launches[0], target)
