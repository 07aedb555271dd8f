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


def on_cpu(value):
    return value.cpu() if torch.is_tensor(value) else value


@pytest.mark.parametrize("name", CORPUS)
def test_the_gpu_agrees_with_eager(name: str) -> None:
    """On the CPU, where eager gives the same each time, such as what is written twice to one place."""
    program, args = make(name)
    with torch.no_grad():
        eager = program(*args)
    exact = float64_reference(program, args, {})
    if isinstance(program, torch.nn.Module):
        program = program.cuda()
    args = pytree.tree_map(on_gpu, args)
    with torch.device("cuda"):  # also what the program makes
        compiled = deplo.compile(program, args, target="auto")
    assert compiled.target.is_gpu or not pytree.tree_leaves(args)
    ours = pytree.tree_map(on_cpu, compiled(*args))
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
