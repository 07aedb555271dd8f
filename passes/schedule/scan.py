"""`scan`: the threads of a block share a running fold, instead of each place folding alone.

    tile.launch (%i = 1024 : thread, %j = 4096 : thread) {
      %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %v = scf.if %until -> (f32) { ... %x[%i, %k] ... } else { ... 0.0 ... }
        loop.yield %v : f32
      }
      loop.store %s, %y[%i, %j]
    }
becomes, by `scan{axis=j lanes=1024 each=4 vector=4}`,
    tile.launch (%i = 1024 : block, %lane = 1024 : thread) {
      %kept = loop.registers : memref<4xf32, "registers">
      loop.for %e = 0 to 4 { ... loop.store %x[%i, %lane * 4 + %e], %kept[%e] } attributes {unroll, vector}
      %total = loop.for %e = 0 to 4 reduce(add) -> f32 { ... %kept[%e] ... }
      %before = tile.prefix add %total over(%lane) : f32
      %s_0 = arith.addf %before, %kept[0]
      ...                                            // and so on, each stored to %kept
      loop.for %e = 0 to 4 { ... loop.store %kept[%e], %y[%i, %lane * 4 + %e] } attributes {unroll, vector}
    }

A thread has `each` neighbouring places: it folds their terms, gets what the threads before it fold, and goes
on from there, place by place. Each term is computed once, and each place rounded in the same order in every
run. Where the axis is in parts (`%j mod 2048 - %k >= 0`), `part` says how long these are. A block has `rows`
rows; with `columns`, neighbouring threads have neighbouring rows.

Declined are reductions in which a term depends on the place or is not the identity past it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.running import FEWEST
from ...dialects.inside import ops_of
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import ForOp, IndexOp, LoadOp, StoreOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import Extent, extent_expr
from ...dialects.tile import MAX_THREADS, AxisAttr, LaunchOp, Level
from ...errors import UsageError
from ...index.affine import product, replace_dims
from ..loop.scalar_code import emit_constant
from ..replacing import replace
from ..tile.axis_splits import Split
from ..tile.blockify_launch import steps_of
from ..tile.named_axes import find_axis, insert_axis, take_off_guard
from ..tile.row_shape import split_rows
from ..tile.running_folds import misfit, runs, varying_ops
from ..tile.scan_places import Places, ScanShape
from ..tile.split_axes import split_in_parts
from ..tile.split_loops import fold_tests
from .primitive import Primitive

_INDEPENDENT = (IndexOp, TestOp, arith.ConstantOp)
"""What may be computed for rows that are not there."""

VECTOR_BYTES = 16
"""The most that a thread accesses at once (PTX ISA, `ld.global.v4.f32`)."""


@dataclass(frozen=True)
class Scan:
    """A running fold whose places are an axis of their own: `part` places, of `extent` in all parts."""

    axis: int
    part: int
    extent: Extent


def terms_of(launch: LaunchOp) -> list[ForOp]:
    return [op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res]


def widest_vector(launch: LaunchOp, scan: Scan) -> int:
    """Neighbours that a thread loads and stores at once: whole parts and rows are made of them."""
    if not isinstance(scan.extent, int):
        return 1
    accesses = ops_of(launch, LoadOp, StoreOp)
    values = [op.result if isinstance(op, LoadOp) else op.value for op in accesses]
    widest = max((storage_bytes(value.type) for value in values), default=VECTOR_BYTES)
    fitting = [
        n for n in WIDTHS if n * widest <= VECTOR_BYTES and scan.part % n == scan.extent % n == 0
    ]
    return max(fitting, default=1)


def find_scan(launch: LaunchOp, axis: int, part: int) -> Scan | str:
    """The running folds along an axis, which becomes two if it is in parts; or why there are none."""
    extent = launch.axes.data[axis].extent.data
    if part < FEWEST:
        return f"a part has {part} places, each of which folds alone"
    if extent != part:
        split_in_parts(launch, axis, part)
        axis += 1
    place = launch.body.block.args[axis]
    varying = varying_ops(launch.body.block, place)
    for loop in terms_of(launch):
        if loop not in varying:
            continue
        if loop.extent.data != part:
            return "its reductions differ in length"
        if (reason := misfit(loop, place, varying)) is not None:
            return reason
    return Scan(axis, part, extent)


def _ends(scan: Scan, shape: ScanShape) -> list[AffineExpr]:
    """What is at least zero at a place that there is, over its part and its place in it."""
    part, place = AffineExpr.dimension(0), AffineExpr.dimension(1)
    ends: list[AffineExpr] = []
    if shape.lanes * shape.each != scan.part:
        ends.append(place * -1 + (scan.part - 1))
    if scan.extent % scan.part != 0:
        ends.append(
            (product(part, extent_expr(scan.part)) + place) * -1 + extent_expr(scan.extent - 1)
        )
    return ends


def share(launch: LaunchOp, scan: Scan, shape: ScanShape) -> None:
    """Let `shape.lanes` threads share the places of each row or column."""
    arguments = launch.body.block.args
    ends = _ends(scan, shape)
    if ends:  # what is said of places is rewritten with them
        marker = TestOp(ends, [arguments[max(scan.axis - 1, 0)], arguments[scan.axis]])
        Builder(InsertPoint.at_start(launch.body.block)).insert(marker)
    extents = [axis.extent.data for axis in launch.axes]
    splits = split_rows([n for i, n in enumerate(extents) if i != scan.axis], shape.others)
    splits.insert(scan.axis, Split(scan.part, blocks=scan.part))
    for step in steps_of(launch, splits):
        reason = step.change(launch)
        assert reason is None, reason
    row_ends, counters = _without_unused(*take_off_guard(launch))
    axis = sum(s.blocks != 1 for s in splits[: scan.axis])
    body = launch.body.block
    place = body.args[axis]
    test = body.first_op if ends else None
    assert test is None or isinstance(test, TestOp)
    if row_ends:
        _guard(body, place, row_ends, counters)
    inside = _conjunction(row_ends, counters, test)
    varying = varying_ops(body, place)
    old = [op for op in body.ops if op in varying]
    lane = _insert_lane(launch, shape)
    folds = [op for op in old if isinstance(op, ForOp) and op.res]
    rest = [op for op in old if op not in folds and op is not test]
    Places(launch, shape, place, lane, inside).build(folds, rest)
    for op in reversed(old):
        op.detach()
        op.erase()
    axes = list(launch.axes)
    del axes[axis]
    body.erase_arg(place)
    launch.axes = ArrayAttr(axes)
    fold_tests(launch)


def _insert_lane(launch: LaunchOp, shape: ScanShape) -> SSAValue:
    """An axis of the threads that share a row, the innermost one, or a column, the outermost one."""
    position = len(launch.extents(Level.BLOCK)) if shape.columns else len(launch.axes)
    return insert_axis(launch, position, AxisAttr(shape.lanes, Level.THREAD), "lane")


def _without_unused(
    exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]
) -> tuple[list[AffineExpr], list[SSAValue]]:
    """Expressions over those operands that they use."""
    used = sorted({dim for expr in exprs for dim in expr.used_dims()})
    dims = [AffineExpr.dimension(used.index(n) if n in used else 0) for n in range(len(operands))]
    return [replace_dims(expr, dims) for expr in exprs], [operands[n] for n in used]


def _conjunction(
    ends: Sequence[AffineExpr], counters: Sequence[SSAValue], test: TestOp | None
) -> tuple[list[AffineExpr], list[SSAValue]]:
    """The conditions that a row is there and that a test holds."""
    if test is None:
        return list(ends), list(counters)
    dims = [AffineExpr.dimension(len(counters) + n) for n in range(len(test.operands_))]
    return [*ends, *(replace_dims(e, dims) for e in test.exprs)], [*counters, *test.operands_]


def _guard(
    body: Block, place: SSAValue, ends: Sequence[AffineExpr], counters: Sequence[SSAValue]
) -> None:
    """Put what is the same at all places of a row under the condition that there is such a row."""
    varying = varying_ops(body, place)
    moved = [op for op in body.ops if op not in varying and not isinstance(op, _INDEPENDENT)]
    if not moved:
        return
    test = TestOp(list(ends), list(counters))
    test.result.name_hint = "inside"
    results = [
        result
        for op in moved
        for result in op.results
        if any(_op_in(body, use.operation) in varying for use in result.uses)
    ]
    then, otherwise = Block(), Block()
    zeros = Builder(InsertPoint.at_end(otherwise))
    otherwise_values = [emit_constant(zeros, 0, result.type) for result in results]
    zeros.insert(scf.YieldOp(*otherwise_values))
    guard = scf.IfOp(test.result, [r.type for r in results], Region(then), Region(otherwise))
    Builder(InsertPoint.before(moved[0])).insert([test, guard])
    for result, outer in zip(results, guard.output, strict=True):
        outer.name_hint = result.name_hint
        result.replace_uses_with_if(outer, lambda use: _op_in(body, use.operation) in varying)
    for op in moved:
        op.detach()
        then.add_op(op)
    then.add_op(scf.YieldOp(*results))


def _op_in(body: Block, op: Operation) -> Operation:
    """The operation of a block that another one stands in."""
    while op.parent is not body:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


@dataclass(frozen=True)
class ScanPass(Primitive):
    """Share running folds along an axis. Raises UsageError for numbers that no launch can have."""

    name = "scan"

    axis: str = ""
    """The axis of the places."""
    part: int = 0
    """The places of a part, if the axis has several."""
    lanes: int = 1
    """Threads that share a row: a power of two."""
    each: int = 1
    """Places of a thread."""
    rows: int = 1
    """Rows of a block: a power of two."""
    vector: int = 1
    """Places that a thread loads and stores at once."""
    columns: bool = False
    """Whether neighbouring threads have neighbouring rows, not neighbouring places."""

    def __post_init__(self):
        for option, value in (("lanes", self.lanes), ("rows", self.rows)):
            if not 0 < value <= MAX_THREADS or value & (value - 1):
                limit = f"a power of two, at most {MAX_THREADS}"
                raise UsageError(f"{option} is {limit}, not {value}")
        if self.part < 0 or self.vector < 1 or self.each < 1 or self.each % self.vector:
            raise UsageError("part is 0 or more, and each a multiple of vector, which is 1 or more")

    @property
    def done(self) -> str:
        """Who shares what."""
        what = "columns" if self.columns else "rows"
        return f"{self.lanes} threads share {self.axis}, {self.rows} {what} a block"

    @property
    def shape(self) -> ScanShape:
        """How the places are shared."""
        return ScanShape(self.lanes, self.rows, self.each, self.vector, self.columns)

    def change(self, launch: LaunchOp) -> str | None:
        """Share the folds; gives why not."""
        position = find_axis(launch, self.axis)
        if isinstance(position, str):
            return position
        if launch.settled is not None:
            return launch.settled
        extent = launch.axes.data[position].extent.data
        part = self.part or extent
        if not isinstance(part, int) or (position, part) not in list(runs(launch)):
            return f"no reduction ends at the place of {self.axis}, in parts of {part}"
        copy = launch.clone()
        copy.location = launch.location
        scan = find_scan(copy, position, part)
        reason = scan if isinstance(scan, str) else self._misfit(copy, scan)
        if reason is not None or isinstance(scan, str):
            copy.drop_all_references()
            return reason
        replace(launch, copy)
        share(copy, scan, self.shape)
        return None

    def _misfit(self, launch: LaunchOp, scan: Scan) -> str | None:
        """Why its numbers are none for a launch, or None."""
        if self.lanes * self.each < scan.part:
            had = self.lanes * self.each
            return f"{self.axis} has {scan.part} places, more than the {had} that its threads have"
        if self.vector > (widest := widest_vector(launch, scan)):
            return f"a thread accesses {widest} places at once at most, not {self.vector}"
        return None
