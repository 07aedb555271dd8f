"""What `cuda` means: the lockstep machine, and what C++ leaves undefined.

It checks what C++ leaves undefined or means otherwise than the index syntax does: index arithmetic must fit
the function's index type, an index that is divided must not be negative, and no integer may be divided by 0.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    i32,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from ..dialects import cuda
from .device_memory import fault
from .numpy_types import Array
from .scalar_ops import evaluate_silently
from .simt import SimtMachine
from .tensor_ir import evaluate_index


def _dividends(expr: AffineExpr) -> Iterator[AffineExpr]:
    """The dividends in an index expression."""
    if isinstance(expr, AffineBinaryOpExpr):
        if expr.kind in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod):
            yield expr.lhs
        yield from _dividends(expr.lhs)
        yield from _dividends(expr.rhs)


class CudaMachine(SimtMachine):
    """Executes a `cuda.func` on blocks of a grid."""

    def __init__(
        self, function: cuda.FuncOp, blocks: Array, only: Container[Operation] | None = None
    ):
        super().__init__(blocks, function.threads.value.data, only)
        self._divided: dict[int, tuple[AffineExpr, Sequence[AffineExpr]]] = {}
        self.narrow = function.index_type == i32
        self.handlers |= {arith.DivSIOp: self._divide, arith.RemSIOp: self._divide}

    def _fits(self, op: Operation, index: Array) -> Array:
        limit = 1 << 31
        if self.narrow and (index.min() < -limit or index.max() >= limit):
            if np.any(((index < -limit) | (index >= limit)) & self.mask):
                raise fault(op, "overflows: its index does not fit int")
        return index

    def _dividends_of(self, expr: AffineExpr) -> Sequence[AffineExpr]:
        """The dividends in an index expression, which is looked through once."""
        if (known := self._divided.get(id(expr))) is None:
            known = self._divided[id(expr)] = expr, tuple(_dividends(expr))
        return known[1]

    def _divide(self, op: arith.DivSIOp | arith.RemSIOp) -> None:
        divisor = self.values[op.rhs]
        if np.any((divisor == 0) & self.mask):  # the lowering makes every divisor safe
            raise fault(op, "divides an integer by zero, which C++ leaves undefined")
        result = evaluate_silently(op, [self.values[op.lhs], divisor])
        assert result is not None
        self.values[op.result] = result

    def index(self, op: Operation, expr: AffineExpr, operands: Sequence[SSAValue]) -> Array:
        """The value of an index expression, as C++ computes it."""
        dims = [self.values[v] for v in operands]
        for dividend in self._dividends_of(expr):
            if np.any((self._fits(op, evaluate_index(dividend, dims)) < 0) & self.mask):
                raise fault(op, f"divides a negative index, {dividend}: C++ rounds to zero")
        return self._fits(op, super().index(op, expr, operands))
