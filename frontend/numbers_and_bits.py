"""Operators on the bits of integers of which one operand is a number.

    torch.bitwise_left_shift(3, x)

becomes

    aten.bitwise_left_shift(3 as a tensor of the result's dtype, x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _shift(function: Any) -> Callable[..., torch.Tensor]:
    def by_tensor(value: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        return function(value, amount)

    return by_tensor


def _by_number(function: Any) -> Callable[..., torch.Tensor]:
    def by_number(value: torch.Tensor, amount: int) -> torch.Tensor:
        dtype = torch.result_type(value, amount)
        return function(value, aten.scalar_tensor(_wrapped(amount, dtype), dtype=dtype))

    return by_number


def _of_number(function: Any) -> Callable[..., torch.Tensor]:
    def of_number(number: int, value: torch.Tensor) -> torch.Tensor:
        dtype = torch.result_type(number, value)
        return function(torch.full_like(value, _wrapped(number, dtype), dtype=dtype), value)

    return of_number


def _exchanged(function: Any) -> Callable[..., torch.Tensor]:
    def number_first(number: int, value: torch.Tensor) -> torch.Tensor:
        return function(value, number)

    return number_first


def _wrapped(number: int, dtype: torch.dtype) -> int:
    """A number as integers of a dtype hold it, as PyTorch's shifts take theirs."""
    if dtype.is_floating_point or dtype == torch.bool:
        return number
    held = torch.iinfo(dtype)
    return (number - held.min) % (held.max - held.min + 1) + held.min


NUMBERS_AND_BITS: dict[Any, Callable[..., torch.Tensor]] = {
    aten.__lshift__.Scalar: _by_number(aten.bitwise_left_shift.Tensor),
    aten.__lshift__.Tensor: _shift(aten.bitwise_left_shift.Tensor),
    aten.__rshift__.Scalar: _by_number(aten.bitwise_right_shift.Tensor),
    aten.__rshift__.Tensor: _shift(aten.bitwise_right_shift.Tensor),
    aten.bitwise_left_shift.Tensor_Scalar: _by_number(aten.bitwise_left_shift.Tensor),
    aten.bitwise_right_shift.Tensor_Scalar: _by_number(aten.bitwise_right_shift.Tensor),
    aten.bitwise_left_shift.Scalar_Tensor: _of_number(aten.bitwise_left_shift.Tensor),
    aten.bitwise_right_shift.Scalar_Tensor: _of_number(aten.bitwise_right_shift.Tensor),
    aten.bitwise_and.Scalar_Tensor: _exchanged(aten.bitwise_and.Scalar),
    aten.bitwise_or.Scalar_Tensor: _exchanged(aten.bitwise_or.Scalar),
    aten.bitwise_xor.Scalar_Tensor: _exchanged(aten.bitwise_xor.Scalar),
}
"""Operator -> what computes the same in operators of tensors."""
