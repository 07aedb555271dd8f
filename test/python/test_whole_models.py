"""Whole models of transformers, built from configurations, agree with eager; nothing runs in PyTorch."""

import pytest
import torch

pytest.importorskip("transformers")

from whole_models import CONFIGS, build

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.tools.judge import float64_reference, judge


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_whole_model_agrees_with_eager(architecture: str) -> None:
    model = build(architecture)
    ours = deplo.compile(model.module, (), model.inputs, target="cpu", fallback="error")
    with torch.no_grad():
        result = ours(**model.inputs)
        eager = model.module(**model.inputs)
    exact = float64_reference(model.module, (), model.inputs)
    assert exact is not None
    verdict = judge(eager, result, exact, longest_reduction(ours.stage("loop")))
    assert verdict.problem is None
