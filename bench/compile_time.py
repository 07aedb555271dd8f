"""How long it takes to compile some models for the CPU, and a layer for a GPU, in fresh processes.

    python bench/compile_time.py            # measures, writes bench/results/compile_time.json
    python bench/compile_time.py --gpu      # measures the layer for a GPU only, and keeps the rest
    python bench/compile_time.py --show     # prints the committed result

A run starts from nothing: a new process, for `torch.compile` also an empty cache directory; the two take
turns. Counted is what happens between having the model and its first result; beside it stands the time with
imports and the making of the model, as someone waits for it who types a command; so garbage is collected as
rarely as in deplo's commands until the model is made. Of several runs, the one with the median total is
recorded.

For the GPU, which need not be there, what is counted ends with machine code: from the call of `deplo.compile`
to the cubins of all kernels. `cold` starts from an empty cache. `cached` finds plan and cubins on disk,
in a process that has compiled another program before, so that all modules are imported; `first` is the
same as the first thing that a process compiles, and how much of that its imports take.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
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
    "a TinyLlama layer": ("hf:tinyllama-1.1b", {"layer": 0, "seq_len": 128}),
    "a Llama of 4 layers": ("hf:llama", {"config": f"{LAYER},num_hidden_layers=4", "seq_len": 64}),
    "GPT-2, 2 layers": ("hf:gpt2", {"config": "n_layer=2", "seq_len": 64}),
    "BERT, 2 layers": ("hf:bert", {"config": "num_hidden_layers=2", "seq_len": 64}),
    "ConvNeXt, 4 blocks": ("hf:convnext", {"config": "depths=[1,1,1,1]"}),
    "ViT, 2 layers": ("hf:vit", {"config": "num_hidden_layers=2"}),
    "a tiny Mixtral": (
        "hf:mixtral",
        {"config": f"{TINY},num_hidden_layers=2,num_local_experts=4", "seq_len": 9},
    ),
    "a tiny Mamba": (
        "hf:mamba",
        {"config": "vocab_size=99,hidden_size=32,state_size=4,num_hidden_layers=2", "seq_len": 9},
    ),
}
"""What is compiled: the name of a program on deplo's command line, and its options."""

AGAIN = ("a TinyLlama layer", "a Llama of 4 layers")
"""What is also compiled in a process that has compiled another program, and found in deplo's cache."""


GPU_PROGRAM = "a layer of TinyLlama-1.1B"
GPU_TARGET = "sm_90a"
TINYLLAMA = (
    "hidden_size=2048,intermediate_size=5632,num_attention_heads=32,num_key_value_heads=4,"
    "max_position_embeddings=2048,rms_norm_eps=1e-5"
)


def measure_gpu(what: str) -> dict[str, Any]:
    """Seconds until a layer's cubins are there; for `cached`, another program is compiled first."""
    import torch
    from torch import nn

    import deplo
    from deplo.frontend.sources import load_source

    source = load_source("hf:llama", config=TINYLLAMA, layer=0, seq_len=32)
    if what == "cached":
        assert deplo.compile(nn.RMSNorm(64), (torch.randn(4, 64),), target=GPU_TARGET).executable
    gc.freeze()  # what was imported before is not to be looked through while the clock runs
    imports = ImportClock()
    start = time.perf_counter()
    compiled = deplo.compile(source.program, source.args, source.kwargs, target=GPU_TARGET)
    kernels = len(compiled.executable.usage)
    total = time.perf_counter() - start
    found = any(name == "cache" for name, _ in compiled.compilation.seconds)
    if found != (what != "cold"):
        sys.exit(f"the layer was {'' if found else 'not '}in the cache")
    nvrtc = sum(seconds for name, seconds in compiled.compilation.seconds if name == "nvrtc")
    seconds = {"total_seconds": total, "import_seconds": imports.seconds, "nvrtc_seconds": nvrtc}
    return {**seconds, "kernels": kernels}


class ImportClock:
    """How long modules take that are imported from now on; those that they import count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._load: Any = vars(importlib._bootstrap)["_find_and_load"]
        vars(importlib._bootstrap)["_find_and_load"] = self._timed

    def _timed(self, *args: Any) -> Any:
        start = time.perf_counter()
        self._depth += 1
        try:
            return self._load(*args)
        finally:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - start


def gpu_runs(runs: int) -> dict[str, Any]:
    """The layer for a GPU: cold, then twice from what that left on disk."""
    results: dict[str, list[dict[str, Any]]] = {"cold": [], "first": [], "cached": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            for what, listed in results.items():
                listed.append(in_fresh_process(what, GPU_PROGRAM, cache))
    found = {what: median_run(listed) for what, listed in results.items()}
    print(GPU_PROGRAM, *(f"{what}: {r['total_seconds']:.2f} s" for what, r in found.items()))
    return {"target": GPU_TARGET, "runs": runs, "machine": machine(), **found}


def measure_deplo(program: str, *, warm: bool = False) -> dict[str, Any]:
    """Seconds of each step of `deplo.compile` and the first call; `warm`, another program came before."""
    import deplo

    source, torch = made(program)
    if warm:
        module, inputs = other_program()
        with torch.no_grad():
            deplo.compile(module, inputs, target="cpu")(*inputs)
    gc.freeze()
    imports = ImportClock()
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
        "import_seconds": imports.seconds,
        "process_seconds": end - STARTED,
        "steps": steps,
        "kernels": len(compiled.kernels),
    }


def made(program: str) -> tuple[Any, Any]:
    """A program, and PyTorch."""
    from deplo.garbage import fewer_collections

    with fewer_collections():
        import torch

        from deplo.frontend.sources import load_source

        name, options = PROGRAMS[program]
        return load_source(name, **options), torch


def other_program() -> tuple[Any, tuple[Any, ...]]:
    """A program that has little in common with the others."""
    import torch
    from torch import nn

    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Softmax(-1)), (torch.randn(8, 24),)


def measure_inductor(program: str, *, warm: bool = False) -> dict[str, Any]:
    """Seconds of `torch.compile` and the first call; its compiler is Inductor."""
    source, torch = made(program)
    if warm:
        module, inputs = other_program()
        with torch.no_grad():
            torch.compile(module)(*inputs)
    gc.freeze()
    start = time.perf_counter()
    with torch.no_grad():
        torch.compile(source.program)(*source.args, **source.kwargs)
    end = time.perf_counter()
    return {"total_seconds": end - start, "process_seconds": end - STARTED}


def in_fresh_process(what: str, program: str, kept: str | None = None) -> dict[str, Any]:
    """Run one of the measurements in a process of its own, with deplo's cache in `kept` or without."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "HF_HUB_OFFLINE": "1"}
        environment |= {"DEPLO_CACHE": "0"} if kept is None else {"DEPLO_CACHE_DIR": kept}
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
    import transformers

    from deplo.tools import measuring

    return {
        **measuring.machine(),
        "load_before": os.getloadavg()[0],
        "transformers": transformers.__version__,
        "llvmlite": llvmlite.__version__,
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
    result["again"] = {program: again(program, compilers, runs) for program in AGAIN}
    return result


def again(program: str, compilers: list[str], runs: int) -> dict[str, Any]:
    """A program in processes that have compiled another one, and from deplo's cache on disk.

    From the cache also as the first that a process compiles.
    """
    warm = [{c: in_fresh_process(f"warm {c}", program) for c in compilers} for _ in range(runs)]
    found = {c: median_run([each[c] for each in warm]) for c in compilers}
    with tempfile.TemporaryDirectory() as cache:
        in_fresh_process("deplo", program, cache)
        for name, what in {"cached": "warm deplo", "first": "deplo"}.items():
            kept = [in_fresh_process(what, program, cache) for _ in range(runs)]
            found[name] = median_run(kept)
    print(program, *(f"warm {c}: {m['total_seconds']:.2f} s" for c, m in found.items()))
    return found


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
    if "again" in result:
        heading = "in a process that has compiled"
        lines += ["", f"{heading:30}{'deplo':>9} {'Inductor':>11} {'ratio':>9}"]
    for program, by in result.get("again", {}).items():
        line = f"{program:28}{by['deplo']['total_seconds']:9.2f} s"
        if "inductor" in by:
            theirs = by["inductor"]["total_seconds"]
            line += f" {theirs:9.2f} s {by['deplo']['total_seconds'] / theirs:9.2f}"
        lines.append(f"{line}, from the cache {by['cached']['total_seconds']:.2f} s")
        if (first := by.get("first")) is not None:
            lines.append(
                f"{first['total_seconds']:37.2f} s    from the cache, the first that a process "
                f"compiles, of which imports {first['import_seconds']:.2f} s"
            )
    gpu = result["gpu"]
    cold, first, cached = (gpu[what] for what in ("cold", "first", "cached"))
    lines += [
        "",
        f"{cold['total_seconds']:7.2f} s  {GPU_PROGRAM} for {gpu['target']}, {cold['kernels']} kernels, "
        f"of which nvrtc {cold['nvrtc_seconds']:.2f} s",
        f"{cached['total_seconds']:7.2f} s    from the cache on disk",
        f"{first['total_seconds']:7.2f} s    from the cache, the first that a process compiles, "
        f"of which imports {first['import_seconds']:.2f} s",
        "",
    ]
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
    parser.add_argument("--gpu", action="store_true", help="measure the layer for a GPU only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--program", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measures = {"deplo": measure_deplo, "inductor": measure_inductor}
        first, _, compiler = options.one.rpartition(" ")
        if compiler in measures:
            found = measures[compiler](options.program, warm=first == "warm")
        else:
            found = measure_gpu(options.one)
        print(json.dumps(found))
        return
    if not options.show:
        RESULT.parent.mkdir(exist_ok=True)
        result = json.loads(RESULT.read_text()) if options.gpu else measure(options.runs)
        result["gpu"] = gpu_runs(options.runs)
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(table(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
