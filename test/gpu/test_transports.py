"""Matrix products whose operands are copied by threads, asynchronously, or by the copy engine, on a GPU."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

import deplo  # noqa: E402


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("transport", ["sync", "cp_async", "tma"])
@pytest.mark.parametrize("sizes", [(512, 768, 1024), (129, 100, 68), (64, 31, 77)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_gpu_agrees(
    dtype: torch.dtype, sizes: tuple[int, int, int], transport: str, stages: int
) -> None:
    """Also where slabs are larger than a kernel may declare: 5 buffers of 128 by 128 by 16."""
    m, n, k = sizes
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(m, k, device="cuda", generator=generator).to(dtype)
    layer = torch.nn.Linear(k, n, device="cuda", dtype=dtype)
    schedule = f"transport={transport},stages={stages}"
    program = deplo.compile(layer, (x,), target="auto", schedule=schedule)
    exact = x.double() @ layer.weight.double().T + layer.bias.double()
    for _ in range(3):
        torch.testing.assert_close(program(x).double(), exact, rtol=2e-3, atol=2e-3)
