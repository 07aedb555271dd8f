"""What `cuda` means: the lockstep machine with C++'s variables, loops and branches.

It checks what C++ leaves undefined or means otherwise than the index syntax does: index arithmetic must fit
the function's index type, an index that is divided must not be negative, and no integer may be divided by 0.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    i32,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from ..dialects import cuda
from ..dialects.sizes import static_extent
from .device_memory import fault
from .numpy_types import Array, numpy_dtype
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
        self.handlers |= {
            cuda.VariableOp: self._variable,
            cuda.AssignOp: self._assign,
            cuda.ForOp: self._counted,
            cuda.IfOp: self._branch,
            arith.DivSIOp: self._divide,
            arith.RemSIOp: self._divide,
        }

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

    def _variable(self, op: cuda.VariableOp) -> None:
        if op.initial is not None:
            self.values[op.result] = self.values[op.initial]
        else:
            self.values[op.result] = np.zeros((1, 1), numpy_dtype(op.result.type))

    def _assign(self, op: cuda.AssignOp) -> None:
        old, new = self.values[op.variable], self.values[op.value]
        whole = self.mask.shape == (1, 1) and bool(self.mask.all())
        self.values[op.variable] = new if whole else np.where(self.mask, new, old)

    def _counted(self, op: cuda.ForOp) -> None:
        outer, most = self.mask, static_extent(op.extent.data)
        end = np.asarray(most) if op.end is None else self.values[op.end]
        if np.any((end > most) & outer):
            raise fault(op, f"ends after the {most} iterations that it says")
        for index in range(most):
            self.mask = outer & (index < end)
            if not np.any(self.mask):
                break
            self.values[op.induction_var] = np.asarray(index, np.int64)
            self.run(op.body.block)
        self.mask = outer

    def _branch(self, op: cuda.IfOp) -> None:
        def arm(region_index: int) -> Callable[[], None]:
            region = op.regions[region_index]

            def run() -> None:
                if region.blocks:
                    self.run(region.block)

            return run

        self.branches(self.values[op.condition], [arm(0), arm(1)])
