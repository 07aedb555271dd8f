"""A row of scores in a softmax block: exponents, what they are folded to, and the shares of the columns.

    for %tile, for %c = 0 to 32 { %scores[...] = f(%scores[...]) }      // exponents
    for %j = %end to %covered   { %scores[...] = minus infinity }
    for %tile, for %c = 0 to 32 { %folded[%c] = max(%folded[%c], %scores[...]) }
    %max = %maxima[%i] and all of %folded
    for %tile, for %c = 0 to 32 { %scores[...] = exp(%scores[...] - %max)    %folded[%c] += %scores[...] }
    %sum = %weights[%i] * exp(%maxima[%i] - %max) + all of %folded
    for %tile, for %c = 0 to 32 { %scores[...] *= 1 / %sum }
    for %c { %means[%i, %c] *= what %weights[%i] is now worth / %sum }

The inner loops have the constant length of a register tile: nothing is left over when they become vectors,
and `folded` becomes a register. A row is filled up to the end of a register tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.scalars import Combiner
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine, identity_constant
from ..weighted import exponent_shift, scaled_exp, share
from .loop_code import LoopCode, Place

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))

REASSOCIATE = arith.FastMathFlagsAttr((FastMathFlag.REASSOC,))

Fold = Callable[[SSAValue, SSAValue], SSAValue]


@dataclass(frozen=True)
class RowBuffers:
    """Scratch buffers of a block."""

    scores: SSAValue
    """Those of a register tile's rows."""
    maxima: SSAValue
    weights: SSAValue
    means: SSAValue
    folded: SSAValue
    """What is folded, apart for each column of a register tile."""


@dataclass(frozen=True)
class Exponents:
    """What follows from a score at a row and a column."""

    score: SSAValue
    row: SSAValue
    column: SSAValue
    ops: Sequence[Operation]
    result: SSAValue


@dataclass(frozen=True)
class SoftmaxRows:
    """Emits the code of rows."""

    code: LoopCode
    element: Attribute
    buffers: RowBuffers
    exponents: Exponents
    width: int
    """Columns of a register tile."""
    stride: int
    """Between rows of scores."""
    columns: int
    """Of a row of means."""
    needs_maximum: bool
    """Whether somebody reads the largest exponent, which is NaN if one is."""

    def fold(self, row: SSAValue, line: SSAValue, length: SSAValue, end: SSAValue) -> None:
        """Put a row's scores into what it carries, and the shares of its columns in their place.

        The scores are those of a `line`; `length` of them are there, those from `end` on are masked.
        """
        code, buffers = self.code, self.buffers
        self._write_exponents(row, line, length, end)
        tiles = self._tiles(length)
        before = code.load(buffers.maxima, (D0, [row]))
        worth = code.load(buffers.weights, (D0, [row]))
        largest = self._fold(Combiner.MAX, before, line, tiles, lambda x: x)
        shift = exponent_shift(code.builder, largest)
        zero = emit_constant(code.builder, 0, self.element)
        added = self._fold(
            Combiner.ADD, zero, line, tiles, lambda x: scaled_exp(code.builder, x, shift)
        )
        kept = code.insert(arith.MulfOp(worth, scaled_exp(code.builder, before, shift)))
        total = combine(code.builder, Combiner.ADD, kept, added)
        code.store(largest, buffers.maxima, (D0, [row]))
        code.store(total, buffers.weights, (D0, [row]))
        unit = share(code.builder, emit_constant(code.builder, 1, self.element), total)
        with self._each(tiles, line) as (_, place):
            self._scale(buffers.scores, place, unit)
        old = code.insert(arith.MulfOp(kept, unit))
        with code.loop(code.constants.get(self.columns), "c") as column:
            self._scale(buffers.means, (D0 * self.columns + D1, [row, column]), old)

    def reduce(
        self,
        combiner: Combiner,
        start: SSAValue,
        end: SSAValue,
        contribution: Callable[[SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold what a function writes for each of some counters."""
        code = self.code
        body, loop = code.sweep(end, "c", [start])
        outer, code.builder = code.builder, Builder(InsertPoint.at_end(body))
        value = contribution(body.args[0])
        folded = combine(code.builder, combiner, body.args[1], value, REASSOCIATE)
        code.builder.insert(scf.YieldOp(folded))
        code.builder = outer
        return loop.results[0]

    def _tiles(self, length: SSAValue) -> SSAValue:
        return self.code.index((D0 + (self.width - 1)) // self.width, [length])

    @contextmanager
    def _each(self, tiles: SSAValue, line: SSAValue) -> Generator[tuple[SSAValue, Place]]:
        """Loops over the columns of tiles of a line; gives where in its tile one is, and its place."""
        code = self.code
        width = code.constants.get(self.width)
        with code.loop(tiles, "tile") as tile, code.loop(width, "c") as column:
            yield column, (D0 * self.stride + D1 * self.width + D2, [line, tile, column])

    def _scale(self, buffer: SSAValue, place: Place, factor: SSAValue) -> None:
        code = self.code
        scaled = code.insert(arith.MulfOp(code.load(buffer, place), factor))
        code.store(scaled, buffer, place)

    def _write_exponents(
        self, row: SSAValue, line: SSAValue, length: SSAValue, end: SSAValue
    ) -> None:
        """Put exponents in the place of a row's scores, and minus infinities behind its end."""
        code = self.code
        full = code.index(D0 // self.width, [length])
        with self._each(full, line) as (inside, place):
            tile = place[1][1]
            self._write(row, code.index(D0 * self.width + D1, [tile, inside]), place)
        along = D0 * self.stride + D1
        with code.loop(length, "j", code.index(D0 * self.width, [full])) as column:
            self._write(row, column, (along, [line, column]))
        low = emit_constant(code.builder, -math.inf, self.element)
        covered = code.index(D0 * self.width, [self._tiles(length)])
        with code.loop(covered, "masked", end) as column:
            code.store(low, self.buffers.scores, (along, [line, column]))

    def _write(self, row: SSAValue, column: SSAValue, place: Place) -> None:
        """Put an exponent in the place of a score."""
        code, made = self.code, self.exponents
        values: dict[SSAValue, SSAValue] = {made.row: row, made.column: column}
        values[made.score] = code.load(self.buffers.scores, place)
        code.store(code.clone(made.ops, values)[made.result], self.buffers.scores, place)

    def _fold(
        self,
        combiner: Combiner,
        start: SSAValue,
        line: SSAValue,
        tiles: SSAValue,
        contribution: Callable[[SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold a line, each column of its tiles apart and then those; what contributes stays in its place."""
        code, scores, folded = self.code, self.buffers.scores, self.buffers.folded
        width = code.constants.get(self.width)
        first = identity_constant(code.builder, combiner, self.element)
        with code.loop(width, "c") as column:
            code.store(first, folded, (D0, [column]))
        with self._each(tiles, line) as (column, place):
            element = code.load(scores, place)
            value = contribution(element)
            if value is not element:
                code.store(value, scores, place)
            at = (D0, [column])
            code.store(self._both(combiner, code.load(folded, at), value), folded, at)
        return self.reduce(combiner, start, width, lambda c: code.load(folded, (D0, [c])))

    def _both(self, combiner: Combiner, so_far: SSAValue, value: SSAValue) -> SSAValue:
        """The two combined; of a NaN among exponents that nobody asks for, their sum of powers tells."""
        code = self.code
        if combiner is not Combiner.MAX or self.needs_maximum:
            return combine(code.builder, combiner, so_far, value)
        larger = code.insert(arith.CmpfOp(value, so_far, "ogt"))
        return code.insert(arith.SelectOp(larger, value, so_far))
