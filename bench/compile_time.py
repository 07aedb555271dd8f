"""How long it takes to compile one layer of a Llama for the CPU, in a fresh process.

    python bench/compile_time.py            # measures, writes bench/results/compile_time.json
    python bench/compile_time.py --show     # prints the committed result

A run starts from nothing: a new process, for `torch.compile` also an empty cache directory. Counted is what
happens between having the model and its first result; importing PyTorch is not. Of several runs, the one
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

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "compile_time.json"
CONFIG = "hidden_size=256,intermediate_size=704,num_attention_heads=8,num_key_value_heads=2"
COMMAND = f"deplo run hf:llama --config {CONFIG} --layer 0 --seq-len 32"


def measure_deplo() -> dict[str, Any]:
    """Seconds of each step of `deplo.compile` and the first call."""
    import torch

    import deplo
    from deplo.frontend.sources import load_source

    source = load_source("hf:llama", config=CONFIG, layer=0, seq_len=32)
    start = time.perf_counter()
    program = deplo.compile(source.program, source.args, source.kwargs, target="cpu")
    with torch.no_grad():
        program(*source.args, **source.kwargs)
    total = time.perf_counter() - start
    steps = program.report()["seconds"]
    named = sum(step["seconds"] for step in steps)
    # torch.export, and the first call: what no step accounts for.
    steps.insert(0, {"step": "capture and first call", "seconds": total - named})
    return {"total_seconds": total, "steps": steps, "kernels": len(program.kernels)}


def measure_inductor() -> dict[str, Any]:
    """Seconds of `torch.compile` and the first call; its compiler is Inductor."""
    import torch

    from deplo.frontend.sources import load_source

    source = load_source("hf:llama", config=CONFIG, layer=0, seq_len=32)
    start = time.perf_counter()
    with torch.no_grad():
        torch.compile(source.program)(*source.args, **source.kwargs)
    return {"total_seconds": time.perf_counter() - start}


def in_fresh_process(what: str) -> dict[str, Any]:
    """Run one of the measurements in a process, and with caches, of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, __file__, "--one", what],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def median_run(what: str, runs: int) -> dict[str, Any]:
    """The run with the median total, and all totals."""
    results = [in_fresh_process(what) for _ in range(runs)]
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
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
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
    result: dict[str, Any] = {"program": COMMAND, "runs": runs, "machine": machine()}
    result["deplo"] = median_run("deplo", runs)
    result["inductor"] = None
    if shutil.which(os.environ.get("CXX", "g++")):
        result["inductor"] = median_run("inductor", runs)
        ours, theirs = (result[name]["total_seconds"] for name in ("deplo", "inductor"))
        result["ratio_to_inductor"] = ours / theirs
    return result


def table(result: dict[str, Any]) -> str:
    """The recorded result as text."""
    made = result["deplo"]
    where = result["machine"]
    lines = [
        f"{made['total_seconds']:7.2f} s  deplo, {made['kernels']} kernels, of which",
        *(
            f"{step['seconds']:7.2f} s    {step['step']}"
            for step in made["steps"]
            if step["seconds"] >= 0.005
        ),
    ]
    if result["inductor"]:
        lines += [
            f"{result['inductor']['total_seconds']:7.2f} s  torch.compile (Inductor)",
            f"{result['ratio_to_inductor']:7.2f}    deplo / torch.compile",
        ]
    lines += [
        f"median of {result['runs']} fresh processes, {where['cores']} cores of {where['cpu']},",
        f"Python {where['python']}, PyTorch {where['torch']}, llvmlite {where['llvmlite']}",
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compile time of a Llama layer.")
    parser.add_argument("--runs", type=int, default=3, help="fresh processes each (3)")
    parser.add_argument("--show", action="store_true", help="print the committed result")
    parser.add_argument("--one", choices=["deplo", "inductor"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = measure_deplo() if options.one == "deplo" else measure_inductor()
        print(json.dumps(found))
        return
    if not options.show:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(measure(options.runs), indent=2) + "\n")
    print(table(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
