"""A `tile.pack` of windows as loops: a buffer of rows of an image, and what lies around it.

    for %r = 0 to 58, %c = 0 to 58 { %window[%r, 0, %c] = 0 }             // once, in front of all blocks
    for %block = ... {
      for %r = 1 to 57, %c = 1 to 57 { %window[%r, 0, %c] = %x[..., %r - 1, %c - 1] }

What lies outside in each block alike is written once. With `phases 2` there are two rows for one: that of the
elements at even columns and that of the others. A row is computed to a line of its own, and vectors of it are
shuffled apart; LLVM would gather or scatter elements:

    for %c = 1 to 57 { %line[0, %c] = %x[..., %r - 1, %c - 1] }
    for %part = 0 to 2 {                                                // %p is 0, then 13
      %a = vector.load %line[0, %p * 2]    %b = vector.load %line[0, %p * 2 + 16]
      vector.store (vector.shuffle %a, %b [0, 2, ..., 30]), %window[%r, 0, %p]
      vector.store (vector.shuffle %a, %b [1, 3, ..., 31]), %window[%r, 1, %p]
    }

A pack without a condition is computed as a whole. Where its elements are sums, such as scores of keys, four
come side by side, so that a core has something to add while it waits for the end of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import Linear, linear, slope_along
from ...analysis.index import operand_ranges, simplify
from ...dialects.index import normalize_operands
from ...dialects.inside import ops_of
from ...dialects.loop import ForOp, LoadOp, StoreOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.tile import LaunchOp
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ...index.affine import ZERO, replace_dims
from ..loop.share_sweeps import share_in_block
from ..lower_loops import IndexConstants
from ..replacing import replace
from .loop_code import LoopCode, scratch

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))
APART = 2
"""Phases that are shuffled apart."""

MAX_TILE = 4
"""Sums that come side by side, at most."""

Limit = int | SSAValue
"""An index; a number where it is the same in all blocks."""


def lower_windows(
    launch: LaunchOp, blocks: scf.ForOp, constants: IndexConstants, *, vectors: bool = True
) -> None:
    """Replace the packs of a launch that multiplies none; `blocks` is the loop over its blocks.

    Nothing is shuffled without `vectors`, or where the schedule has no `width`.
    """
    width = launch.schedule and launch.schedule.get("width")
    bits = (width or 0) if vectors else 0
    for pack in ops_of(launch, PackOp):
        rows, columns = pack.shape
        phases = pack.phase_count
        type = MemRefType(pack.element.type, [rows, phases, -(-columns // phases)])
        buffer = _allocate(type, blocks, constants)
        buffer.name_hint = pack.packed.name_hint
        if isinstance(pack.element.owner, scf.IfOp):
            lanes = bits // 8 // storage_bytes(pack.element.type)
            _Copy(pack, buffer, constants, lanes).emit(blocks)
        else:
            _compute(pack, buffer, constants)
        for use in list(pack.packed.uses):
            load = use.operation
            assert isinstance(load, LoadOp)
            row, column = load.map.data.results
            place = (row, *_phase_and_place(column, phases))
            replace(load, LoadOp(buffer, place, list(load.indices)))
        pack.detach()
        pack.erase()


def _compute(pack: PackOp, buffer: SSAValue, constants: IndexConstants) -> None:
    """Store each element of a pack, which a body computes, in front of it; of sums some come side by side."""
    code = LoopCode(Block(), constants)
    code.builder = Builder(InsertPoint.before(pack))
    rows, columns = pack.shape
    sums = any(isinstance(op, ForOp) for op in pack.body.block.ops)
    tile = min(MAX_TILE if sums else 1, columns)
    with code.loop(constants.get(rows), "r") as row:
        with code.loop(constants.get(columns // tile), "c") as strip:
            places = [code.index(D0 * tile + n, [strip]) for n in range(tile)]
            _compute_places(pack, buffer, code, row, places)
        left = range(columns - columns % tile, columns)
        _compute_places(pack, buffer, code, row, list(map(constants.get, left)))


def _compute_places(
    pack: PackOp, buffer: SSAValue, code: LoopCode, row: SSAValue, places: Sequence[SSAValue]
) -> None:
    """Store some elements of a row, at the end of a loop; their sums share loops."""
    *ops, last = pack.body.block.ops
    (element,) = last.operands
    copies: list[dict[SSAValue, SSAValue]] = [
        dict(zip(pack.body.block.args, (row, place), strict=True)) for place in places
    ]
    for op in ops:
        for values in copies:
            code.builder.insert(op.clone(value_mapper=values))
    for place, values in zip(places, copies, strict=True):
        exprs = [D0, *_phase_and_place(D1, pack.phase_count)]
        code.builder.insert(StoreOp(values.get(element, element), buffer, exprs, [row, place]))
    share_in_block(code.builder.insertion_point.block)


def _allocate(type: MemRefType, blocks: scf.ForOp, constants: IndexConstants) -> SSAValue:
    """A buffer that lives as long as the loop over blocks."""
    assert blocks.parent is not None
    return scratch(type, blocks.parent, constants)


def _phase_and_place(column: AffineExpr, phases: int) -> tuple[AffineExpr, AffineExpr]:
    """In which phase a column lies, and where in it."""
    parts = linear(column)
    assert parts is not None  # `stage-windows` made it a sum
    whole = {d: c // phases for d, c in parts.coefficients.items() if c % phases == 0}
    rest = {d: c for d, c in parts.coefficients.items() if c % phases}
    left = Linear(rest, parts.constant).expr
    return left % phases, left // phases + Linear(whole, 0).expr


class _Copy:
    """Emits the loops of a pack in front of it."""

    def __init__(self, pack: PackOp, buffer: SSAValue, constants: IndexConstants, lanes: int):
        self.pack = pack
        self.buffer = buffer
        self.row, self.column = pack.body.block.args
        self.phases = pack.phase_count
        self.rows, self.length = pack.shape[0], -(-pack.shape[1] // self.phases)
        value = pack.element.owner
        test = value.cond.owner if isinstance(value, scf.IfOp) else None
        if not isinstance(value, scf.IfOp) or not isinstance(test, TestOp):
            raise DeploError(
                "a tile.pack of a launch that multiplies nothing must hold a value under a loop.test, as "
                "`stage-windows` makes it"
            )
        self.value, self.test = value, test
        self.code = LoopCode(Block(), constants)
        self.lanes = min(lanes, 1 << (self.length.bit_length() - 1))
        """Of the vectors that are shuffled apart: no row is shorter."""

    def emit(self, blocks: scf.ForOp) -> None:
        """Write what is outside, in front of all blocks if it is so in each, and copy what is inside."""
        self.code.builder = Builder(InsertPoint.before(blocks))
        self._fill(0, self.rows)
        self.code.builder = Builder(InsertPoint.before(self.pack))
        first, last = self._limits(self.row, self.pack.shape[0])
        start, end = self._limits(self.column, self.pack.shape[1])
        if not (isinstance(start, int) and isinstance(end, int)):
            self._fill(0, self.rows)
        elif not (isinstance(first, int) and isinstance(last, int)):
            self._fill(0, first)
            self._fill(last, self.rows)
        if (
            self.phases == APART
            and self.lanes > 1
            and isinstance(start, int)
            and isinstance(end, int)
        ):
            line = self._line(blocks)
            with self.code.loop(self._value(last), "r", self._value(first)) as row:
                self._copy_apart(line, row, start, end)
            return
        starts, ends = (
            [self._divided(c, self.phases - 1 - phase) for phase in range(self.phases)]
            for c in (start, end)
        )
        # The first phase begins last, and the last one ends first.
        start = starts[0]
        end = self._larger(ends[-1], start)
        with self.code.loop(self._value(last), "r", self._value(first)) as row:
            self._copy(row, range(self.phases), start, end)
            for phase in range(self.phases if self.phases > 1 else 0):
                self._copy(row, [phase], starts[phase], start)
                self._copy(row, [phase], end, ends[phase])

    def _copy(self, row: SSAValue, phases: Sequence[int], start: Limit, end: Limit) -> None:
        """Compute the elements of some phases."""
        if isinstance(start, int) and isinstance(end, int) and start >= end:
            return
        code = self.code
        with code.loop(self._value(end), "c", self._value(start)) as place:
            for phase in phases:
                column = code.index(D0 * self.phases + phase, [place])
                counters: dict[SSAValue, SSAValue] = {self.row: row, self.column: column}
                element = self._yielded(self.value.true_region.block, counters)
                exprs = [D0, AffineExpr.constant(phase), D1]
                code.builder.insert(StoreOp(element, self.buffer, exprs, [row, place]))

    def _line(self, blocks: scf.ForOp) -> SSAValue:
        """A buffer for a row, with what is outside."""
        code, columns = self.code, self.phases * self.length
        line = _allocate(MemRefType(self.pack.element.type, [1, columns]), blocks, code.constants)
        line.name_hint = "line"
        here, code.builder = code.builder, Builder(InsertPoint.before(blocks))
        with code.loop(code.constants.get(columns), "c") as column:
            element = self._yielded(self.value.false_region.block, {})
            code.builder.insert(StoreOp(element, line, [ZERO, D0], [column]))
        code.builder = here
        return line

    def _copy_apart(self, line: SSAValue, row: SSAValue, start: int, end: int) -> None:
        """Compute a row, and copy every second element of it, and the others."""
        code, lanes = self.code, self.lanes
        with code.loop(code.constants.get(end), "c", code.constants.get(start)) as column:
            counters: dict[SSAValue, SSAValue] = {self.row: row, self.column: column}
            element = self._yielded(self.value.true_region.block, counters)
            code.builder.insert(StoreOp(element, line, [ZERO, D0], [column]))
        kind = VectorType(self.pack.element.type, [lanes])
        with code.loop(code.constants.get(-(-self.length // lanes)), "part") as part:
            # The last one ends where the row does.
            last = code.constants.get(self.length - lanes)
            place = code.smaller(code.index(D0 * lanes, [part]), last)
            a, b = (
                code.insert(vector.LoadOp(line, [code.constants.get(0), first], kind))
                for first in (code.index(D0 * APART + each, [place]) for each in (0, lanes))
            )
            for phase in range(APART):
                elements = code.shuffle(a, b, range(phase, APART * lanes, APART))
                indices = [row, code.constants.get(phase), place]
                code.builder.insert(vector.StoreOp(elements, self.buffer, indices))

    def _fill(self, first: Limit, last: Limit) -> None:
        """Have rows hold what is outside."""
        code = self.code
        with (
            code.loop(self._value(last), "r", self._value(first)) as row,
            code.loop(code.constants.get(self.phases * self.length), "c") as column,
        ):
            element = self._yielded(self.value.false_region.block, {})
            exprs = [D0, D1 // self.length, D1 % self.length]
            code.builder.insert(StoreOp(element, self.buffer, exprs, [row, column]))

    def _yielded(self, block: Block, counters: dict[SSAValue, SSAValue]) -> SSAValue:
        """What a block yields, computed here; a constant may stand around it, behind this place."""
        *ops, last = block.ops
        (element,) = last.operands
        if isinstance(element.owner, arith.ConstantOp) and element.owner not in ops:
            ops.append(element.owner)
        return self.code.clone(ops, counters).get(element, element)

    # ------------------------------------------------------------------ limits

    def _limits(self, counter: SSAValue, extent: int) -> tuple[Limit, Limit]:
        """Where a counter is inside, as the conditions on it say: from the first to the second."""
        start, end = 0, extent
        for expr in self.test.exprs:
            slope = slope_along(expr, self.test.operands_, counter)
            assert slope is not None  # `stage-windows` saw to that
            dims = [
                ZERO if v is counter else AffineExpr.dimension(d)
                for d, v in enumerate(self.test.operands_)
            ]
            rest = replace_dims(expr, dims)
            if slope > 0:  # slope * counter + rest >= 0
                start = self._larger(start, self._index((rest * -1 + (slope - 1)) // slope))
            elif slope < 0:
                end = self._smaller(end, self._index(rest // -slope + 1))
            elif counter is self.row and self._is_of_block(expr):
                # Where it does not hold, nothing is inside: the end is not behind the first row.
                end = self._smaller(end, self._index((rest + 1) * extent))
        start = self._smaller(start, extent)
        return start, self._larger(end, start)

    def _is_of_block(self, expr: AffineExpr) -> bool:
        """Whether a condition is the same for all elements of a block's pack."""
        return slope_along(expr, self.test.operands_, self.column) == 0

    def _index(self, expr: AffineExpr) -> Limit:
        simple = simplify(expr, operand_ranges(self.test.operands_))
        if isinstance(simple, AffineConstantExpr):
            return simple.value
        exprs, used = normalize_operands([simple], self.test.operands_)
        return self.code.index(exprs[0], used)

    def _divided(self, limit: Limit, more: int) -> Limit:
        if isinstance(limit, int):
            return (limit + more) // self.phases
        return self.code.index((D0 + more) // self.phases, [limit])

    def _larger(self, a: Limit, b: Limit) -> Limit:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self._of_both(arith.MaxSIOp, a, b)

    def _smaller(self, a: Limit, b: Limit) -> Limit:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self._of_both(arith.MinSIOp, a, b)

    def _of_both(self, kind: type[arith.MaxSIOp | arith.MinSIOp], a: Limit, b: Limit) -> Limit:
        op: Operation = kind(self._value(a), self._value(b))
        return self.code.insert(op)

    def _value(self, limit: Limit) -> SSAValue:
        return self.code.constants.get(limit) if isinstance(limit, int) else limit
