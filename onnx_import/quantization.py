"""Integers that stand for floats: x is (q - zero point) * scale."""

from __future__ import annotations

import numpy as np

from ..dialects.sizes import Extent
from ..lazy.dtypes import DType, float32, int8, int16, int32, uint8
from ..lazy.expression import Node
from .building import (
    add,
    axis_of,
    cast,
    div,
    expand,
    mul,
    narrow,
    op,
    reshape,
    scalar,
    static_extent,
    sub,
    unary,
)
from .dtypes import dtype_of
from .linear import columns, less_zero
from .rules import Call, Refused, rule
from .windows import convolution_integer

QUANTIZED = (int8, uint8, int16)


def _placed(call: Call, x: Node, parameter: Node) -> Node:
    """A scale or zero point so that it broadcasts: one, one for each place of an axis, or for each block."""
    if call.version >= 13:
        call.whatever("axis", "block_size")
    if parameter.shape in ((), (1,)):
        return reshape(parameter, ())
    if call.version < 13:
        raise Refused(f"a scale of shape {list(parameter.shape)}")
    axis = axis_of(call.integer("axis"), len(x.shape))
    block = call.integer("block_size", 0)
    shape: list[Extent] = list(parameter.shape)
    if not block:
        if len(shape) != 1:
            raise Refused(f"a scale of shape {shape}")
        return reshape(parameter, [shape[0] if i == axis else 1 for i in range(len(x.shape))])
    blocks, extent = static_extent(parameter, axis), static_extent(x, axis)
    if len(shape) != len(x.shape) or block < 0 or -(-extent // block) != blocks:
        raise Refused(f"{blocks} scales of blocks of {block} of {extent} elements")
    before, after = shape[: axis + 1], shape[axis + 1 :]
    wide = expand(reshape(parameter, [*before, 1, *after]), [*before, block, *after])
    return narrow(reshape(wide, [*before[:-1], blocks * block, *after]), axis, 0, extent)


def _saturated(x: Node, zero: Node | None, dtype: DType) -> Node:
    """Floats rounded to integers, plus a zero point, as near as a dtype has them."""
    rounded = unary("round", x)
    limits = np.iinfo(dtype.storage)
    low, high = scalar(limits.min, rounded), scalar(limits.max, rounded)
    if zero is not None:
        wide = cast(zero, x.dtype)
        rounded = add(rounded, wide)
    return cast(op("minimum.default", op("maximum.default", rounded, low), high), dtype)


@rule("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def quantize(call: Call) -> Node:
    """x over the scale, rounded to even, plus the zero point, as near as the dtype has it."""
    x, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    call.whatever("saturate")  # of floats of 8 bits, which are refused
    asked = call.integer("output_dtype", 0) if call.version >= 21 else 0
    dtype = dtype_of(asked) if asked else (uint8 if zero is None else zero.dtype)
    if dtype not in QUANTIZED or (zero is not None and zero.dtype is not dtype):
        raise Refused(f"output_dtype {dtype}")
    if call.version >= 23:
        call.only("precision", 0)
    floats = cast(x, float32)
    if x.dtype.name not in ("float32", "int32", "float16") or scale.dtype is not float32:
        raise Refused(f"{x.dtype} quantized by {scale.dtype}")
    if x.dtype is int32:
        raise Refused("int32 quantized")
    placed = None if zero is None else _placed(call, x, zero)
    return _saturated(div(floats, _placed(call, x, scale)), placed, dtype)


@rule("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def dequantize(call: Call) -> Node:
    """(x - zero point) * scale."""
    x, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    if x.dtype not in (*QUANTIZED, int32):
        raise Refused(f"{x.dtype} dequantized")
    if call.version >= 23:
        asked = call.integer("output_dtype", 0)
        if asked and dtype_of(asked) is not scale.dtype:
            raise Refused(f"output_dtype {dtype_of(asked)} of a scale of {scale.dtype}")
    wide = cast(x, int32)
    if zero is not None:
        wide = sub(wide, cast(_placed(call, x, zero), int32))
    return mul(cast(wide, scale.dtype), _placed(call, x, scale))


def _requantized(call: Call, product: Node, factor: Node, scale: int, zero: int) -> Node:
    """Sums of products of integers as integers of another scale."""
    y_scale, y_zero = call.tensor(scale), call.tensor(zero)
    if factor.dtype is not float32 or y_scale.dtype is not float32:
        raise Refused(f"scales of {factor.dtype}")
    if y_scale.shape not in ((), (1,)) or y_zero.shape not in ((), (1,)):
        raise Refused("scales of a result for each place")
    scaled = mul(cast(product, float32), div(factor, reshape(y_scale, ())))
    return _saturated(scaled, reshape(y_zero, ()), y_zero.dtype)


@rule("QLinearMatMul", 10, 21)
def quantized_matmul(call: Call) -> Node:
    """The product of quantized matrices, quantized."""
    a, b = less_zero(call, call.tensor(0), 2, -2), less_zero(call, call.tensor(3), 5, -1)
    scales = [call.tensor(1), call.tensor(4)]
    if any(each.shape not in ((), (1,)) for each in scales):
        raise Refused("scales of matrices for each place")
    factor = mul(reshape(scales[0], ()), reshape(scales[1], ()))
    return _requantized(call, op("matmul.default", a, b), factor, 6, 7)


@rule("QLinearConv", 10)
def quantized_convolution(call: Call) -> Node:
    """The convolution of quantized images with quantized weights, quantized."""
    product = convolution_integer(call, (0, 2), (3, 5))
    if call.has(8):
        product = add(product, columns(call.tensor(8), product.shape))
    x_scale, w_scale = call.tensor(1), call.tensor(4)
    if x_scale.shape not in ((), (1,)):
        raise Refused("a scale of images for each place")
    if w_scale.shape in ((), (1,)):
        w_scale = reshape(w_scale, ())
    else:
        w_scale = columns(w_scale, product.shape)
    return _requantized(call, product, mul(reshape(x_scale, ()), w_scale), 6, 7)
