"""Reductions of whole tensors on the CPU, which several blocks share, and of long rows in strips."""

import math

import pytest
import torch

import deplo

torch.manual_seed(0)
LENGTHS = (1 << 17, (1 << 17) - 1, (1 << 18) + 5, 3 << 18)


def factors(x: torch.Tensor) -> torch.Tensor:
    """Ones, with a few twos and halves, so that their products are exact; and what is not finite."""
    return torch.where(x.abs() <= 3, 1.0, torch.where(x.abs() < 9, x.sign().exp2(), x))


WHOLE = {
    "sum": lambda x: x.sum(),
    "mean of squares": lambda x: (x * x).mean(),
    "product": lambda x: factors(x).prod(),
    "largest": lambda x: x.max(),
    "smallest": lambda x: x.min(),
    "sum of two rows": lambda x: x[: len(x) // 2 * 2].view(2, -1).sum(1),
    "product of rows": lambda x: factors(x[: len(x) // 20 * 20].view(20, -1)).prod(1),
    "count": lambda x: (x > 0).sum(),
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("odd", [None, math.nan, math.inf, -math.inf])
def test_as_in_float64(name: str, odd: float | None) -> None:
    for length in LENGTHS:
        x = torch.randn(length)
        if odd is not None:
            x[-length // 3] = odd
        result = deplo.compile(WHOLE[name], (x,), target="cpu")(x)
        expected = WHOLE[name](x.double())
        scale = float(x.nan_to_num(0, 0, 0).abs().sum()) if name.startswith("sum") else 1
        torch.testing.assert_close(
            result.double(), expected.double(), rtol=1e-5, atol=1e-7 * scale, equal_nan=True
        )


def test_every_run_gives_the_same_sum() -> None:
    x = torch.randn(1 << 20)
    program = deplo.compile(lambda x: x.sum(), (x,), target="cpu")
    assert len({float(program(x)) for _ in range(20)}) == 1
