"""Whole models of transformers, built from configurations, agree with eager; nothing runs in PyTorch."""

import pytest
import torch

pytest.importorskip("transformers")

from whole_models import CONFIGS, TEXT, build, tokens

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.tools.judge import float64_reference, judge


@pytest.mark.sample(9)
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


@pytest.mark.sample(2)
@pytest.mark.parametrize("architecture", TEXT)
def test_a_text_model_agrees_at_every_size(architecture: str) -> None:
    """Batch and sequence are both dynamic; one compilation serves three pairs of them."""
    model = build(architecture)
    batch, sequence = (torch.export.Dim(name, max=64) for name in ("batch", "sequence"))
    ours = deplo.compile(
        model.module,
        (),
        model.inputs,
        target="cpu",
        dynamic_shapes={"input_ids": {0: batch, 1: sequence}},
    )
    length = longest_reduction(ours.stage("loop"))
    for shape in ((2, 9), (3, 17), (5, 4)):
        inputs = {"input_ids": tokens(*shape)}
        with torch.no_grad():
            result, eager = ours(**inputs), model.module(**inputs)
        exact = float64_reference(model.module, (), inputs)
        assert exact is not None
        verdict = judge(eager, result, exact, length)
        assert verdict.problem is None, shape


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_model_that_is_compiled_with_a_batch_of_one_takes_any_batch(architecture: str) -> None:
    model = build(architecture)
    dims = {"input_ids": {0: torch.export.Dim("batch"), 1: torch.export.Dim("seq", max=64)}}
    ours = deplo.compile(
        model.module, (), {"input_ids": tokens(1, 9)}, target="cpu", dynamic_shapes=dims
    )
    for shape in ((1, 9), (3, 17)):
        inputs = {"input_ids": tokens(*shape)}
        with torch.no_grad():
            result, eager = ours(**inputs), model.module(**inputs)
        torch.testing.assert_close(result["logits"], eager["logits"], rtol=1e-4, atol=1e-5)
