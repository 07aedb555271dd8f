"""Tensors made from nothing: constants and ranges.

torch.arange {start = 0, end = 8, step = 2}  ->  iota * 2
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function
from ...dialects.sizes import Size
from ...dialects.torch_base import ScalarValue, TorchOp
from .linear_algebra import scaled
from .lowering import Lowering, Rule


def _filled(e: Lowering, value: ScalarValue | Size) -> SSAValue:
    return e.constant(value, e.result_element, e.shape)


def _arange(e: Lowering, op: Any) -> SSAValue:
    """start + index * step: in i64 if all are integers, else in f64, as PyTorch counts on a CPU."""
    start, step = op.optional_scalar("start"), op.optional_number("step")
    start, step = 0 if start is None else start, 1 if step is None else step
    whole = all(isinstance(v, int | Size) for v in (start, step))
    index = e.cast(e.iota(0, i64, e.shape), i64 if whole else f64)
    value = scaled(e, index, step)
    return value if start == 0 else e.with_number(Function.ADD, value, start)


RULES: dict[type[TorchOp], Rule] = {
    t.ArangeOp: _arange,
    t.ArangeDefaultOp: _arange,
    t.FullOp: lambda e, op: _filled(e, op.scalar("fill_value")),
    t.FullLikeOp: lambda e, op: _filled(e, op.scalar("fill_value")),
    t.ScalarTensorOp: lambda e, op: _filled(e, op.scalar("s")),
    t.ZerosOp: lambda e, op: _filled(e, 0),
    t.ZerosLikeOp: lambda e, op: _filled(e, 0),
    t.OnesOp: lambda e, op: _filled(e, 1),
    t.EmptyOp: lambda e, op: _filled(e, 0),  # any value will do
    t.EmptyPermutedOp: lambda e, op: _filled(e, 0),
    t.OnesLikeOp: lambda e, op: _filled(e, 1),
}
"""The rule for each operation."""
