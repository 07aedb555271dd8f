"""Every program of the corpus computes what PyTorch computes, at every stage, each time."""

import pytest
import torch
from programs import CORPUS, compiled, make
from stages import assert_stages_agree
from torch.utils import _pytree as pytree

from deplo.analysis.cost import longest_reduction
from deplo.frontend.sources import Program as Source
from deplo.tools.judge import float64_reference, judge


def bits(result: object) -> list[bytes]:
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return [t.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() for t in tensors]


@pytest.mark.parametrize("name", CORPUS)
def test_the_result_is_eagers_and_the_same_each_time(name: str) -> None:
    program, args = make(name)
    exact = float64_reference(program, args, {})
    ours = compiled(name)
    with torch.no_grad():
        result, eager = ours(*args), program(*args)
        verdict = judge(eager, result, exact, longest_reduction(ours.stage("loop")))
        assert verdict.problem is None
        first = bits(result)
        assert all(bits(ours(*args)) == first for _ in range(3))


@pytest.mark.sample(160)
@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_every_stage_computes_what_the_stage_above_does(
    name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, args = make(name)
    assert_stages_agree(compiled(name, target), Source(program, args), capsys)
