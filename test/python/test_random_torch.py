"""Random PyTorch programs agree with eager.

`DEPLO_RANDOM_CASES=2000 pytest test/python/test_random_torch.py` runs more of them (about half an hour).
"""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from random_torch import RandomProgram, programs
from stages import assert_stages_agree

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.frontend.sources import Program as Source
from deplo.machine.targets import get_target
from deplo.program import Program
from deplo.tools.judge import float64_reference, judge

CASES = int(os.environ.get("DEPLO_RANDOM_CASES", "60"))


options = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@settings(options, max_examples=CASES)
@given(programs())
def test_a_random_program_agrees_with_eager(program: RandomProgram) -> None:
    with torch.no_grad():
        eager = program(*program.inputs)
    ours = deplo.compile(program, program.inputs, target="cpu")
    result = ours(*program.inputs)
    exact = float64_reference(program, program.inputs, {})
    verdict = judge(eager, result, exact, longest_reduction(ours.stage("loop")))
    assert verdict.problem is None, program


@settings(options, max_examples=max(CASES // 10, 6))
@given(program=programs())
def test_every_pass_keeps_what_a_random_program_computes(
    program: RandomProgram, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fused and unfused results agree, and so do those of every other pass, for CPU and GPU."""
    source = Source(program, program.inputs, {}, "")
    ours = deplo.compile(program, program.inputs, target="cpu")
    assert_stages_agree(ours, source, capsys)
    assert_stages_agree(Program(ours.captured, get_target("sm_90a")), source, capsys)
