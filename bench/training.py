"""Training steps on a CPU: `torch.compile` with deplo as its backend, its own one, and eager PyTorch.

    python bench/training.py             # measures all cases, writes bench/results/training.json
    python bench/training.py --only norm # prints the cases whose name holds this, writes nothing
    python bench/training.py --show      # prints the results file

A step is a forward pass and the gradients of all parameters and of the input. The contenders take turns and
have the same number of threads; the median counts. Gradients are compared with those in float64 first.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
from torch import nn  # noqa: E402

from deplo.tools.measuring import (  # noqa: E402
    ROOT,
    Call,
    CpuClock,
    geometric_mean,
    interleaved,
    machine,
    relative_error,
    summary,
)

RESULT = ROOT / "bench" / "results" / "training.json"
ROUNDS = 15
TOLERANCE = 1e-4
"""Of ||ours - exact|| / ||exact||, of the gradients with the largest error."""
BACKENDS = {"torch.compile": "inductor", "deplo": "deplo"}


class Residual(nn.Module):
    """Two convolutions with norms of groups, as in models of diffusion."""

    def __init__(self, channels: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.GroupNorm(32, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(32, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x with what the layers make of it"""
        return x + self.layers(x)


def encoder(width: int, heads: int) -> nn.Module:
    """A layer of a transformer, norms first."""
    given = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
    return nn.TransformerEncoderLayer(width, heads, 4 * width, **given)


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layer norm, SiLU 2048x1024": (
        lambda: nn.Sequential(nn.LayerNorm(1024), nn.SiLU()),
        (2048, 1024),
    ),
    "RMSNorm 2048x1024": (lambda: nn.RMSNorm(1024), (2048, 1024)),
    "group norm, SiLU 1x320x64x64": (
        lambda: nn.Sequential(nn.GroupNorm(32, 320), nn.SiLU()),
        (1, 320, 64, 64),
    ),
    "batch norm, ReLU 8x64x56x56": (
        lambda: nn.Sequential(nn.BatchNorm2d(64), nn.ReLU()),
        (8, 64, 56, 56),
    ),
    "softmax 2048x1024": (lambda: nn.Softmax(-1), (2048, 1024)),
    "MLP, GELU 256x512x2048": (
        lambda: nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)),
        (256, 512),
    ),
    "gated MLP 256x512x1024": (
        lambda: nn.Sequential(nn.Linear(512, 2048), nn.GLU(), nn.Linear(1024, 512)),
        (256, 512),
    ),
    "residual block 1x128x32x32": (lambda: Residual(128), (1, 128, 32, 32)),
    "transformer layer 2x128x512": (lambda: encoder(512, 8), (2, 128, 512)),
}


def gradients(layer: nn.Module, call: Callable[..., Any], x: torch.Tensor, g: torch.Tensor) -> Any:
    """Those of the input and of the parameters, after a step."""
    x.grad = None
    layer.zero_grad()
    call(x).backward(g)
    return [x.grad, *(parameter.grad for parameter in layer.parameters())]


def measure(name: str, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    make, shape = CASES[name]
    torch.manual_seed(0)
    layer, x = make().train(), torch.randn(shape)
    g = torch.randn_like(layer(x))
    exact = copy.deepcopy(layer).double()
    expected = gradients(exact, exact, x.double().requires_grad_(), g.double())
    calls: dict[str, Call] = {}
    for name, backend in {"eager": None, **BACKENDS}.items():
        torch.compiler.reset()
        own, given = copy.deepcopy(layer), x.clone().requires_grad_()
        run = own if backend is None else torch.compile(own, backend=backend, dynamic=False)
        calls[name] = lambda o=own, r=run, v=given: gradients(o, r, v, g)
        calls[name]()
    errors = {name: relative_error(call(), expected) for name, call in calls.items()}
    wrong = [name for name, error in errors.items() if not error <= TOLERANCE]
    right = {name: call for name, call in calls.items() if name not in wrong}
    return {"error": errors, "wrong": wrong, **summary(interleaved(right, CpuClock(), rounds))}


def table(result: dict[str, Any]) -> str:
    """The result as text."""
    lines = [
        f"{'':31}{'eager':>10}{'torch.compile':>15}{'deplo':>10}{'of eager':>10}{'of t.compile':>14}"
    ]
    rows = result["cases"]
    lines += [row_text(name, row) for name, row in rows.items()]
    right = [row["median_us"] for row in rows.values() if not row["wrong"]]
    means = [
        geometric_mean([times[other] / times["deplo"] for times in right])
        for other in ("eager", "torch.compile")
    ]
    lines.append(f"{'geometric mean':66}{means[0]:10.2f}{means[1]:14.2f}")
    where = result["machine"]
    lines.append(
        f"microseconds of a step, medians of {result['rounds']} rounds, {where['threads']} threads of "
        f"{where['cpu']}, torch {where['torch']}, {where['commit']}"
    )
    return "\n".join(lines)


def row_text(name: str, row: dict[str, Any]) -> str:
    """A case's times and ratios, or its errors if a contender is wrong."""
    if row["wrong"]:
        return f"{name:31} wrong: {json.dumps(row['error'])}"
    eager, inductor, ours = (row["median_us"][c] for c in ("eager", "torch.compile", "deplo"))
    said = f"{name:31}{eager:10.0f}{inductor:15.0f}{ours:10.0f}{eager / ours:10.2f}{inductor / ours:14.2f}"
    return said + (f"   read at {row['read at']:.2f}" if "read at" in row else "")


def main(text: str | None, file: Path, cases: Iterable[str], measured: Callable[..., Any]) -> int:
    """Measure cases or show the results in a file; `measured` makes a row of a case, in so many rounds."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument(
        "--only", metavar="NAME", help="cases whose name holds this; writes nothing"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    options = parser.parse_args()
    if options.show:
        if not file.exists():
            parser.error(f"there is no {file.relative_to(ROOT)} yet; run without --show")
        print(table(json.loads(file.read_text())))
        return 0
    torch.set_num_threads(THREADS)
    result: dict[str, Any] = {
        "rounds": options.rounds,
        "machine": {**machine(), "threads": THREADS},
        "cases": {},
    }
    for name in cases:
        if options.only is None or options.only in name:
            result["cases"][name] = measured(name, options.rounds)
            print(row_text(name, result["cases"][name]), flush=True)
    print(table(result))
    if options.only is None:
        file.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(__doc__, RESULT, CASES, measure))
