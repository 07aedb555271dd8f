"""What `deplo explain` knows of a program: for each kernel what it was made of, why, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..analysis.coalescing import AccessCost, access_costs
from ..analysis.cost import hints_of, traffic, work
from ..analysis.locations import line_of
from ..analysis.occupancy import Occupancy, occupancy
from ..analysis.roofline import peak
from ..dialects.instructions import row_of
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..errors import MissingEnvironmentError
from ..machine.matrix_instructions import MatrixInstruction
from ..passes.decisions import Decision
from ..passes.schedule_lines import schedule_lines
from ..program import Program
from ..program_stages import make_context, passes_to, stage_of
from ..runtime.cuda import CudaProgram
from ..runtime.nvrtc import Usage

WHOLE = "split-matmul-k"
"""The last pass that leaves loops as the algorithm has them, so that work can be counted."""

FORWARD = ("fuse-loops", "split-matmul-k")
"""Passes whose decisions are about a kernel and name what it became; others name what the kernel was."""


BESIDE = "transpose-weights"
"""The pass whose decisions name what stands beside the kernel, which is made of what it was made of."""


@dataclass(frozen=True)
class Cost:
    """What one launch does, and how long the machine needs at least."""

    operations: float
    """In units of one addition, as fusion counts them."""
    bytes: int
    """Each argument once."""
    memory_seconds: float | None = None
    compute_seconds: float | None = None
    peak: float | None = None
    """Operations that the machine does in a second at best, by the units that the kernel uses."""

    @property
    def bound(self) -> str | None:
        """Which of the two takes longer."""
        if self.memory_seconds is None or self.compute_seconds is None:
            return None
        return "memory" if self.memory_seconds >= self.compute_seconds else "compute"


@dataclass(frozen=True)
class KernelExplanation:
    """One kernel of a program."""

    name: str
    location: str
    launches: int
    blocks: str
    threads: int
    fused: tuple[str, ...]
    not_fused: tuple[str, ...]
    schedule: str | None
    decisions: tuple[Decision, ...]
    """Of the passes on Tile IR and below, those that fired."""
    cost: Cost | None
    usage: Usage | None
    shared_bytes: int
    """Shared memory of a block."""
    occupancy: Occupancy | None
    accesses: tuple[AccessCost, ...]
    """What a warp's accesses of memory take, each one once."""

    def as_data(self) -> dict[str, Any]:
        """The same as JSON data."""
        data = asdict(self)
        data["decisions"] = [{"pass": d.pass_name, "reason": d.reason} for d in self.decisions]
        if self.cost is not None:
            data["cost"]["bound"] = self.cost.bound
        return data


Forms = tuple[Mapping[str, KernelOp], Mapping[str, KernelOp]]
"""The kernels of a program by name: with the loops of the algorithm, and as Tile IR has them at the end."""


def explain(
    program: Program, forms: Forms | None = None
) -> tuple[list[KernelExplanation], str | None]:
    """Each kernel of a program in order of its first launch, and why resources are not known, if so.

    Without `forms` the passes that give them run again.
    """
    note = None
    usage: dict[str, Usage] = {}
    try:
        executable = program.executable if program.target.is_gpu else None
        usage = executable.usage if isinstance(executable, CudaProgram) else {}
    except MissingEnvironmentError as error:
        note = str(error)
    whole, final = forms or (_kernels(program, WHOLE), _kernels(program, None))
    decisions = program.compilation.decisions
    plans = program.plan.whole
    shared = {k.name: k.shared_bytes for p in plans for k in p.kernels}  # asked for at the launch
    launches = [step for plan in plans for step in plan.launches]
    explained: list[KernelExplanation] = []
    for name in dict.fromkeys(step.kernel for step in launches):
        steps = [step for step in launches if step.kernel == name]
        names = _history(name, decisions)
        launch = _launch_of(final.get(name))
        used = usage.get(name)
        held = None
        if used is not None:
            shared[name] += used.shared_bytes
            held = occupancy(program.target, steps[0].threads, used.registers, shared[name])
        explained.append(
            KernelExplanation(
                name=name,
                location="" if (last := final.get(name)) is None else line_of(last),
                launches=sum(plan.launch_count(name) for plan in plans),
                blocks=str(steps[0].blocks),
                threads=steps[0].threads,
                fused=_fused(names, decisions),
                not_fused=_not_fused(names, decisions),
                schedule=None
                if launch is None or launch.schedule is None
                else str(launch.schedule),
                decisions=_realised(names, decisions),
                cost=_cost(whole.get(name), launch, program),
                usage=used,
                shared_bytes=shared[name],
                occupancy=held,
                accesses=_accesses(launch) if launch is not None and program.target.is_gpu else (),
            )
        )
    return explained, note


def why_not(program: Program, pass_name: str) -> list[str]:
    """One line for each kernel: why a pass did nothing to it, or what it did."""
    lines: list[str] = []
    for decision in program.compilation.decisions:
        if decision.pass_name == pass_name:
            verdict = "fired: " if decision.fired else ""
            lines.append(f"{decision.kernel}: {verdict}{decision.reason}")
    return list(dict.fromkeys(lines))


def lines_of(program: Program) -> list[str]:
    """For each kernel, the pipeline of primitives from Loop IR to Tile IR, or which passes are none yet."""
    segments = dict(passes_to("tile", program.target, program.schedule, stage_of(program.code.module)))
    kernels = [kernel.name for kernel in program.kernels]
    lines = schedule_lines(program.compilation.decisions, segments["tile"], kernels)
    return [str(line) for line in lines]


def _kernels(program: Program, stop_after: str | None) -> dict[str, KernelOp]:
    """The kernels of a program as Tile IR, all of it or as one pass leaves it, by name."""
    module = program.code.module.clone()
    context = make_context()
    segments = passes_to("tile", program.target, program.schedule, stage_of(module))
    for each in [p for _, passes in segments for p in passes]:
        each.apply(context, module)
        if each.name == stop_after:
            break
    return kernels_of(module)


def kernels_of(module: ModuleOp) -> dict[str, KernelOp]:
    """The kernels of a module by name."""
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, KernelOp)}


def _launch_of(kernel: KernelOp | None) -> LaunchOp | None:
    if kernel is None:
        return None
    return next((op for op in kernel.walk() if isinstance(op, LaunchOp)), None)


def _history(name: str, decisions: Sequence[Decision]) -> set[str]:
    """What a kernel was called, and is made of."""
    names = {name}
    for decision in reversed(decisions):
        if not decision.fired or not decision.others or decision.pass_name == BESIDE:
            continue
        if decision.pass_name in FORWARD:
            if names.intersection(decision.others):
                names.add(decision.kernel)
        elif decision.kernel in names:
            names.update(decision.others)
    return names


def _fused(names: set[str], decisions: Sequence[Decision]) -> tuple[str, ...]:
    found = [
        d.kernel
        for d in decisions
        if d.fired and d.pass_name == "fuse-loops" and names.intersection(d.others)
    ]
    found += [
        other
        for d in decisions
        if d.fired and d.pass_name in ("merge-siblings", "join-kernels") and d.kernel in names
        for other in d.others
    ]
    return tuple(dict.fromkeys(found))


def _not_fused(names: set[str], decisions: Sequence[Decision]) -> tuple[str, ...]:
    """What stayed outside a kernel, or it outside of what, with the reason."""
    found = [
        f"{d.kernel}: {d.reason}"
        for d in decisions
        if not d.fired and d.others and (d.kernel in names or names.intersection(d.others))
    ]
    return tuple(dict.fromkeys(found))


def _realised(names: set[str], decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """What was decided of a kernel from its schedule on."""
    start = next((i for i, d in enumerate(decisions) if d.pass_name == "tileify"), len(decisions))
    return tuple(d for d in decisions[start:] if d.fired and d.kernel in names)


def _cost(kernel: KernelOp | None, launch: LaunchOp | None, program: Program) -> Cost | None:
    if kernel is None:
        return None
    module = kernel.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    with hints_of(module):
        operations, moved = work(kernel), traffic(kernel)
    target = program.target
    if not target.is_gpu:
        return Cost(operations, moved)
    rows = [] if launch is None else [row_of(op) for op in launch.walk()]
    best = peak(target, next((row for row in rows if isinstance(row, MatrixInstruction)), None))
    return Cost(operations, moved, moved / target.dram_bytes_per_second, operations / best, best)


def _accesses(launch: LaunchOp) -> tuple[AccessCost, ...]:
    """The costliest access of each kind to each memory."""
    worst: dict[tuple[str, str], AccessCost] = {}
    for access in access_costs(launch):
        key = access.operation, access.memory
        if key not in worst or access.cost * worst[key].least > worst[key].cost * access.least:
            worst[key] = access
    return tuple(worst.values())
