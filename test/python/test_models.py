"""Layers of Hugging Face models agree with eager, and so does every stage of their compilation."""

import pytest
import torch

pytest.importorskip("transformers")

from stages import assert_stages_agree

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.frontend.sources import load_source
from deplo.machine.targets import get_target
from deplo.program import Program
from deplo.tools.judge import float64_reference, judge

CONFIGS = {
    "llama": "hidden_size=64,intermediate_size=176,num_attention_heads=4,num_key_value_heads=2",
    "qwen2": "hidden_size=48,intermediate_size=96,num_attention_heads=4,num_key_value_heads=2",
    "gpt2": "n_embd=48,n_head=4",
    "bert": "hidden_size=32,num_attention_heads=4,intermediate_size=64",
}


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_layer_agrees_with_eager_at_every_stage(
    architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = load_source(f"hf:{architecture}", config=CONFIGS[architecture], layer=0, seq_len=7)
    ours = deplo.compile(source.program, source.args, source.kwargs, target="cpu")
    with torch.no_grad():
        result = ours(*source.args, **source.kwargs)
        eager = source.program(*source.args, **source.kwargs)
    exact = float64_reference(source.program, source.args, source.kwargs)
    assert exact is not None
    verdict = judge(eager, result, exact, longest_reduction(ours.stage("loop")))
    assert verdict.problem is None
    assert_stages_agree(ours, source, capsys)
    assert_stages_agree(Program(ours.captured, get_target("sm_90a")), source, capsys)


def test_a_layer_is_the_same_at_every_stage_with_its_products_tiled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = load_source("hf:llama", config=CONFIGS["llama"], layer=0, seq_len=7)
    schedule = "BM=8,BN=16,BK=8,FM=1,FN=2,stages=3,lanes=32"
    ours = deplo.compile(
        source.program, source.args, source.kwargs, target="sm_80", schedule=schedule
    )
    assert_stages_agree(ours, source, capsys)
    assert "via cp_async" in ours.ir("tile")
