"""Operators on the bits of integers of which one operand is a number."""

import pytest
import torch

import deplo

NAMES = ("bitwise_left_shift", "bitwise_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor")
DTYPES = (torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
@pytest.mark.parametrize("shape", [(5,), ()], ids=["vector", "scalar"])
@pytest.mark.parametrize("number", [3, 200, -1])
def test_a_number_on_either_side(number, shape, dtype):
    """All operators at once, with results of eager's types; numbers wrap as there."""
    value = torch.tensor([0, 1, 2, 5, 7])[: 5 if shape else 1].reshape(shape).to(dtype)

    def program(x):
        sides = ((x, number), (number, x))
        return [getattr(torch, name)(*operands) for name in NAMES for operands in sides]

    got = deplo.compile(program, (value,), target="cpu")(value)
    for mine, eagers in zip(got, program(value), strict=True):
        assert mine.dtype == eagers.dtype
        assert torch.equal(mine, eagers)
