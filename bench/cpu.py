"""deplo on a CPU against eager PyTorch and torch.compile, one case after the other.

    python bench/cpu.py                  # measures all cases in f32, writes bench/results/cpu.json
    python bench/cpu.py --only softmax   # prints the cases whose name holds this, writes nothing
    python bench/cpu.py --show           # prints the results file
    python bench/cpu.py --dtype bfloat16 # products and layers in bf16: bench/results/cpu-bfloat16.json

The contenders take turns and have the same number of threads; the median counts. A result is compared with
float64 first, and one that is wrong has no time. torch.compile takes part where there is a C++ compiler. What
one core can do is measured beside a matrix product on one thread, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import llvmlite  # noqa: E402
import torch  # noqa: E402
from cpu_cases import cases, narrowed  # noqa: E402

import deplo  # noqa: E402
from deplo.errors import DeploError  # noqa: E402
from deplo.tools.machine_rates import peak  # noqa: E402
from deplo.tools.measuring import (  # noqa: E402
    ROOT,
    Call,
    Case,
    compare,
    geometric_mean,
    inductor,
    machine,
    work_of,
)

RESULTS = ROOT / "bench" / "results"
ROUNDS = 15
TOLERANCE = 1e-5
"""Of ||ours - exact|| / ||exact||."""
TOLERANCES = {"float32": TOLERANCE, "bfloat16": 1e-2}
"""The same, by type."""
NARROW_GROUPS = ("contractions", "contractions of models", "blocks")
"""What is measured in bf16."""

CORE_CASE = "matmul 1024x1024x1024"


def measure(
    case: Case, rounds: int, *, with_inductor: bool, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """One row of the table."""
    start = time.perf_counter()
    compiled = deplo.compile(case.program, case.args, case.kwargs, target="cpu")
    compiled(*case.args, **case.kwargs)
    compile_seconds = time.perf_counter() - start
    calls: dict[str, Call] = {"eager": case.run}
    note = None
    if with_inductor:
        theirs = inductor(case)
        if isinstance(theirs, str):
            note = theirs
        else:
            calls["torch.compile"] = theirs
    calls["deplo"] = lambda: compiled(*case.args, **case.kwargs)
    moved, flops = work_of(case)
    return {
        **compare(case, calls, rounds, tolerance),
        "compile_seconds": compile_seconds,
        "kernels": len(compiled.plan.launches),
        "bytes": moved,
        "flops": flops,
        **({"note": note} if note else {}),
    }


def measure_core(rounds: int) -> dict[str, Any]:
    """A matrix product on one thread, in GFLOP/s of each contender, and what the core can do at most."""
    os.environ["DEPLO_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    case = next(make for _, name, make in cases() if name == CORE_CASE)()
    compiled = deplo.compile(case.program, case.args, target="cpu")
    fastest, flops = peak()
    calls = {"eager": case.run, "deplo": lambda: compiled(*case.args)}

    def timed(right: dict[str, Call]) -> dict[str, Call]:
        return {**right, "peak": fastest}

    row = compare(case, calls, rounds, TOLERANCE, timed=timed)
    work = {"peak": flops, "eager": work_of(case)[1], "deplo": work_of(case)[1]}
    rates = {name: work[name] / time / 1e3 for name, time in row["median_us"].items()}
    return {**row, "gflops": rates}


def core_of_own(rounds: int) -> dict[str, Any]:
    """`measure_core` in a process of its own, where all have one thread."""
    command = [sys.executable, __file__, "--core", "--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def core_line(row: dict[str, Any]) -> str:
    """What one thread reaches, as text."""
    rates = row["gflops"]
    shares = [f"{rates['deplo'] / rates[n]:.2f} of {n}" for n in ("peak", "eager") if n in rates]
    said = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    return f"{CORE_CASE}, one thread, GFLOP/s: {said}; deplo is {' and '.join(shares)}"


def ratio(row: dict[str, Any], other: str) -> float | None:
    """How many times as long the other contender takes, if both have a time."""
    times = row.get("median_us", {})
    return times[other] / times["deplo"] if other in times and "deplo" in times else None


def table(result: dict[str, Any]) -> str:
    """The result as text: microseconds, the rate of deplo, ratios, and their means by group."""
    where = result["machine"]
    others = ("eager", "torch.compile")
    lines = [
        f"{'':33}{'eager':>11}{'torch.compile':>15}{'deplo':>11}{'quartiles':>19}"
        f"{'':14}{'of eager':>10}{'of t.compile':>13}"
    ]
    groups: dict[str, dict[str, list[float]]] = {}
    for name, row in result["cases"].items():
        times = row.get("median_us", {})
        if "deplo" not in times:
            lines.append(f"{name:33} {row.get('failed') or 'wrong: ' + json.dumps(row['error'])}")
            continue
        cells = [f"{times[n]:.1f}" if n in times else "-" for n in (*others, "deplo")]
        if row["flops"]:
            rate = f"{row['flops'] / times['deplo'] / 1e3:.0f} GFLOP/s"
        else:
            rate = f"{row['bytes'] / times['deplo'] / 1e3:.1f} GB/s"
        low, high = row["quartiles_us"]["deplo"]
        line = f"{name:33}{cells[0]:>11}{cells[1]:>15}{cells[2]:>11}{f'{low:.1f}-{high:.1f}':>19}"
        line += f"{rate:>14}"
        means = groups.setdefault(row["group"], {other: [] for other in others})
        for other, width in zip(others, (10, 13), strict=True):
            found = ratio(row, other)
            line += f"{'-' if found is None else f'{found:.2f}':>{width}}"
            if found is not None:
                means[other].append(found)
        lines.append(line)
    for group, means in groups.items():
        means = [f"{geometric_mean(means[other]):.2f}" for other in others]
        lines.append(f"{f'{group}: geometric mean':103}{means[0]:>10}{means[1]:>13}")
    if "core" in result:
        lines.append(core_line(result["core"]))
    lines.append(
        f"microseconds, medians of {result['rounds']} rounds, {where['threads']} threads of "
        f"{where['cpu']}, PyTorch {where['torch']}, llvmlite {where['llvmlite']}, {where['commit']}"
    )
    return "\n".join(lines)


def main() -> int:
    """Measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument(
        "--only", metavar="NAME", help="cases whose name or group holds this; no file"
    )
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    parser.add_argument("--dtype", choices=TOLERANCES, default="float32", help="of all cases")
    parser.add_argument("--out", type=Path, help="the results file")
    parser.add_argument("--core", action="store_true", help="one thread and its core only, as data")
    options = parser.parse_args()
    narrow = options.dtype != "float32"
    options.out = options.out or RESULTS / f"cpu{f'-{options.dtype}' if narrow else ''}.json"
    if options.core:
        with torch.no_grad():
            print(json.dumps(measure_core(options.rounds)))
        return 0
    if options.show:
        print(table(json.loads(options.out.read_text())))
        return 0
    torch.set_num_threads(THREADS)
    where = {**machine(), "threads": THREADS, "llvmlite": llvmlite.__version__}
    where["load_before"] = os.getloadavg()[0]
    result: dict[str, Any] = {"rounds": options.rounds, "machine": where, "cases": {}}
    if not narrow and (not options.only or options.only in CORE_CASE):
        # Before torch.compile has started the processes that compile for it.
        result["core"] = core_of_own(options.rounds)
    for group, name, make in cases():
        if options.only and options.only not in name and options.only != group:
            continue
        if narrow and group not in NARROW_GROUPS:
            continue
        case = narrowed(make(), getattr(torch, options.dtype)) if narrow else make()
        with torch.no_grad():
            try:
                row = measure(
                    case,
                    options.rounds,
                    with_inductor=not options.no_inductor,
                    tolerance=TOLERANCES[options.dtype],
                )
            except DeploError as error:
                row = {"failed": str(error).splitlines()[0]}
        result["cases"][name] = {"group": group, **row}
        print(name, row.get("median_us", row), file=sys.stderr, flush=True)
    if not options.only:
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))
    bad = [n for n, row in result["cases"].items() if "deplo" not in row.get("median_us", {})]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
