"""How long it takes to compile some models for the CPU, in fresh processes.

    python bench/compile_time.py            # measures, writes bench/results/compile_time.json
    python bench/compile_time.py --show     # prints the committed result

A run starts from nothing: a new process, for `torch.compile` also an empty cache directory; the two take
turns. Counted is what happens between having the model and its first result; beside it stands the time with
imports and the making of the model, as someone waits for it who types a command. Of several runs, the one
with the median total is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()
ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "compile_time.json"

LAYER = "hidden_size=256,intermediate_size=704,num_attention_heads=8,num_key_value_heads=2"
TINY = (
    "vocab_size=99,hidden_size=64,intermediate_size=176,num_attention_heads=4,num_key_value_heads=2"
)
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a Llama layer": ("hf:llama", {"config": LAYER, "layer": 0, "seq_len": 32}),
    "a tiny Llama of 2 layers": (
        "hf:llama",
        {"config": f"{TINY},num_hidden_layers=2", "seq_len": 32},
    ),
    "a tiny Llama of 24 layers": (
        "hf:llama",
        {"config": f"{TINY},num_hidden_layers=24", "seq_len": 32},
    ),
    "ResNet-18": (
        "hf:resnet",
        {"config": "layer_type=basic,depths=[2,2,2,2],hidden_sizes=[64,128,256,512]"},
    ),
}
"""What is compiled: the name of a program on deplo's command line, and its options."""


def measure_deplo(program: str) -> dict[str, Any]:
    """Seconds of each step of `deplo.compile` and the first call."""
    import torch

    import deplo
    from deplo.frontend.sources import load_source

    name, options = PROGRAMS[program]
    source = load_source(name, **options)
    start = time.perf_counter()
    compiled = deplo.compile(source.program, source.args, source.kwargs, target="cpu")
    with torch.no_grad():
        compiled(*source.args, **source.kwargs)
    end = time.perf_counter()
    steps = compiled.report()["seconds"]
    named = sum(step["seconds"] for step in steps)
    # torch.export, and the first call: what no step accounts for.
    steps.insert(0, {"step": "capture and first call", "seconds": end - start - named})
    return {
        "total_seconds": end - start,
        "process_seconds": end - STARTED,
        "steps": steps,
        "kernels": len(compiled.kernels),
    }


def measure_inductor(program: str) -> dict[str, Any]:
    """Seconds of `torch.compile` and the first call; its compiler is Inductor."""
    import torch

    from deplo.frontend.sources import load_source

    name, options = PROGRAMS[program]
    source = load_source(name, **options)
    start = time.perf_counter()
    with torch.no_grad():
        torch.compile(source.program)(*source.args, **source.kwargs)
    end = time.perf_counter()
    return {"total_seconds": end - start, "process_seconds": end - STARTED}


def in_fresh_process(what: str, program: str) -> dict[str, Any]:
    """Run one of the measurements in a process, and with caches, of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "HF_HUB_OFFLINE": "1"}
        environment["DEPLO_CACHE"] = "0"
        done = subprocess.run(
            [sys.executable, __file__, "--one", what, "--program", program],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def median_run(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median total, and all totals."""
    totals = [result["total_seconds"] for result in results]
    middle = statistics.median_low(totals)
    return {**results[totals.index(middle)], "all_totals": totals}


def machine() -> dict[str, Any]:
    """What the numbers hold for."""
    import llvmlite
    import torch
    import transformers

    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "llvmlite": llvmlite.__version__,
        "commit": commit.stdout.strip() or "unknown",
    }


def measure(runs: int) -> dict[str, Any]:
    """Everything that is recorded."""
    result: dict[str, Any] = {"runs": runs, "machine": machine(), "programs": {}}
    compilers = ["deplo"]
    if shutil.which(os.environ.get("CXX", "g++")):
        compilers.append("inductor")
    for program in PROGRAMS:
        rounds = [{c: in_fresh_process(c, program) for c in compilers} for _ in range(runs)]
        result["programs"][program] = {c: median_run([r[c] for r in rounds]) for c in compilers}
        print(
            program,
            *(f"{c}: {m['total_seconds']:.2f} s" for c, m in result["programs"][program].items()),
        )
    return result


def table(result: dict[str, Any]) -> str:
    """The recorded result as text."""
    where = result["machine"]
    made = result["programs"]["a Llama layer"]["deplo"]
    lines = [
        f"{made['total_seconds']:7.2f} s  a Llama layer, {made['kernels']} kernels, of which",
        *(
            f"{step['seconds']:7.2f} s    {step['step']}"
            for step in made["steps"]
            if step["seconds"] >= 0.005
        ),
        "",
        f"{'':28}{'deplo':>9} {'(process)':>9} {'Inductor':>9} {'(process)':>9} {'ratio':>6}",
    ]
    for program, by in result["programs"].items():
        columns = [by["deplo"]["total_seconds"], by["deplo"]["process_seconds"]]
        line = f"{program:28}" + " ".join(f"{column:7.2f} s" for column in columns)
        if "inductor" in by:
            theirs = by["inductor"]
            line += f" {theirs['total_seconds']:7.2f} s {theirs['process_seconds']:7.2f} s"
            line += f" {columns[0] / theirs['total_seconds']:6.2f}"
        lines.append(line)
    lines += [
        f"median of {result['runs']} fresh processes, {where['cores']} cores of {where['cpu']},",
        f"Python {where['python']}, PyTorch {where['torch']}, llvmlite {where['llvmlite']}",
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compile time of some models.")
    parser.add_argument("--runs", type=int, default=3, help="fresh processes each (3)")
    parser.add_argument("--show", action="store_true", help="print the committed result")
    parser.add_argument("--one", choices=["deplo", "inductor"], help=argparse.SUPPRESS)
    parser.add_argument("--program", choices=list(PROGRAMS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = (measure_deplo if options.one == "deplo" else measure_inductor)(options.program)
        print(json.dumps(found))
        return
    if not options.show:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(measure(options.runs), indent=2) + "\n")
    print(table(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
