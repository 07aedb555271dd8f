"""`deplo explain`: what became of a program, kernel by kernel, and why."""

from __future__ import annotations

import argparse
import json
import sys

from ..errors import UsageError
from ..machine.host_cpu import find_target
from ..passes.pipelines import DEFAULT_CUDA_TARGET
from ..program import Program
from ..program_stages import passes_to, stages_of
from .compiling import add_compile_options, capture_source, load
from .console import write_output
from .explanation import Cost, KernelExplanation, explain, lines_of, why_not
from .target_option import add_target_option

NAME = "explain"
HELP = "say of each kernel what was fused, how it is scheduled, why, and what limits it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_target_option(parser)
    add_compile_options(parser)
    parser.add_argument(
        "--why-not",
        metavar="PASS",
        help="only say why this pass did nothing, a line for each kernel",
    )
    parser.add_argument(
        "--schedule-only",
        action="store_true",
        help="only print the pipeline of primitives that schedules each kernel, a line for each",
    )
    parser.add_argument("--json", action="store_true", help="the same as data")


def main(options: argparse.Namespace) -> int:
    """Compile and explain."""
    target = find_target(options.target or DEFAULT_CUDA_TARGET)
    source = load(options)
    captured = capture_source(options, source)
    program = Program(captured, target, options.schedule)
    if options.why_not is not None:
        write_output(_why_not(program, options.why_not))
        return 0
    if options.schedule_only:
        write_output("".join(f"{line}\n" for line in lines_of(program)))
        return 0
    kernels, note = explain(program)
    if options.json:
        write_output(json.dumps([kernel.as_data() for kernel in kernels], indent=2) + "\n")
    else:
        write_output("\n".join(_text(kernel, program) for kernel in kernels))
    if note is not None:
        sys.stderr.write(f"note: {note}\n")
    return 0


def _why_not(program: Program, pass_name: str) -> str:
    last = list(stages_of(program.target))[-1]
    ran = [each.name for _, passes in passes_to(last, program.target) for each in passes]
    if pass_name not in ran:
        raise UsageError(
            f"no pass '{pass_name}' runs for {program.target.name}; there are {', '.join(dict.fromkeys(ran))}"
        )
    lines = why_not(program, pass_name)
    return "".join(f"{line}\n" for line in lines or [f"{pass_name} had nothing to decide"])


def _text(kernel: KernelExplanation, program: Program) -> str:
    """One kernel as a paragraph."""
    rows: list[tuple[str, str]] = []
    if kernel.fused:
        rows.append(("made of", ", ".join(kernel.fused)))
    rows += [("apart", reason) for reason in kernel.not_fused]
    times = "once" if kernel.launches == 1 else f"{kernel.launches} times"
    rows.append(("launch", f"{times}, {kernel.blocks} blocks of {kernel.threads} threads"))
    if kernel.schedule is not None:
        rows.append(("schedule", kernel.schedule))
    rows += [("", f"{d.pass_name}: {d.reason}") for d in kernel.decisions]
    if kernel.cost is not None:
        rows += _cost_rows(kernel.cost, program)
    if (used := kernel.usage) is not None:
        spilled = used.spill_loads + used.spill_stores
        text = f"{used.registers} registers, {spilled} bytes spilled, {kernel.shared_bytes} bytes shared"
        rows.append(("resources", text))
    if (held := kernel.occupancy) is not None:
        filled = f"{held.threads} threads, {held.share:.0%} of what it holds"
        text = f"{held.blocks} blocks on a multiprocessor, limited by {held.limit}: {filled}"
        rows.append(("occupancy", text))
    for access in kernel.accesses:
        verb = access.operation.rpartition(".")[2]
        unit = "turns" if access.space == "shared" else "sectors"
        text = f"{verb} {access.memory}: {access.cost} {unit} for a warp, {access.least} at best"
        rows.append(("access", text + (f", vectors of {access.width}" if access.width > 1 else "")))
    title = f"{kernel.name}  ({kernel.location})" if kernel.location else kernel.name
    return "\n".join([title, *(f"  {label:<11}{text}" for label, text in rows), ""])


def _cost_rows(cost: Cost, program: Program) -> list[tuple[str, str]]:
    each = cost.operations / cost.bytes if cost.bytes else 0.0
    moved = f"{_with_unit(cost.operations, '')}operations, {_with_unit(cost.bytes, 'B')}"
    rows = [("work", f"{moved}, {each:.3g} operations for a byte")]
    if cost.memory_seconds is not None and cost.compute_seconds is not None:
        delivered, best = program.target.dram_bytes_per_second / 1e12, (cost.peak or 0) / 1e12
        memory = f"memory {cost.memory_seconds * 1e6:.3g} us at {delivered:.3g} TB/s"
        compute = f"arithmetic {cost.compute_seconds * 1e6:.3g} us at {best:.3g} TFLOP/s"
        rows.append(("at least", f"{memory}, {compute}: bound by {cost.bound}"))
    return rows


def _with_unit(number: float, unit: str) -> str:
    """A number with three digits and a prefix: 2.5 M."""
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}{unit}"
        number /= 1000
    return f"{number:.3g} T{unit}"
