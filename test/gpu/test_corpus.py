"""Every program of the corpus on a GPU, against eager PyTorch. Skipped, visibly, where there is none."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

from programs import CORPUS, make  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import deplo  # noqa: E402
from deplo.analysis.roundings import roundings  # noqa: E402
from deplo.tools.judge import float64_reference, judge  # noqa: E402


def on_gpu(value):
    return value.cuda() if torch.is_tensor(value) else value


@pytest.fixture(autouse=True)
def exact_products():
    """f32 is f32: what eager computes is not rounded to tf32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("name", CORPUS)
def test_the_gpu_agrees_with_eager(name: str) -> None:
    program, args = make(name)
    args = pytree.tree_map(on_gpu, args)
    if isinstance(program, torch.nn.Module):
        program = program.cuda()
    compiled = deplo.compile(program, args, target="auto")
    with torch.no_grad():
        eager, ours = program(*args), compiled(*args)
    exact = float64_reference(program, args, {})
    verdict = judge(eager, ours, exact, roundings(compiled.stage("loop")))
    assert verdict.problem is None


def test_a_program_gives_the_same_bits_each_time() -> None:
    program, args = make("mlp")
    program, args = program.cuda(), pytree.tree_map(on_gpu, args)
    compiled = deplo.compile(program, args, target="auto")
    first = compiled(*args)
    for _ in range(20):
        assert torch.equal(compiled(*args), first)


def test_a_program_is_captured_in_a_graph_and_replayed_on_other_numbers() -> None:
    program, args = make("mlp")
    program, args = program.cuda(), pytree.tree_map(on_gpu, args)
    compiled = deplo.compile(program, args, target="auto")
    replay = compiled.graphed(*args)
    for seed in range(3):
        torch.manual_seed(seed)
        other = [torch.randn_like(a) for a in args]
        kept = replay(*other)
        assert torch.equal(kept, compiled(*other))
    # A result is the caller's: the next replay does not change it.
    copy = kept.clone()
    replay(*[torch.randn_like(a) for a in args])
    assert torch.equal(kept, copy)
