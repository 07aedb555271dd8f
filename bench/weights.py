"""One row times a matrix of weights larger than the caches, in f32 and in fewer bits, on a CPU.

    python bench/weights.py         # measures, writes bench/results/weights.json
    python bench/weights.py --show  # prints the results file

All are compiled by deplo and take turns; the median counts. `sum` adds up the f32 weights and does nothing
else: what reads them at that speed reads as fast as this machine does. Weights of 8 bits have a scale for
each row, those of 4 bits one for each 64 columns, and two of them share a byte.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from typing import Any

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import deplo  # noqa: E402
from deplo.tools.measuring import ROOT, Call, CpuClock, interleaved, machine  # noqa: E402

RESULT = ROOT / "bench" / "results" / "weights.json"
WIDTH = 8192
GROUP = 64
ROUNDS = 21
TOLERANCE = 1e-5
"""Of ||ours - exact|| / ||exact||."""

Case = tuple[Any, tuple[torch.Tensor, ...]]


def total(weights: torch.Tensor) -> torch.Tensor:
    return weights.sum()


def linear(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return F.linear(x, weights)


def linear8(x: torch.Tensor, weights: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return F.linear(x, weights.to(x.dtype)) * scales


def linear4(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    values = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).to(torch.int8) - 8
    grouped = values.unflatten(-1, (-1, GROUP)).to(x.dtype) * scales[..., None]
    return F.linear(x, grouped.flatten(-2))


def cases() -> dict[str, Case]:
    torch.manual_seed(0)
    x, weights = torch.randn(1, WIDTH), torch.randn(WIDTH, WIDTH)
    eight = torch.randint(-127, 128, (WIDTH, WIDTH), dtype=torch.int8)
    four = torch.randint(0, 256, (WIDTH, WIDTH // 2), dtype=torch.uint8)
    return {
        "sum": (total, (weights,)),
        "f32": (linear, (x, weights)),
        "int8": (linear8, (x, eight, torch.rand(WIDTH))),
        "int4": (linear4, (x, four, torch.rand(WIDTH, WIDTH // GROUP))),
    }


def call(case: Case) -> Call:
    """A compiled case, whose result is right."""
    program, arguments = case
    compiled = deplo.compile(program, arguments, target="cpu")
    exact = program(*(a.double() if a.is_floating_point() else a for a in arguments))
    error = (compiled(*arguments).double() - exact).norm() / exact.norm()
    if not error <= TOLERANCE:
        raise SystemExit(f"{program.__name__} is off by {error:.2g}")
    return lambda: compiled(*arguments)


def measure() -> dict[str, Any]:
    torch.set_num_threads(THREADS)
    calls = {name: call(case) for name, case in cases().items()}
    times = interleaved(calls, CpuClock(), ROUNDS)
    return {
        "machine": machine(),
        "width": WIDTH,
        "rounds": ROUNDS,
        "seconds": {name: statistics.median(each) for name, each in times.items()},
    }


def show(result: dict[str, Any]) -> None:
    seconds = result["seconds"]
    moved = 4 * result["width"] ** 2
    print(f"a row times weights of {result['width']} by {result['width']}")
    for name, each in seconds.items():
        ratio = f"{seconds['f32'] / each:6.2f} times as fast as f32"
        print(f"{name:5} {1e3 * each:8.2f} ms {ratio}")
    print(f"sum reads {moved / seconds['sum'] / 1e9:.1f} GB/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", action="store_true", help="print the results file")
    if parser.parse_args().show:
        show(json.loads(RESULT.read_text()))
        return
    result = measure()
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    show(result)


if __name__ == "__main__":
    main()
