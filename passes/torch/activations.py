"""Activation functions.

torch.silu %x  ->  tensor_ir.elementwise of x / (1 + exp(-x))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function, is_bool
from ...dialects.torch_base import TorchOp
from .elementwise import reciprocal
from .lowering import Lowering, Refusal, Rule, element_of

SQRT_HALF = math.sqrt(0.5)
GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715
"""Constants of the two forms of GELU (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415)."""


def sigmoid(e: Lowering, value: SSAValue) -> SSAValue:
    """1 / (1 + exp(-value))."""
    denominator = e.with_number(
        Function.ADD, e.apply(Function.EXP, e.apply(Function.NEG, value)), 1.0
    )
    return reciprocal(e, denominator)


def _silu(e: Lowering, op: t.SiluOp) -> SSAValue:
    value = e.argument(op.input)
    exp = e.apply(Function.EXP, e.apply(Function.NEG, value))
    return e.apply(Function.DIV, value, e.with_number(Function.ADD, exp, 1.0))


def _relu(e: Lowering, op: t.ReluOp) -> SSAValue:
    """Zero where negative: keeps NaN and -0.0, as PyTorch does."""
    value = e.argument(op.input)
    if is_bool(element_of(value)):
        raise Refusal("bools are neither negative nor positive")
    zero = e.fill_like(value, 0)
    return e.select(e.apply(Function.LT, value, zero), zero, value)


def _gelu(e: Lowering, op: t.GeluOp) -> SSAValue:
    value, approximate = e.argument(op.input), op.string("approximate")
    if approximate == "none":
        curve = e.apply(Function.ERF, e.with_number(Function.MUL, value, SQRT_HALF))
    elif approximate == "tanh":
        cube = e.apply(Function.MUL, e.apply(Function.MUL, value, value), value)
        inner = e.apply(Function.ADD, value, e.with_number(Function.MUL, cube, GELU_CUBIC))
        curve = e.apply(Function.TANH, e.with_number(Function.MUL, inner, GELU_SCALE))
    else:
        raise Refusal(f"approximate = {approximate!r}")
    half = e.with_number(Function.MUL, value, 0.5)
    return e.apply(Function.MUL, half, e.with_number(Function.ADD, curve, 1.0))


def _piecewise(
    negative: Callable[[Lowering, Any, SSAValue], SSAValue], scale: str | None = None
) -> Rule:
    """The value (times `scale`) where it is positive, else `negative` of it; NaN stays NaN."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        value = e.argument(op.input)
        factor = 1 if scale is None else op.number(scale)
        positive = value if factor == 1 else e.with_number(Function.MUL, value, factor)
        above = e.with_number(Function.GT, value, 0)
        return e.select(above, positive, negative(e, op, value))

    return rule


def _leaky(e: Lowering, op: t.LeakyReluOp, value: SSAValue) -> SSAValue:
    return e.with_number(Function.MUL, value, op.number("negative_slope"))


def _elu(e: Lowering, op: t.EluOp, value: SSAValue) -> SSAValue:
    scaled = e.with_number(Function.MUL, value, op.number("input_scale"))
    factor = op.number("alpha") * op.number("scale")
    return e.with_number(Function.MUL, e.apply(Function.EXPM1, scaled), factor)


def _hardtanh(e: Lowering, op: t.HardtanhOp) -> SSAValue:
    low, high = op.number("min_val"), op.number("max_val")
    value = e.with_number(Function.MAX, e.argument(op.input), low)
    return e.with_number(Function.MIN, value, high)


RULES: dict[type[TorchOp], Rule] = {
    t.SigmoidOp: lambda e, op: sigmoid(e, e.argument(op.input)),
    t.ReluOp: _relu,
    t.SiluOp: _silu,
    t.GeluOp: _gelu,
    t.LeakyReluOp: _piecewise(_leaky),
    t.EluOp: _piecewise(_elu, scale="scale"),
    t.HardtanhOp: _hardtanh,
}
"""The rule for each activation function."""
