"""deplo on a GPU against eager PyTorch and torch.compile, one case after the other.

    python bench/gpu.py                  # measures what the results file has not yet, and writes it
    python bench/gpu.py --dtype bfloat16 # the same in bf16: bench/results/gpu-bfloat16.json
    python bench/gpu.py --fresh          # measures everything again
    python bench/gpu.py --show           # prints the results file
    python bench/gpu.py --dry-run        # the same on a CPU with small sizes, to see that the script runs

Every contender runs as plain launches and, where it can, as the replay of a CUDA graph. They take turns, each
time after the L2 cache was overwritten; the median counts. A result is compared with float64 first, and one
that is wrong has no time. `floor` is the time that the case's bytes and multiply-adds need at the chip's best
rates: a time below it is marked as impossible. The file is written after each case: a run cut off goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from gpu_cases import Cases

import deplo
from deplo.analysis.roofline import peak
from deplo.errors import DeploError
from deplo.machine.host_cpu import find_target
from deplo.machine.matrix_instructions import first_row
from deplo.machine.targets import TARGETS, Target, get_target
from deplo.tools.measuring import (
    ROOT,
    Call,
    Case,
    CpuClock,
    GpuClock,
    compare,
    inductor,
    machine,
    work_of,
)

RESULTS = ROOT / "bench" / "results"
ROUNDS = 30
BUDGET_SECONDS = 540.0
TOLERANCE = {"highest": 1e-3, "high": 1e-2}
"""Of the largest relative error, ||ours - exact|| / ||exact||, by how precise products of f32 are: with the
first f32 lands far below it, tf32 does not."""
HALF_TOLERANCE = 2e-2
"""The same of bf16 and f16, which eager itself rounds in between."""
DTYPES = {each: getattr(torch, each) for each in ("float32", "bfloat16", "float16")}


# --------------------------------------------------------------------------- contenders


def graphed(call: Call) -> Call | None:
    """A replay of a call as a CUDA graph, or None if it cannot be recorded."""
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:  # e.g. an operator that synchronizes
        torch.cuda.synchronize()
        return None
    return graph.replay


def with_graphs(calls: dict[str, Call]) -> dict[str, Call]:
    """The calls, and the replay of each that can be recorded."""
    replays = {f"{name}, graph": graphed(call) for name, call in calls.items()}
    return calls | {name: replay for name, replay in replays.items() if replay is not None}


def measure(case: Case, target: Target, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    on_gpu, precision = target.is_gpu, torch.get_float32_matmul_precision()
    halves = case.args[0].dtype in (torch.bfloat16, torch.float16)
    tolerance = HALF_TOLERANCE if halves else TOLERANCE[precision]
    start = time.perf_counter()
    compiled = deplo.compile(case.program, case.args, case.kwargs, target=target.name)
    compiled(*case.args, **case.kwargs)
    compile_seconds = time.perf_counter() - start
    contenders: dict[str, Call] = {"eager": case.run}
    theirs = inductor(case)
    if not isinstance(theirs, str):
        contenders["torch.compile"] = theirs
    contenders["deplo"] = lambda: compiled(*case.args, **case.kwargs)
    row = compare(
        case,
        contenders,
        rounds,
        tolerance,
        clock=GpuClock() if on_gpu else CpuClock(),
        timed=with_graphs if on_gpu else lambda calls: calls,
    )
    if "deplo" in row["wrong"]:
        return {"wrong": True, "error": row["error"]}
    moved, flops = work_of(case)
    floor = 0.0
    if on_gpu:
        short = "bf16" if halves else "tf32" if precision == "high" else None
        fastest = peak(target, first_row(short) if short else None)
        floor = max(moved / target.dram_bytes_per_second, flops / fastest)
    return {
        **row,
        "compile_seconds": compile_seconds,
        "kernels": len(compiled.plan.launches),
        "bytes": moved,
        "flops": flops,
        "floor_us": floor * 1e6,
        "impossible": [n for n, value in row["median_us"].items() if value < floor * 1e6],
        "registers": {k["name"]: k.get("registers") for k in compiled.report()["kernels"]},
    }


def gpu_machine() -> dict[str, Any]:
    """What the numbers hold for."""
    told = {key: value for key, value in machine().items() if key in ("python", "torch", "commit")}
    if torch.cuda.is_available():
        told |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return told


def table(result: dict[str, Any]) -> str:
    """The result as text: microseconds, and how deplo stands against the best of the others."""
    names = (
        "eager",
        "torch.compile",
        "deplo",
        "eager, graph",
        "torch.compile, graph",
        "deplo, graph",
    )
    head = f"{'case':32}" + "".join(f"{name:>22}" for name in names) + f"{'floor':>10}{'ratio':>8}"
    lines = [json.dumps(result["machine"]), head]
    for name, row in result["cases"].items():
        if "median_us" not in row:
            lines.append(f"{name:32} {row.get('failed') or f'wrong: {row}'}")
            continue
        times = row["median_us"]
        cells = "".join(f"{times[n]:22.1f}" if n in times else f"{'-':>22}" for n in names)
        ours = min(v for n, v in times.items() if n.startswith("deplo"))
        others = min(v for n, v in times.items() if not n.startswith("deplo"))
        mark = " impossible: " + ", ".join(row["impossible"]) if row["impossible"] else ""
        lines.append(f"{name:32}{cells}{row['floor_us']:10.1f}{others / ours:8.2f}{mark}")
    return "\n".join(lines)


def main() -> int:
    """Measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument(
        "--dry-run", action="store_true", help="small sizes on the CPU; writes nothing"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of inputs and weights")
    parser.add_argument("--out", type=Path, help="the results file; each dtype has its own")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument(
        "--budget", type=float, default=BUDGET_SECONDS, help="seconds after which no case begins"
    )
    parser.add_argument(
        "--precision",
        choices=TOLERANCE,
        default="highest",
        help="of products of f32: 'high' lets all contenders multiply tf32; give it an --out of its own",
    )
    options = parser.parse_args()
    suffix = "" if options.dtype == "float32" else f"-{options.dtype}"
    options.out = options.out or RESULTS / f"gpu{suffix}.json"
    started = time.perf_counter()
    if options.show:
        print(table(json.loads(options.out.read_text())))
        return 0
    if not options.dry_run and not torch.cuda.is_available():
        print("error: torch finds no GPU; --dry-run shows that the script runs", file=sys.stderr)
        return 4
    torch.set_float32_matmul_precision(options.precision)
    torch.backends.cudnn.allow_tf32 = options.precision == "high"
    target = find_target("cpu") if options.dry_run else _target()
    result: dict[str, Any] = {"machine": gpu_machine(), "cases": {}}
    if options.out.exists() and not options.fresh and not options.dry_run:
        before = json.loads(options.out.read_text())
        if before["machine"] == result["machine"]:
            result = before
    device = "cpu" if options.dry_run else "cuda"
    for make in Cases(device, DTYPES[options.dtype], options.dry_run):
        if time.perf_counter() - started > options.budget:
            print("the budget is spent; run again to go on", file=sys.stderr)
            break
        case = make()
        if case.name in result["cases"] or options.only not in case.name:
            continue
        with torch.no_grad():
            try:
                row = measure(case, target, 3 if options.dry_run else ROUNDS)
            except (DeploError, RuntimeError) as error:
                row = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        result["cases"][case.name] = row
        print(case.name, row.get("median_us", row), flush=True)
        if not options.dry_run:
            options.out.write_text(json.dumps(result, indent=1) + "\n")
        torch._dynamo.reset()
    print(table(result))
    bad = [name for name, row in result["cases"].items() if "median_us" not in row]
    return 1 if bad else 0


def _target() -> Target:
    """The target for this GPU."""
    major, minor = torch.cuda.get_device_capability()
    for name in (f"sm_{major}{minor}a", f"sm_{major}{minor}"):
        if name in TARGETS:
            return get_target(name)
    raise SystemExit(f"error: deplo has no schedules for sm_{major}{minor}")


if __name__ == "__main__":
    sys.exit(main())
