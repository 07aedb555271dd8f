"""The float functions that are easy to get nearly right are exactly right."""

import math

import numpy as np
import pytest
import torch

import deplo

torch.manual_seed(0)
LEFT = torch.cat(
    [
        torch.randn(200) * 100,
        torch.randn(50) * 1e30,
        torch.tensor(
            [4.0, -4.0, 5, -5, 0, -0.0, 1e-40, math.inf, -math.inf, math.nan, 7, -7, 3e38]
        ),
    ]
)
RIGHT = torch.cat(
    [
        torch.randn(250) * 3,
        torch.tensor([2.0, 2, -3, 3, 1, 2, 1e-42, 3, 2, 1, math.inf, -math.inf, 1e-45]),
    ]
)


def test_the_remainder_of_any_two_floats():
    """Bit patterns of all kinds, multiples and what is next to them, halves, and the largest quotients."""
    count = 1 << 16
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, (2, count), dtype=np.uint32).view(np.float32)
    small = random.integers(0, 1 << 24, count, dtype=np.uint32).view(np.float32)
    divisor = random.integers(1, 1 << 10, count).astype(np.float32)
    multiple = random.integers(-(1 << 23), 1 << 23, count).astype(np.float32) * divisor
    large = (np.uint32(0x7F7FFFFF) - random.integers(0, 4, count, dtype=np.uint32)).view(np.float32)
    quarters = divisor * (random.integers(-16, 17, count) / 4).astype(np.float32)
    up, down = (np.nextafter(multiple, np.float32(end)) for end in (math.inf, -math.inf))
    pairs = [bits, (multiple, divisor), (up, divisor), (down, divisor), (quarters, divisor)]
    pairs += [
        (large, small),
        (small, small[::-1]),
        (multiple, np.nextafter(divisor, np.float32(0))),
    ]
    left, right = (np.concatenate(each) for each in zip(*pairs, strict=True))
    with np.errstate(invalid="ignore"):
        expected = np.fmod(left.astype(np.float64), right.astype(np.float64)).astype(np.float32)
    arguments = torch.from_numpy(left), torch.from_numpy(right)
    result = deplo.compile(torch.fmod, arguments, target="cpu")(*arguments).numpy()
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(left))


def floor_divide(left, right):
    return torch.div(left, right, rounding_mode="floor")


EXACT = [
    (function, dtype)
    for function in (torch.fmod, torch.remainder)
    for dtype in (torch.float32, torch.bfloat16, torch.float16)
] + [(floor_divide, torch.float32)]  # eager rounds each step of its half-type quotient


@pytest.mark.parametrize(("function", "dtype"), EXACT)
def test_exactly_as_eager(function, dtype):
    left, right = LEFT.to(dtype), RIGHT.to(dtype)
    result = deplo.compile(function, (left, right), target="cpu")(left, right)
    torch.testing.assert_close(
        result, function(left, right), rtol=0, atol=0, equal_nan=True, check_dtype=True
    )


@pytest.mark.parametrize("function", [torch.fmod, torch.remainder, floor_divide])
def test_float64_is_refused(function):
    with pytest.raises(deplo.UnsupportedOpError, match="remainder of f64"):
        deplo.compile(function, (LEFT.double(), RIGHT.double()), target="cpu")


def test_shifts_beyond_the_width():
    values = torch.tensor([[-9], [5], [-1]])
    amounts = torch.tensor([0, 1, 62, 63, 64, 90, -1])
    for function in (torch.bitwise_left_shift, torch.bitwise_right_shift):
        program = deplo.compile(function, (values, amounts), target="cpu")
        assert torch.equal(program(values, amounts), function(values, amounts))
