"""Special functions against their values to 40 digits, and where there are none, against eager."""

import math
from collections.abc import Callable

import mpmath
import pytest
import torch

import deplo
from deplo.frontend.special_functions import SPECIAL_FUNCTIONS

aten = torch.ops.aten
mpmath.mp.dps = 40

NEAR_ONE = [1 - 10.0**-k for k in range(1, 8)]
SMALL = [10.0**-k for k in range(1, 36)]
WIDE = [sign * 1.7**k for k in range(-40, 9) for sign in (1, -1)]
POSITIVE = [*SMALL, *NEAR_ONE, *(1.01 + 0.37 * k for k in range(40)), 1e4, 1e30]
NEGATIVE = [-0.3 - 0.71 * k for k in range(30)]

EXACT: dict[torch._ops.OpOverload, tuple[Callable[[mpmath.mpf], mpmath.mpf], list[float]]] = {
    aten.erfc.default: (mpmath.erfc, [x for x in WIDE if x < 9]),
    aten.special_erfcx.default: (
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        [x for x in WIDE if x > -9],
    ),
    aten.erfinv.default: (mpmath.erfinv, [*SMALL, *NEAR_ONE, *(-x for x in NEAR_ONE), 0.49, 0.51]),
    aten.special_ndtri.default: (
        lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1),
        [*SMALL, *NEAR_ONE, 0.49, 0.51, 0.25, 0.75],
    ),
    aten.lgamma.default: (lambda x: mpmath.log(abs(mpmath.gamma(x))), POSITIVE + NEGATIVE),
    aten.digamma.default: (mpmath.digamma, POSITIVE + NEGATIVE),
    aten.i0.default: (lambda x: mpmath.besseli(0, x), [x for x in WIDE if abs(x) < 80]),
    aten.special_i1.default: (lambda x: mpmath.besseli(1, x), [x for x in WIDE if abs(x) < 80]),
    aten.special_i0e.default: (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), WIDE),
    aten.special_i1e.default: (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), WIDE),
}
"""Operator -> its values, and arguments at which they are compared."""

IN_F32 = {aten.erfc.default, aten.erfinv.default, aten.special_ndtri.default}
"""What is computed in f32: to five units in the last place; the others have all their digits."""

NOT_OF_BF16 = {
    aten.special_erfcx.default,
    aten.special_modified_bessel_i0.default,
    aten.special_modified_bessel_i1.default,
    aten.special_ndtri.default,
}
"""Operators that eager has no kernel of for bf16: a compiled program raises its error."""

EDGES = [0.0, -0.0, 1.0, 2.0, -1.0, -2.0, -7.0, 0.5, 1.5, math.inf, -math.inf, math.nan, 1e-45, 3e38]


def relative_errors(result: torch.Tensor, exact: list[mpmath.mpf]) -> list[float]:
    return [float(abs(mpmath.mpf(a) - b) / abs(b)) for a, b in zip(result.tolist(), exact, strict=True)]


@pytest.mark.parametrize("op", EXACT, ids=str)
def test_f32_has_its_digits(op) -> None:
    function, numbers = EXACT[op]
    args = torch.tensor(numbers)
    exact = [function(mpmath.mpf(x)) for x in args.tolist()]
    bound = 5 * 2**-24 if op in IN_F32 else 2**-24 * 1.01
    assert max(relative_errors(SPECIAL_FUNCTIONS[op](args), exact)) < bound


def test_erfcx_of_f64_has_all_its_digits_but_two_bits() -> None:
    function, numbers = EXACT[aten.special_erfcx.default]
    args = torch.tensor(numbers, dtype=torch.float64)
    exact = [function(mpmath.mpf(x)) for x in numbers]
    result = SPECIAL_FUNCTIONS[aten.special_erfcx.default](args)
    assert max(relative_errors(result, exact)) < 2**-50


@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_of_digamma(order) -> None:
    args = torch.tensor([0.01, 0.4, 0.6, 1.0, 7.7, 123.0, -0.3, -1.2, -5.6, -11.1, -65.5])
    exact = [mpmath.polygamma(order, mpmath.mpf(x)) for x in args.tolist()]
    result = SPECIAL_FUNCTIONS[aten.polygamma.default](order, args)
    assert max(relative_errors(result, exact)) < 2**-24 * 1.01


@pytest.mark.parametrize("order", [2, 3, 4])
def test_poles_of_derivatives_of_digamma_are_eagers(order) -> None:
    args = torch.tensor([*EDGES, -1e7, -1e20, 1e20])
    result = SPECIAL_FUNCTIONS[aten.polygamma.default](order, args)
    torch.testing.assert_close(result, torch.polygamma(order, args), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("op", [op for op in SPECIAL_FUNCTIONS if len(op._schema.arguments) == 1], ids=str)
def test_edges_are_eagers(op, dtype) -> None:
    args = torch.tensor(EDGES if dtype.is_floating_point else [0, 1, -1, 7]).to(dtype)
    result = SPECIAL_FUNCTIONS[op](args)
    if dtype == torch.bfloat16 and op in NOT_OF_BF16:
        with pytest.raises(NotImplementedError):
            op(args)
        return
    eager = op(args)
    if result is NotImplemented:
        assert dtype == torch.float64
        return
    assert result.dtype == eager.dtype
    torch.testing.assert_close(result, eager, equal_nan=True)
    assert torch.equal(result.signbit() & (result == 0), eager.signbit() & (eager == 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_hypotenuse_of_edges(dtype) -> None:
    edges = torch.tensor([0.0, -0.0, 3.0, -4.0, 6e4, math.inf, -math.inf, math.nan, 1e-7]).to(dtype)
    left, right = edges[:, None], edges
    eager = torch.hypot(left.double(), right.double()).to(dtype)
    result = SPECIAL_FUNCTIONS[aten.hypot.default](left, right)
    torch.testing.assert_close(result, eager, equal_nan=True)


def some_of_them(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.lgamma(x) - torch.hypot(x, y), torch.digamma(x) + torch.erfc(y)


def test_programs_agree_with_eager() -> None:
    generator = torch.Generator().manual_seed(0)
    args = tuple(torch.rand(7, 5, generator=generator) + 0.2 for _ in range(2))
    compiled = deplo.compile(some_of_them, args, target="cpu")(*args)
    torch.testing.assert_close(compiled, some_of_them(*args))


def test_zeros_of_lgamma_are_exact() -> None:
    assert SPECIAL_FUNCTIONS[aten.lgamma.default](torch.tensor([1.0, 2.0])).tolist() == [0, 0]


def test_gradients_agree_with_eager() -> None:
    args = torch.tensor([0.3, 1.7, 4.0])
    gradients = []
    for run in (torch.lgamma, torch.compile(torch.lgamma, backend="deplo")):
        leaf = args.clone().requires_grad_()
        run(leaf).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)
