"""The kernels of a program that can be tuned, each as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from ..analysis.cost import longest_reduction
from ..analysis.cpu_tilings import CpuProblem, CpuTiling, choose_cpu_tiling
from ..analysis.sizes import symbols_used
from ..analysis.targets import Target
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..passes.llvm.host_cpu import host_cpu
from ..passes.tile.schedule_cpu import ScheduleCpuPass, find_problem
from ..passes.tuned import canonical_text
from ..program_stages import make_context, passes_to
from .database import digest_of


@dataclass(frozen=True)
class Tunable:
    """A kernel that the search can measure."""

    name: str
    digest: str
    """Of its canonical text."""
    module: str
    """The text of a program that is this kernel alone, as `schedule-cpu` meets it."""
    problem: CpuProblem
    model: CpuTiling
    """What the model chooses."""
    reduction: int
    """The length of its longest reduction."""


def split_passes(target: Target) -> tuple[list[ModulePass], ScheduleCpuPass, list[ModulePass]]:
    """The passes from Torch IR to LLVM: those before `schedule-cpu`, it, and those after it."""
    passes = [each for _, segment in passes_to("llvm", target) for each in segment]
    (place,) = [i for i, each in enumerate(passes) if isinstance(each, ScheduleCpuPass)]
    scheduling = passes[place]
    assert isinstance(scheduling, ScheduleCpuPass)
    return passes[:place], scheduling, passes[place + 1 :]


def with_choices(scheduling: ScheduleCpuPass, choices: dict[str, int]) -> ScheduleCpuPass:
    """The pass that asks for choices."""
    return replace(scheduling, **choices)


def tunable_kernels(module: ModuleOp, target: Target) -> tuple[list[Tunable], dict[str, str]]:
    """The kernels of a program in Torch IR that can be tuned, each once, and why the others cannot."""
    module = module.clone()
    context = make_context()
    before, _, _ = split_passes(target)
    for each in before:
        each.apply(context, module)
    found: dict[str, Tunable] = {}
    others: dict[str, str] = {}
    for kernel in [op for op in module.walk() if isinstance(op, KernelOp)]:
        made = _tunable(kernel)
        if isinstance(made, str):
            others[kernel.sym_name.data] = made
        else:
            found.setdefault(made.digest, made)
    return list(found.values()), others


def _tunable(kernel: KernelOp) -> Tunable | str:
    launches = [op for op in kernel.walk() if isinstance(op, LaunchOp)]
    if len(launches) != 1:
        return "it is not one launch"
    problem = find_problem(launches[0])
    if isinstance(problem, str):
        return problem
    if symbols_used(kernel):
        return "its sizes may change from call to call"
    if kernel.replaced_inputs:
        return "it accumulates in an input"
    alone = _alone(kernel)
    return Tunable(
        kernel.sym_name.data,
        digest_of(canonical_text(kernel)),
        f"{alone!s}\n",
        problem[1],
        choose_cpu_tiling(problem[1], host_cpu()),
        longest_reduction(alone),
    )


def _alone(kernel: KernelOp) -> ModuleOp:
    """A program that is one kernel."""
    inputs: Sequence[SSAValue] = list(kernel.inputs)
    block = Block(arg_types=[value.type for value in inputs])
    copy = kernel.clone()
    for position, argument in enumerate(block.args):
        argument.name_hint = inputs[position].name_hint
        copy.operands[position] = argument
    block.add_ops([copy, func.ReturnOp(*copy.outputs)])
    types = FunctionType.from_lists([v.type for v in inputs], [v.type for v in copy.outputs])
    return ModuleOp([func.FuncOp("main", types, Region(block))])
