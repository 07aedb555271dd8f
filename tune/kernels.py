"""The kernels of a program that can be tuned, each as a program of its own, with those merged into it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.cost import longest_reduction
from ..analysis.sizes import symbols_used
from ..dialects.inside import ops_in
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..machine.targets import Target
from ..passes.tuned import canonical_text
from ..program_stages import make_context, passes_to
from .alone import alone
from .database import Choices, digest_of
from .scheduling import Find, SchedulingPass, scheduling_for
from .spaces import Space


@dataclass(frozen=True)
class Tunable:
    """A kernel that the search can measure."""

    name: str
    digest: str
    """Of its canonical text."""
    module: str
    """The text of a program that is this kernel alone, as the pass meets it that decides for it."""
    scheduled_by: str
    """The name of that pass."""
    space: Space
    reduction: int
    """The length of its longest reduction."""
    target: str


def passes_for(target: Target) -> list[ModulePass]:
    """The passes from Torch IR to what is compiled: LLVM's or CUDA."""
    last = "cuda" if target.is_gpu else "llvm"
    return [each for _, segment in passes_to(last, target) for each in segment]


def passes_with(target: Target, name: str, choices: Choices | None) -> list[ModulePass]:
    """The passes from the one called `name` on, which is asked for choices, if there are any."""
    passes = passes_for(target)
    (place,) = [i for i, each in enumerate(passes) if each.name == name]
    scheduling = passes[place]
    assert isinstance(scheduling, SchedulingPass)
    asked = scheduling if choices is None else replace(scheduling, **choices)
    return [asked, *passes[place + 1 :]]


def tunable_kernels(module: ModuleOp, target: Target) -> tuple[list[Tunable], dict[str, str]]:
    """The kernels of a program in Torch IR that can be tuned, each once, and why the others cannot."""
    module = module.clone()
    context = make_context()
    found: dict[str, Tunable] = {}
    others: dict[str, str] = {}
    passes, scheduling = passes_for(target), scheduling_for(target)
    last = max(n for n, each in enumerate(passes) if each.name in scheduling)
    for each in passes[: last + 1]:
        if (find := scheduling.get(each.name)) is not None:
            for kernel in [op for op in ops_in(module) if isinstance(op, KernelOp)]:
                made = _tunable(kernel, target, each.name, find)
                if isinstance(made, Tunable):
                    found.setdefault(made.digest, made)
                elif made is not None:
                    others[kernel.sym_name.data] = made
        each.apply(context, module)
    names = {op.sym_name.data for op in ops_in(module) if isinstance(op, KernelOp)}
    names -= {kernel.name for kernel in found.values()}
    return list(found.values()), {name: why for name, why in others.items() if name in names}


def _tunable(
    kernel: KernelOp, target: Target, scheduled_by: str, find: Find
) -> Tunable | str | None:
    """A kernel as a pass meets it, or why it has nothing to decide; None if an earlier pass has decided."""
    launches = [op for op in ops_in(kernel) if isinstance(op, LaunchOp)]
    if any(launch.schedule is not None for launch in launches):
        return None
    if len(launches) != 1:
        return "it is not one launch"
    if symbols_used(kernel):
        return "its sizes may change from call to call"
    if kernel.replaced_inputs:
        return "it accumulates in an input"
    decided = find(kernel, launches[0], target)
    if isinstance(decided, str):
        return decided
    space, kernels = decided
    program = alone(kernels)
    return Tunable(
        kernel.sym_name.data,
        digest_of(canonical_text(kernels)),
        f"{program!s}\n",
        scheduled_by,
        space,
        longest_reduction(program),
        target.name,
    )
