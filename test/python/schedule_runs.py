"""Programs under schedules that differ in everything, on the machine that finds races.

    check(loop_module, "copied")     # raises MismatchError, or the machine's own errors

Copies that run while threads compute arrive as late as the waits allow; buffers hold poison before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

from ir_programs import parse
from programs import CORPUS, compiled
from test_matmul_schedules import product
from test_models import CONFIGS
from xdsl.dialects.builtin import ModuleOp

import deplo
from deplo.analysis.verify import verify_module
from deplo.frontend.sources import load_source
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context
from deplo.tools.check_each_pass import PassChecker

SCHEDULES = {
    "model": ("sm_90a", ""),
    "copied": (
        "sm_80",
        "BM=16,BN=16,BK=8,FM=2,FN=2,SK=2,stages=3,transport=cp_async,vector=1,lanes=32,keep=shared",
    ),
    "engine": (
        "sm_120",
        "BM=8,BN=32,BK=16,FM=1,FN=4,SK=1,stages=2,transport=tma,vector=8,lanes=64,keep=nowhere",
    ),
    "threads": (
        "sm_90a",
        "BM=32,BN=8,BK=4,FM=4,FN=1,SK=3,stages=2,transport=sync,vector=4,lanes=8,keep=registers",
    ),
}
"""Name -> the target, and what is asked for."""

SIZES = (1, 7, 31, 64, 100, 129, 257)


def check(module: ModuleOp, schedule: str) -> None:
    """Raise if what a program at the loop level becomes computes something else, or is not executed."""
    target, choices = SCHEDULES[schedule]
    told: list[str] = []
    checker = PassChecker(told.append)
    checker.begin(module)
    passes = make_pipeline("loop-to-cuda", target, choices)
    for each in passes:
        each.apply(make_context(), module)
    verify_module(module)
    checker.after_pass(passes[-1], module)
    assert checker.checked == 1, told


def corpus(name: str) -> Callable[[], ModuleOp]:
    """A program of the corpus."""
    return lambda: compiled(name, "sm_90a").stage("loop")


def layer(architecture: str) -> Callable[[], ModuleOp]:
    """A small layer of a model."""

    def make() -> ModuleOp:
        settings = CONFIGS[architecture]
        source = load_source(f"hf:{architecture}", config=settings, layer=0, seq_len=7)
        program = deplo.compile(source.program, source.args, source.kwargs, target="sm_90a")
        return program.stage("loop")

    return make


def matmul(m: int, n: int, k: int, *, transposed: bool) -> Callable[[], ModuleOp]:
    """A matrix product with a bias and an activation."""
    return lambda: parse(product(m, n, k, transposed=transposed))


@cache
def cases() -> dict[str, Callable[[], ModuleOp]]:
    """Every program by name."""

    def listed() -> Iterator[tuple[str, Callable[[], ModuleOp]]]:
        for name in CORPUS:
            yield name, corpus(name)
        for name in CONFIGS:
            yield f"{name} layer", layer(name)
        for m, n, k in itertools.product(SIZES, repeat=3):
            for transposed in (True, False):
                order = "x @ w.T" if transposed else "x @ w"
                yield f"{order} {m} {n} {k}", matmul(m, n, k, transposed=transposed)

    return dict(listed())
