"""PyTorch's type promotion: the element type in which operands of several types meet.

Tensors with axes decide before 0-d tensors, and those before Python numbers; the later only count if
they are of a higher category (bool < integer < float). So `f16[4] + 2.5` is f16 and `i64[4] + 2.5` f32.
https://pytorch.org/docs/stable/tensor_attributes.html#torch.dtype
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i1, i16, i64
from xdsl.ir import Attribute, SSAValue

from .scalars import is_bool, is_float, storage_bytes
from .sizes import ExtentAttr
from .syntax import tensor_type


def category(element: Attribute) -> int:
    """0 for bool, 1 for integers, 2 for floats."""
    return 2 if is_float(element) else 0 if is_bool(element) else 1


def promote(left: Attribute, right: Attribute) -> Attribute:
    """The element type of an operation on two tensors of equal standing."""
    if left == right:
        return left
    if category(left) != category(right):
        return left if category(left) > category(right) else right
    if storage_bytes(left) == storage_bytes(right):
        return (
            f32 if is_float(left) else i16
        )  # f16 and bf16 have no common half, i8 and ui8 no byte
    return left if storage_bytes(left) > storage_bytes(right) else right


def number_element(number: IntegerAttr | FloatAttr | ExtentAttr) -> Attribute:
    """The element type of a Python number."""
    if isinstance(number, FloatAttr):
        return f32
    return i1 if isinstance(number, IntegerAttr) and number.type == IntegerType(1) else i64


def common_element(
    arguments: Sequence[SSAValue | IntegerAttr | FloatAttr | ExtentAttr],
) -> Attribute:
    """The element type in which `arguments`, tensors or numbers, are brought together."""
    groups: list[list[Attribute]] = [[], [], []]
    for argument in arguments:
        if isinstance(argument, SSAValue):
            type = tensor_type(argument)
            groups[0 if type.get_num_dims() else 1].append(type.element_type)
        else:
            groups[2].append(number_element(argument))
    result: Attribute | None = None
    for group in groups:
        if not group:
            continue
        lower = reduce(promote, group)
        if result is None or category(lower) > category(result):
            result = lower
    assert result is not None
    return result
