"""How long a saved program takes from nothing to its first result, in fresh processes.

    python bench/loading.py             # measures, writes bench/results/loading.json
    python bench/loading.py --show      # prints the committed result

Each model is saved as a program file, as a package of AOTInductor, and, where `onnxruntime` and `onnxscript`
are installed, for ONNX Runtime. Processes that load and call it once take turns. Counted is what happens
behind the import of numpy, which all of them need: importing what loads, loading, and the first call. The
median counts; the first run, which fills the system's cache of files, does not. Results are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "loading.json"
RUNS = 5
TOLERANCE = 1e-4
"""Of the largest difference to eager's result, by its largest element."""

PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "MLP 64x256x10": (
        "",
        {
            "code": "nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))(torch.randn(8, 64))"
        },
    ),
    "ResNet-18": (
        "hf:resnet",
        {"config": "layer_type=basic,depths=[2,2,2,2],hidden_sizes=[64,128,256,512]"},
    ),
    "a TinyLlama layer": ("hf:tinyllama-1.1b", {"layer": 0, "seq_len": 128}),
}
"""What is saved: the name of a program on deplo's command line, and its options."""

READ = """
import json, sys, time
import numpy as np
inputs = dict(np.load(sys.argv[2]))
start = time.perf_counter()
"""
WRITE = """
done = time.perf_counter()
np.save(sys.argv[3], np.asarray(result))
print(json.dumps([imported - start, loaded - imported, done - loaded]))
"""
LOADERS = {
    "deplo": """
import deplo.runtime
from deplo.runtime import load
imported = time.perf_counter()
program = load(sys.argv[1])
loaded = time.perf_counter()
result = program(*inputs.values())
""",
    "AOTInductor": """
import torch
imported = time.perf_counter()
program = torch._inductor.aoti_load_package(sys.argv[1])
loaded = time.perf_counter()
with torch.no_grad():
    result = program(*map(torch.from_numpy, inputs.values()))
""",
    "ONNX Runtime": """
import onnxruntime
imported = time.perf_counter()
program = onnxruntime.InferenceSession(sys.argv[1])
loaded = time.perf_counter()
names = [each.name for each in program.get_inputs()]
(result,) = program.run(None, dict(zip(names, inputs.values())))
""",
}
"""What each process runs between reading the inputs and writing the result."""


def saved(program: Any, args: tuple[Any, ...], directory: Path) -> dict[str, Path]:
    """The program as a file for each contender."""
    import torch

    import deplo

    with torch.no_grad():
        deplo.compile(program, args, target="cpu").save(directory / "program.deplo")
        exported = torch.export.export(program, args)
        packed = torch._inductor.aoti_compile_and_package(
            exported, package_path=str(directory / "program.pt2")
        )
        files = {"deplo": directory / "program.deplo", "AOTInductor": Path(packed)}
        if all(map(importlib.util.find_spec, ("onnxruntime", "onnxscript"))):
            files["ONNX Runtime"] = directory / "program.onnx"
            torch.onnx.export(program, args, files["ONNX Runtime"], dynamo=True, verbose=False)
    return files


def as_positional(source: Any) -> tuple[Any, tuple[Any, ...]]:
    """A module that takes the tensors of a program's inputs one by one and gives its first result."""
    import torch
    from torch.utils import _pytree as pytree

    flat, spec = pytree.tree_flatten((source.args, source.kwargs))
    places = [i for i, each in enumerate(flat) if torch.is_tensor(each)]

    class Positional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.whole = source.program

        def forward(self, *tensors: Any) -> Any:
            values = list(flat)
            for place, tensor in zip(places, tensors, strict=True):
                values[place] = tensor
            args, kwargs = pytree.tree_unflatten(values, spec)
            return pytree.tree_leaves(self.whole(*args, **kwargs))[0]

    return Positional().eval(), tuple(flat[i] for i in places)


def measure(name: str) -> dict[str, Any]:
    """Seconds to import, to load and to call, for each contender, and the bytes of its file."""
    import numpy as np
    import torch

    from deplo.frontend.sources import load_source

    source, options = PROGRAMS[name]
    module, inputs = as_positional(load_source(source or None, **options))
    with torch.no_grad():
        expected = module(*inputs).numpy()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        np.savez(directory / "x.npz", **{f"x{i}": each.numpy() for i, each in enumerate(inputs)})
        files = saved(module, inputs, directory)
        runs: dict[str, list[list[float]]] = {each: [] for each in files}
        for _ in range(RUNS + 1):
            for contender, file in files.items():
                runs[contender].append(timed(contender, file, directory))
                given = np.load(directory / "y.npy")
                error = float(np.abs(given - expected).max() / np.abs(expected).max())
                if not error < TOLERANCE:
                    sys.exit(f"{name}: {contender} differs by {error:.2g}")
        sizes = {each: sum(f.stat().st_size for f in _parts(file)) for each, file in files.items()}
    return {
        contender: {
            "seconds": statistics.median(map(sum, each[1:])),
            "steps": [statistics.median(step) for step in zip(*each[1:], strict=True)],
            "bytes": sizes[contender],
        }
        for contender, each in runs.items()
    }


def _parts(file: Path) -> list[Path]:
    """A file, and beside it what ONNX keeps outside."""
    return [each for each in (file, file.with_name(f"{file.name}.data")) if each.exists()]


def timed(contender: str, file: Path, directory: Path) -> list[float]:
    """The seconds that a fresh process tells."""
    code = READ + LOADERS[contender] + WRITE
    command = [sys.executable, "-c", code, file, directory / "x.npz", directory / "y.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, Any]:
    """What the numbers hold for."""
    from deplo.tools import measuring

    found = measuring.machine()
    if importlib.util.find_spec("onnxruntime"):
        found["onnxruntime"] = importlib.import_module("onnxruntime").__version__
    return found


def table(result: dict[str, Any]) -> str:
    """The recorded result as text."""
    lines = [f"{'':20}{'':14}{'first result':>13} {'import':>9} {'load':>9} {'call':>9} {'file':>10}"]
    for name, by in result["programs"].items():
        for contender, each in by.items():
            columns = [f"{1e3 * seconds:6.0f} ms" for seconds in (each["seconds"], *each["steps"])]
            size = f"{each['bytes'] / 1e6:7.1f} MB"
            lines.append(f"{name:20}{contender:14}{columns[0]:>13} {' '.join(columns[1:])} {size}")
            name = ""
    where = result["machine"]
    more = f", ONNX Runtime {where['onnxruntime']}" if "onnxruntime" in where else ""
    lines.append(
        f"behind the import of numpy, medians of {result['runs']} processes, {where['cores']} cores of "
        f"{where['cpu']}, torch {where['torch']}{more}, {where['commit']}"
    )
    return "\n".join(lines)


def main() -> None:
    """Measure or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print the results file")
    options = parser.parse_args()
    if not options.show:
        result = {"runs": RUNS, "machine": machine(), "programs": {n: measure(n) for n in PROGRAMS}}
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(table(json.loads(RESULT.read_text())))


if __name__ == "__main__":
    main()
