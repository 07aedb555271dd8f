"""A `tensor_ir.scatter` as a CPU kernel: updates one by one, in order.

    %y = tensor_ir.scatter add %x[%i] along 0 from %u
           : (tensor<5x32xf32>, tensor<4x1xi64>, tensor<4x32xf32>) -> tensor<5x32xf32>

is, with the columns shared out between blocks,

    scf.for %block = %block_begin to %block_end {             // 16 columns each
      scf.for %n = 0 to 5 { %y[%n, ...] = %x[%n, ...] }       // unless %y begins as %x and takes its place
      scf.for %k = 0 to 4 {
        %row = %i[%k], checked
        scf.for %e = 0 to 16 { %y[%row, %block * 16 + %e] += %u[%k, %block * 16 + %e] }
      }
    }

No two blocks write the same element, so the result is that of the updates in their order, whatever runs when.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.index import ZERO
from ...dialects.loop import CheckedIndexOp
from ...dialects.sizes import Extent, hinted, shape_of
from ...dialects.tensor_ir_indexed import ScatterOp
from ..host import Device
from ..lower_loops import combine
from .ordered_kernels import OrderedKernel, bits_type

WIDE, NARROW = 64, 16
"""Elements of the last axis that a block changes, and where that would make one block of it."""


def scatter_kernel(op: ScatterOp, name: str, in_place: bool) -> Device:
    """The kernel; its arguments are the input, unless the output is `in_place`, indices, updates, output."""
    given = [("x", op.input), ("index", op.indices), ("updates", op.updates), ("y", op.result)]
    given = given[1:] if in_place else given
    kernel = OrderedKernel(name, [v for _, v in given], [n for n, _ in given])
    return _Scatter(op, kernel).build()


class _Scatter:
    """Writes the kernel of one scatter."""

    def __init__(self, op: ScatterOp, kernel: OrderedKernel):
        self.op, self.kernel = op, kernel
        self.combiner = op.update.data.combiner
        *source, self.index, self.updates, self.output = kernel.buffers
        self.source = source[0] if source else None
        self.shape = shape_of(bits_type(op.result.type))
        self.index_shape = shape_of(bits_type(op.indices.type))
        self.axis = op.axis.value.data
        self.last = len(self.shape) - 1
        self.part = self._part()

    def _part(self) -> int:
        """Elements of the last axis in one block; 1 where it is the one scattered along."""
        if self.axis == self.last:
            return 1
        width = self.shape[self.last]
        part = NARROW if hinted(width) < 2 * WIDE else WIDE
        return min(part, width) if isinstance(width, int) and width else part

    def _blocks(self) -> list[Extent]:
        """The blocks along each axis; all of the axis scattered along is one block's."""
        extents: list[Extent] = [1 if i == self.axis else n for i, n in enumerate(self.shape)]
        extents[self.last] = -(-extents[self.last] // self.part)
        return extents

    def build(self) -> Device:
        """The kernel, complete."""
        code, kernel = self.kernel.code, self.kernel
        with kernel.blocks(self._blocks()) as self.counters:
            width = self._width()
            if self.source is not None:
                with (
                    code.loop(kernel.constants.get(self.shape[self.axis]), "n") as n,
                    code.loop(width, "e") as e,
                ):
                    kernel.store(
                        kernel.load(self.source, *self._at(n, e)), self.output, *self._at(n, e)
                    )
            count = shape_of(bits_type(self.op.updates.type))[self.axis]
            per_element = self.last != self.axis and self.index_shape[self.last] != 1
            with code.loop(kernel.constants.get(count), "k") as k:
                row = None if per_element else self._row(k, kernel.constants.get(0))
                with code.loop(width, "e") as e:
                    self._change(k, e, self._row(k, e) if row is None else row)
        return kernel.finish(self.op, "makes its updates one by one")

    def _change(self, k: SSAValue, e: SSAValue, row: SSAValue) -> None:
        """Write or fold in one update."""
        value = self.kernel.load(self.updates, *self._at(k, e))
        if self.combiner is not None:
            old = self.kernel.load(self.output, *self._at(row, e))
            value = combine(self.kernel.code.builder, self.combiner, old, value)
        self.kernel.store(value, self.output, *self._at(row, e))

    def _row(self, k: SSAValue, e: SSAValue) -> SSAValue:
        """Where update `k` goes."""
        exprs, operands = self._at(k, e)
        place = [ZERO if n == 1 else e for n, e in zip(self.index_shape, exprs, strict=True)]
        value = self.kernel.load(self.index, place, operands)
        return self.kernel.code.insert(CheckedIndexOp(value, self.shape[self.axis]), "row")

    def _width(self) -> SSAValue:
        """How many elements of the last axis this block has."""
        constants, extent = self.kernel.constants, self.shape[self.last]
        whole = constants.get(self.part)
        if self.axis == self.last or (isinstance(extent, int) and extent % self.part == 0):
            return whole
        end = self.kernel.code.index(
            AffineExpr.dimension(0) * -self.part + AffineExpr.dimension(1),
            [self.counters[self.last], constants.get(extent)],
        )
        width = self.kernel.code.smaller(whole, end)
        width.name_hint = "width"
        return width

    def _at(self, position: SSAValue, e: SSAValue) -> tuple[list[AffineExpr], list[SSAValue]]:
        """The place at `position` of the axis scattered along, element `e` of this block."""
        operands = [*self.counters, e]
        exprs: list[AffineExpr] = [AffineExpr.dimension(i) for i in range(len(self.shape))]
        if self.axis == self.last:
            operands[self.last] = position
        else:
            operands[self.axis] = position
            exprs[self.last] = exprs[self.last] * self.part + AffineExpr.dimension(self.last + 1)
        return exprs, operands
