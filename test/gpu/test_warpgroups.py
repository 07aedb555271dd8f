"""Products of slabs by warpgroups on a GPU that has them, whichever axis is innermost in what they read."""

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("the GPU has no wgmma: it is not sm_90a", allow_module_level=True)

import deplo  # noqa: E402

SCHEDULES = (
    "mma=2,BM=64,BN=64",
    "mma=2,BM=64,BN=128,SK=2",
    "mma=2,BM=128,BN=192,FM=4,FN=48",
    "mma=2,BM=128,BN=256,FM=2,FN=64",
)


def matrices(*shapes: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    """Small integers, of whose products f32 has all sums."""
    generator = torch.Generator("cuda").manual_seed(0)
    return [
        torch.randint(-1, 2, shape, device="cuda", generator=generator).to(dtype)
        for shape in shapes
    ]


def check(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor], schedule: str) -> None:
    program = deplo.compile(function, inputs, target="auto", schedule=schedule)
    assert any("wgmma.mma_async" in kernel.source for kernel in program.kernels)
    exact = function(*(each.double() for each in inputs)).to(inputs[0].dtype)
    for _ in range(3):
        assert torch.equal(program(*inputs), exact)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sizes", [(512, 768, 1024), (130, 200, 136), (2, 8, 4096)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_columns_innermost(dtype: torch.dtype, sizes: tuple[int, int, int], schedule: str) -> None:
    m, n, k = sizes
    check(torch.matmul, matrices((m, k), (k, n), dtype=dtype), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batches_of_columns(schedule: str) -> None:
    inputs = matrices((5, 130, 136), (5, 136, 200), dtype=torch.bfloat16)
    check(torch.matmul, inputs, schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sizes", [(8, 512, 64), (6, 130, 128)])
def test_positions_in_heads(sizes: tuple[int, int, int], schedule: str) -> None:
    h, n, d = sizes
    inputs = matrices((h, n, d), (200, h * d), dtype=torch.bfloat16)
    check(
        lambda x, w: torch.nn.functional.linear(x.transpose(0, 1).flatten(1), w), inputs, schedule
    )


def test_products_of_shared_rows_by_columns_either_way() -> None:
    inputs = matrices((130, 136), (136, 200), (200, 136), dtype=torch.bfloat16)
    check(
        lambda x, v, w: (x @ v).clamp(-1, 1) * torch.nn.functional.linear(x, w),
        inputs,
        "mma=2,BM=64,BN=64",
    )
