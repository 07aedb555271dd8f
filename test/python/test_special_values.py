"""Functions of special values and of negative numbers: no further from the exact result than eager's."""

import math

import pytest
import torch
import torch.nn.functional as F

import deplo

FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def normal_below(x: torch.Tensor) -> torch.Tensor:
    """The normal distribution in float64, right for negative numbers, too."""
    return torch.special.erfc(-x / math.sqrt(2)) / 2


def tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


CURVES = {
    "gelu": (F.gelu, lambda x: x * normal_below(x)),
    "tanh gelu": (lambda x: F.gelu(x, approximate="tanh"), tanh_gelu),
    "ndtr": (torch.special.ndtr, normal_below),
}


CASES = [(name, dtype) for name in ("gelu", "tanh gelu") for dtype in FLOATS]
"""Of f16 and bf16, `ndtr` is several operators in eager, too, each of which rounds."""


@pytest.mark.parametrize(("name", "dtype"), [*CASES, ("ndtr", torch.float32)])
def test_curves_are_right_where_they_are_nearly_0(name, dtype):
    program, exact = CURVES[name]
    x = torch.linspace(-7, 7, 5001, dtype=torch.float64).to(dtype)
    wanted = exact(x.double())
    found = deplo.compile(program, (x,), target="cpu")(x).double()
    info = torch.finfo(dtype)
    # The argument of erf is rounded, which counts x**2 times.
    allowed = (6 + x.double().square()) * torch.finfo(torch.float32).eps + info.eps
    assert ((found - wanted).abs() <= allowed * wanted.abs() + info.tiny * info.eps).all()


@pytest.mark.parametrize("exponent", [0.5, -0.5, 2, 3, -1, -2, 0, 1, 1.5])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_powers_of_special_values(dtype, exponent):
    info = torch.finfo(dtype)
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, info.max, -info.max, info.tiny]
    x = torch.tensor(values, dtype=torch.float64).to(dtype)
    found, eager = deplo.compile(lambda x: x**exponent, (x,), target="cpu")(x), x**exponent
    torch.testing.assert_close(found, eager, equal_nan=True)
    assert torch.equal(found[:2].signbit(), eager[:2].signbit())
