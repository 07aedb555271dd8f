"""Check that every stage of a compiled program computes what the stage above it does."""

import pytest

from deplo.frontend.sources import Program as Source
from deplo.program import Program
from deplo.program_stages import passes_to
from deplo.tools.run_command import check_each_pass

INSIDE_NATIVE = (
    "lower-tile-to-scf",
    "inline-calls",
    "group-launches",
    "assign-arena",
    "clip-loops",
    "interchange-columns",
    "relax-maxima",
    "keep-in-output",
    "cut-loops",
    "split-at-sizes",
    "narrow-searches",
    "invert-divisors",
    "prefetch-sweeps",
    "tile-windows",
    "unroll-windows",
    "unswitch-loops",
    "split-at-sizes",
    "hide-strides",
    "widen-integers",
    "jam-rows",
    "mask-tails",
    "block-sums",
    "small-angles",
    "mark-independent",
    "expand-math",
    "loops-to-branches",
)
"""Passes whose results no interpreter knows; the native code after them is run instead."""


def assert_stages_agree(
    program: Program, source: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    """Raises MismatchError if a pass changes what the program computes; nothing may be passed over."""
    gpu = program.target.is_gpu
    segments = passes_to("cuda" if gpu else "llvm", program.target)
    passes = [each.name for _, group in segments for each in group]
    passed_over = () if gpu else INSIDE_NATIVE
    capsys.readouterr()
    assert check_each_pass(program, source).checked == len(passes) - len(passed_over)
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[2].rstrip(":") for line in told] == list(passed_over)
