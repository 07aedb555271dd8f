"""Whole models of transformers on a GPU, compiled both ways, forward and backward, against eager."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

import copy  # noqa: E402
from typing import Any  # noqa: E402

from torch.utils import _pytree as pytree  # noqa: E402
from whole_models import CONFIGS, TEXT, build, tokens  # noqa: E402

import deplo  # noqa: E402
from deplo.analysis.cost import longest_reduction  # noqa: E402
from deplo.tools.judge import float64_reference, judge  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> None:
    torch._dynamo.reset()


def on_gpu(architecture: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A model and the keyword arguments of a call."""
    model = build(architecture)
    return model.module.cuda(), {name: value.cuda() for name, value in model.inputs.items()}


def check(module: torch.nn.Module, inputs: dict[str, Any], ours: Any, length: int) -> None:
    """Compare a result with eager's; `length` is that of the program's longest reduction."""
    with torch.no_grad():
        eager = module(**inputs)
    exact = float64_reference(module, (), inputs)
    assert exact is not None
    assert judge(eager, ours, exact, length).problem is None


def program_of(module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> deplo.Program:
    program = deplo.compile(module, (), inputs, target="auto")
    assert program.target.is_gpu
    return program


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_model_agrees_with_eager(architecture: str) -> None:
    module, inputs = on_gpu(architecture)
    program = program_of(module, inputs)
    check(module, inputs, program(**inputs), longest_reduction(program.stage("loop")))


@pytest.mark.parametrize("architecture", CONFIGS)
def test_torch_compile_agrees_with_eager(architecture: str) -> None:
    module, inputs = on_gpu(architecture)
    length = longest_reduction(program_of(module, inputs).stage("loop"))
    with torch.no_grad():
        ours = torch.compile(module, backend="deplo")(**inputs)
    check(module, inputs, ours, length)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_gradients_agree_with_eager(architecture: str) -> None:
    """One step back from the mean of squares of what the model gives first."""
    module, inputs = on_gpu(architecture)
    theirs = copy.deepcopy(module)
    for program in (torch.compile(module, backend="deplo"), theirs):
        pytree.tree_leaves(program(**inputs))[0].square().mean().backward()
    for (name, mine), other in zip(module.named_parameters(), theirs.parameters(), strict=True):
        assert (mine.grad is None) == (other.grad is None), name
        if mine.grad is not None and other.grad is not None:
            allowed = 1e-4 * float(other.grad.abs().max())
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=allowed + 1e-8)


@pytest.mark.parametrize("architecture", TEXT)
def test_one_graph_serves_all_sizes(architecture: str) -> None:
    module, inputs = on_gpu(architecture)
    length = longest_reduction(program_of(module, inputs).stage("loop"))
    compiled = torch.compile(module, backend="deplo", dynamic=True)
    for shape in ((2, 9), (3, 17), (5, 4)):
        given = {"input_ids": tokens(*shape).cuda()}
        with torch.no_grad():
            ours = compiled(**given)
        check(module, given, ours, length)
