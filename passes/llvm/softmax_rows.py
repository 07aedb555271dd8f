"""Rows of scores in a softmax block: exponents, the powers that columns weigh by, and what rows carry.

    for %i {                                              // the rows of a register tile
      %max = max(%maxima[%i], each %scores[...] = f(%scores[...]))
      %kept = exp(%maxima[%i] - %max)
      %maxima[%i] = %max    %weights[%i] *= %kept
      for %c { %means[%i, %c] *= %kept }                  // if there are several parts
    }
    for %i {
      %weights[%i] += the sum of each %scores[...] = %unit * exp(%scores[...] - %maxima[%i])
    }

All rows have their exponents before the first is raised to a power: while the elements of a vector are
folded to one maximum, the core begins the next row. Means are divided by the weights when rows are complete;
until then they are sums. `unit` is a power of 2, so small that no sum is larger than the largest value.

The columns of whole register tiles lie below the end of a row. Of those that are left each asks; up to the
end of a vector what lies behind the end is minus infinity, and zeros from there to the rows' last column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.amx import DEPTH
from ...dialects.scalars import Combiner, storage_bytes
from ...machine.cpus import Cpu
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine, identity_constant
from ..weighted import exponent_shift, scaled_exp
from .loop_code import LoopCode, Place, element_of, through_register
from .register_tiles import widen
from .relax_maxima import ANY_NUMBER, AT_MOST_ZERO

D0, D1 = (AffineExpr.dimension(i) for i in range(2))

REASSOCIATE = arith.FastMathFlagsAttr((FastMathFlag.REASSOC,))


@dataclass(frozen=True)
class RowBuffers:
    """Scratch buffers of a block."""

    scores: SSAValue
    """Those of a register tile's rows."""
    maxima: SSAValue
    weights: SSAValue
    means: SSAValue
    factors: SSAValue | None = None
    """What columns weigh by, rounded to the type that is multiplied, if that is not the scores'."""


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
    cpu: Cpu
    width: int
    """Columns of a register tile."""
    stride: int
    """Between rows of scores."""
    columns: int
    """Of a row of means."""
    unit: SSAValue
    """What the weight of a column is at most."""
    scales: bool
    """Whether rows carry anything from one part to the next."""

    def fold(
        self,
        rows: tuple[SSAValue, SSAValue],
        length: SSAValue,
        end_of_row: Callable[[SSAValue], SSAValue] | None,
        hint: str,
    ) -> None:
        """Put the scores of some rows into what these carry, and the weights of columns in their place.

        `length` of each row are there; if a function gives the end of a row, those from it on are masked.
        """
        code, (first, last) = self.code, rows
        with code.loop(last, hint, first) as row:
            line = code.index(D0 - D1, [row, first])
            end = length if end_of_row is None else end_of_row(row)
            self._take_maximum(row, line, end)
        with code.loop(last, hint, first) as row:
            line = code.index(D0 - D1, [row, first])
            end = length if end_of_row is None else end_of_row(row)
            self._add_weights(row, line, end)
            if self.buffers.factors is not None:
                whole = code.index((D0 + (DEPTH - 1)) // DEPTH * DEPTH, [length])
                self._clear(line, self._up(end), whole)
            elif end_of_row is not None:
                self._clear(line, self._up(end), length)

    def _clear(self, line: SSAValue, first: SSAValue, end: SSAValue) -> None:
        """Make the weights of some columns 0."""
        zero = emit_constant(self.code.builder, 0, self.element)
        with self.code.loop(end, "masked", first) as column:
            self._store_weight(zero, self._place(line, column))

    def _store_weight(self, value: SSAValue, place: Place) -> SSAValue:
        """Write what a column weighs by, where it is multiplied; gives it, rounded as it is there.

        So what is divided by are the weights that are multiplied: of equal values the mean is the value.
        """
        code, factors = self.code, self.buffers.factors
        if factors is None:
            code.store(value, self.buffers.scores, place)
            return value
        narrow = code.insert(arith.TruncFOp(value, element_of(factors)))  # pyright: ignore[reportArgumentType]
        code.store(narrow, factors, place)
        return widen(code, narrow, self.element)

    def _take_maximum(self, row: SSAValue, line: SSAValue, end: SSAValue) -> None:
        """Put exponents in the place of a row's scores, and scale what it carries to their maximum."""
        code, buffers = self.code, self.buffers
        whole = code.index(D0 // self.width * self.width, [end])
        start = identity_constant(code.builder, Combiner.MAX, self.element)
        largest = self.reduce(
            Combiner.MAX, start, whole, lambda c: self._write(row, line, c, self._exponent)
        )
        largest = self.reduce(
            Combiner.MAX,
            largest,
            code.opaque(self._up(end)),
            lambda c: self._write(row, line, c, self._exponent_before(end)),
            whole,
        )
        if code.for_llvm:
            largest = through_register(code.builder, largest, self.cpu.float_letter)
        before = code.load(buffers.maxima, (D0, [row]))
        largest = combine(code.builder, Combiner.MAX, before, largest)
        code.store(largest, buffers.maxima, (D0, [row]))
        if self.scales:
            kept = self._power(before, exponent_shift(code.builder, largest))
            self._scale(buffers.weights, (D0, [row]), kept)
            with code.loop(code.constants.get(self.columns), "c") as column:
                self._scale(buffers.means, (D0 * self.columns + D1, [row, column]), kept)

    def _add_weights(self, row: SSAValue, line: SSAValue, end: SSAValue) -> None:
        """Put weights in the place of a row's exponents, and add them up."""
        code, buffers = self.code, self.buffers
        shift = exponent_shift(code.builder, code.load(buffers.maxima, (D0, [row])))

        def weight(column: SSAValue) -> SSAValue:
            place = self._place(line, column)
            power = self._power(code.load(buffers.scores, place), shift)
            value = code.insert(arith.MulfOp(power, self.unit))
            return self._store_weight(value, place)

        zero = emit_constant(code.builder, 0, self.element)
        added = self.reduce(Combiner.ADD, zero, self._up(end), weight)
        before = code.load(buffers.weights, (D0, [row]))
        total = combine(code.builder, Combiner.ADD, before, added)
        code.store(total, buffers.weights, (D0, [row]))

    def _power(self, exponent: SSAValue, shift: SSAValue) -> SSAValue:
        """e to an exponent less the largest one."""
        power = scaled_exp(self.code.builder, exponent, shift)
        assert isinstance(power.owner, Operation)
        if self.code.for_llvm:
            power.owner.attributes[AT_MOST_ZERO] = UnitAttr()
        return power

    def reduce(
        self,
        combiner: Combiner,
        start: SSAValue,
        end: SSAValue,
        contribution: Callable[[SSAValue], SSAValue],
        first: SSAValue | None = None,
    ) -> SSAValue:
        """Fold what a function writes for each of some counters."""
        code = self.code
        body, loop = code.sweep(end, "c", [start], first)
        with code.into(body):
            value = contribution(body.args[0])
            # Where an exponent is NaN, so is the row's weight, whatever the maximum is.
            any_number = code.for_llvm and combiner is Combiner.MAX
            flags = ANY_NUMBER if any_number else REASSOCIATE
            folded = combine(code.builder, combiner, body.args[1], value, flags)
            code.builder.insert(scf.YieldOp(folded))
        return loop.results[0]

    def _up(self, end: SSAValue) -> SSAValue:
        """Where the last vector ends that has a column below an end."""
        lanes = self.cpu.lanes(storage_bytes(self.element))
        return self.code.index((D0 + (lanes - 1)) // lanes * lanes, [end])

    def _place(self, line: SSAValue, column: SSAValue) -> Place:
        return D0 * self.stride + D1, [line, column]

    def _scale(self, buffer: SSAValue, place: Place, factor: SSAValue) -> None:
        code = self.code
        scaled = code.insert(arith.MulfOp(code.load(buffer, place), factor))
        code.store(scaled, buffer, place)

    def _write(
        self,
        row: SSAValue,
        line: SSAValue,
        column: SSAValue,
        exponent: Callable[[SSAValue, SSAValue, Place], SSAValue],
    ) -> SSAValue:
        """Put an exponent in the place of a score."""
        place = self._place(line, column)
        value = exponent(row, column, place)
        self.code.store(value, self.buffers.scores, place)
        return value

    def _exponent(self, row: SSAValue, column: SSAValue, place: Place) -> SSAValue:
        """The exponent that follows from a score."""
        code, made = self.code, self.exponents
        values: dict[SSAValue, SSAValue] = {made.row: row, made.column: column}
        values[made.score] = code.load(self.buffers.scores, place)
        return code.clone(made.ops, values)[made.result]

    def _exponent_before(self, end: SSAValue) -> Callable[[SSAValue, SSAValue, Place], SSAValue]:
        """What gives the exponents of columns below an end, and minus infinity for others."""

        def exponent(row: SSAValue, column: SSAValue, place: Place) -> SSAValue:
            code = self.code
            inside, outside = Block(), Block()
            with code.into(inside):
                code.builder.insert(scf.YieldOp(self._exponent(row, column, place)))
            with code.into(outside):
                low = emit_constant(code.builder, -math.inf, self.element)
                code.builder.insert(scf.YieldOp(low))
            is_inside = code.insert(arith.CmpiOp(column, end, "slt"))
            return code.insert(scf.IfOp(is_inside, [self.element], Region(inside), Region(outside)))

        return exponent
