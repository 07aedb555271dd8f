"""Which architectures of transformers run whole, with how many launches of kernels and calls of PyTorch.

    python test/python/model_table.py                          # prints a line for each architecture
    python test/python/model_table.py --only mamba --only bert
    python test/python/model_table.py --train --write test/python/models.json

A model is built from a tiny configuration with random weights (`tiny_models.py`) and compiled by
`torch.compile(backend="deplo")`, each in a process of its own. It is *whole* if that works with
`fallback="error"`, else *partly*, with what PyTorch runs. Its results are judged against eager's, by the
distance from float64's. With `--train`, losses and parameters after three steps of SGD are compared, too.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from tiny_models import ARCHITECTURES, build, results_of
from whole_models import WholeModel

from deplo import torch_backend
from deplo.errors import FallbackWarning, UnsupportedOpError
from deplo.program import Program
from deplo.tools.judge import float64_reference, judge

REDUCTION = 512
"""Elements of a reduction, at least as many as any of these models has."""

SECONDS = 600
"""A model may take so many."""

STEPS, RATE = 3, 0.05
LOSSES, PARAMETERS = 1e-4, 1e-3
"""How far training may be from eager's: relative to the loss, and to the largest number of a parameter."""


def compiled(module: torch.nn.Module, fallback: str, programs: list[Program]) -> Any:
    """The module under `torch.compile`, whose programs are collected."""

    class Collected(Program):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            programs.append(self)

    torch_backend.Program = Collected
    torch._dynamo.reset()
    return torch.compile(module, backend="deplo", options={"fallback": fallback})


def forward(tiny: WholeModel) -> dict[str, Any]:
    """The row of a model that infers: its status, and what it is made of."""
    row: dict[str, Any] = {"status": "whole"}
    with torch.no_grad():
        eager = results_of(tiny.module(**tiny.inputs))
        programs: list[Program] = []
        try:
            result = compiled(tiny.module, "error", programs)(**tiny.inputs)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            row = {"status": "partly", "why": _first_line(error.inner_exception)}
            programs.clear()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", FallbackWarning)
                result = compiled(tiny.module, "eager", programs)(**tiny.inputs)
            said = [str(w.message) for w in told if issubclass(w.category, FallbackWarning)]
            row["in PyTorch"] = [_first_line(each) for each in said]
    exact = float64_reference(lambda **inputs: results_of(tiny.module(**inputs)), (), tiny.inputs)
    verdict = judge(eager, results_of(result), exact, REDUCTION)
    if verdict.problem is not None:
        row |= {"status": "WRONG", "why": verdict.problem}
    row["graphs"] = len(programs)
    row["launches"] = sum(len(program.plan.launches) for program in programs)
    row["calls"] = sum(len(program.plan.calls) for program in programs)
    return row


def train(tiny: WholeModel) -> str:
    """What becomes of three steps of training: `whole`, `partly`, or why they are not eager's."""
    eager = copy.deepcopy(tiny.module)
    expected = descend(eager, eager, tiny)
    for status, fallback in (("whole", "error"), ("partly", "eager")):
        model = copy.deepcopy(tiny.module)
        try:
            losses = descend(model, compiled(model, fallback, []), tiny)
        except (torch._dynamo.exc.BackendCompilerFailed, UnsupportedOpError):
            continue  # gradients are compiled when they are asked for
        if not torch.allclose(losses, expected, rtol=LOSSES, atol=LOSSES):
            return f"WRONG: losses {losses.tolist()} for {expected.tolist()}"
        for (name, mine), theirs in zip(model.named_parameters(), eager.parameters(), strict=True):
            if float((mine - theirs).abs().max()) > PARAMETERS * max(float(theirs.abs().max()), 1):
                return f"WRONG: parameter {name}"
        return status
    return "refused"


def descend(module: torch.nn.Module, call: Any, tiny: WholeModel) -> torch.Tensor:
    """Train a module by a callable that computes its forward pass; gives the losses."""
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses: list[torch.Tensor] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs = [r for r in results_of(call(**tiny.inputs)) if r.is_floating_point()]
        loss = torch.stack([each.square().mean() for each in outputs if each.requires_grad]).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def _first_line(error: object) -> str:
    text = re.sub(r"\S*site-packages/", "", " ".join(str(error).split()))
    return text[:200]


def row_of(name: str, *, training: bool) -> dict[str, Any]:
    """The row of an architecture, measured in this process."""
    try:
        row = forward(build(name))
        if training:
            row["training"] = train(build(name))
    except Exception as error:
        row = {"status": "CRASH", "why": f"{type(error).__name__}: {_first_line(error)}"}
    return row


def in_process(name: str, *, training: bool) -> dict[str, Any]:
    """The row of an architecture, measured in a process of its own."""
    command = [sys.executable, __file__, "--row", name, *(["--train"] if training else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"status": "CRASH", "why": f"more than {SECONDS} s"}
    if done.returncode:
        return {
            "status": "CRASH",
            "why": done.stderr.strip().splitlines()[-1][:200] if done.stderr else "it died",
        }
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Measure and print; 1 if a model is wrong or crashes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="this architecture")
    parser.add_argument("--train", action="store_true", help="train, too")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the rows into this file")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(row_of(options.row, training=options.train)))
        return 0
    rows: dict[str, Any] = {}
    for name in options.only or ARCHITECTURES:
        rows[name] = in_process(name, training=options.train)
        print(f"{name:20} {json.dumps(rows[name])}", flush=True)
    if options.write:
        kept = json.loads(options.write.read_text()) if options.write.exists() else {}
        options.write.write_text(json.dumps(kept | rows, indent=1, sort_keys=True) + "\n")
    return int(any("WRONG" in str(row) or row["status"] == "CRASH" for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
