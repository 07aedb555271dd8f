"""Clusters of blocks that share slabs, on a GPU that has them."""

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("the GPU has no wgmma: it is not sm_90a", allow_module_level=True)

import torch.nn.functional as F  # noqa: E402

import deplo  # noqa: E402

SCHEDULES = (
    "mma=2,BM=64,BN=64,SK=1,CM=2",
    "mma=2,BM=128,BN=192,FM=2,FN=48,SK=1,CM=2",
    "mma=2,BM=64,BN=128,SK=2,CN=2",
    "mma=2,BM=256,BN=128,FM=4,FN=32,SK=1,stages=3,CN=2",
)


def matrices(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Small integers, of whose products f32 has all sums."""
    generator = torch.Generator("cuda").manual_seed(0)
    return [
        torch.randint(-1, 2, shape, device="cuda", generator=generator).bfloat16()
        for shape in shapes
    ]


def check(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor], schedule: str) -> None:
    program = deplo.compile(function, inputs, target="auto", schedule=schedule)
    assert any("__cluster_dims__(2" in kernel.source for kernel in program.kernels)
    exact = function(*(each.double() for each in inputs)).bfloat16()
    for _ in range(5):
        assert torch.equal(program(*inputs), exact)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sizes", [(512, 768, 1024), (500, 744, 200), (1024, 1536, 64)])
def test_columns_along_k(sizes: tuple[int, int, int], schedule: str) -> None:
    m, n, k = sizes
    check(F.linear, matrices((m, k), (n, k)), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_columns_innermost(schedule: str) -> None:
    check(torch.matmul, matrices((500, 1000), (1000, 768)), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batches_and_gates(schedule: str) -> None:
    check(lambda a, b: a @ b.mT, matrices((3, 512, 136), (3, 768, 136)), schedule)
    inputs = matrices((512, 200), (768, 200), (768, 200))
    gated = "mma=2,BM=128,BN=64,SK=1,CM=2"
    check(lambda x, g, u: F.linear(x, g).clamp(-1, 1) * F.linear(x, u), inputs, gated)
