"""Asking the caches for what a register tile will read a while later, be it the next tile's.

    %later = arith.addi %k, %ahead
    %is_over = arith.cmpi sge, %later, %length
    loop.prefetch %w[%row + (%is_over ? rows of a tile : 0), %is_over ? %later - %length : %later]

The lines of an operand that is read where it lies end with K, or with a chunk of it. A core guesses what
comes next of each line, but not where the next tile's begin: these arrive from memory while it waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.loop import LoadOp, PrefetchOp
from .loop_code import LoopCode

LINE_BYTES = 64
"""A line of the cache."""

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


@dataclass(frozen=True)
class Later:
    """A position that is read some positions later: of the lines of this tile, or of the next one's."""

    code: LoopCode
    position: SSAValue
    tiles: SSAValue
    """1 if it is the next one's, else 0."""

    @staticmethod
    def after(code: LoopCode, position: SSAValue, ahead: int, length: SSAValue) -> Later:
        """The position so many after another one, where lines have a length."""
        later = code.index(D0 + ahead, [position])
        is_over = code.insert(arith.CmpiOp(later, length, "sge"))
        rest = code.index(D0 - D1, [later, length])
        one, zero = code.constants.get(1), code.constants.get(0)
        return Later(
            code,
            code.insert(arith.SelectOp(is_over, rest, later)),
            code.insert(arith.SelectOp(is_over, one, zero)),
        )

    def line(self, line: SSAValue, height: int) -> SSAValue:
        """The line that stands where one does in this tile, of so many lines."""
        return self.code.index(D0 + D1 * height, [line, self.tiles])

    def ask(self, load: LoadOp, known: Mapping[SSAValue, SSAValue]) -> None:
        """Ask for what a load will read where some of its operands have these values."""
        operands = [known.get(value, value) for value in load.indices]
        self.code.builder.insert(PrefetchOp(load.memref, load.map.data.results, operands, 0))
