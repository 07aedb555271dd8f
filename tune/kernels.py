"""The kernels of a program that can be tuned, each as a program of its own, with those merged into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from ..analysis.cost import longest_reduction
from ..analysis.sizes import symbols_used
from ..analysis.targets import Target
from ..dialects.inside import ops_in
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..passes.tuned import canonical_text
from ..program_stages import make_context, passes_to
from .database import digest_of
from .spaces import SCHEDULING, Choices, Find, SchedulingPass, Space


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


def cpu_passes(target: Target) -> list[ModulePass]:
    """The passes from Torch IR to LLVM."""
    return [each for _, segment in passes_to("llvm", target) for each in segment]


def passes_with(target: Target, name: str, choices: Choices | None) -> list[ModulePass]:
    """The passes from the one called `name` on, which is asked for choices, if there are any."""
    passes = cpu_passes(target)
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
    passes = cpu_passes(target)
    last = max(n for n, each in enumerate(passes) if each.name in SCHEDULING)
    for each in passes[: last + 1]:
        if (find := SCHEDULING.get(each.name)) is not None:
            for kernel in [op for op in ops_in(module) if isinstance(op, KernelOp)]:
                made = _tunable(kernel, each.name, find)
                if isinstance(made, str):
                    others[kernel.sym_name.data] = made
                else:
                    found.setdefault(made.digest, made)
        each.apply(context, module)
    names = {op.sym_name.data for op in ops_in(module) if isinstance(op, KernelOp)}
    names -= {kernel.name for kernel in found.values()}
    return list(found.values()), {name: why for name, why in others.items() if name in names}


def _tunable(kernel: KernelOp, scheduled_by: str, find: Find) -> Tunable | str:
    launches = [op for op in ops_in(kernel) if isinstance(op, LaunchOp)]
    if len(launches) != 1:
        return "it is not one launch"
    if symbols_used(kernel):
        return "its sizes may change from call to call"
    if kernel.replaced_inputs:
        return "it accumulates in an input"
    decided = find(kernel, launches[0])
    if isinstance(decided, str):
        return decided
    space, kernels = decided
    alone = _alone(kernels)
    return Tunable(
        kernel.sym_name.data,
        digest_of(canonical_text(kernels)),
        f"{alone!s}\n",
        scheduled_by,
        space,
        longest_reduction(alone),
    )


def _alone(kernels: Sequence[KernelOp]) -> ModuleOp:
    """A program that is these kernels, and gives what the last one computes."""
    made = {value for kernel in kernels for value in kernel.outputs}
    read = dict.fromkeys(value for kernel in kernels for value in kernel.inputs)
    inputs = [value for value in read if value not in made]
    block = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for kernel in kernels:
        block.add_op(kernel.clone(value_mapper=values))
    results = [values[value] for value in kernels[-1].outputs]
    block.add_op(func.ReturnOp(*results))
    types = FunctionType.from_lists([v.type for v in inputs], [v.type for v in results])
    return ModuleOp([func.FuncOp("main", types, Region(block))])
