"""`scan-rows`: the threads of a block share a running fold, instead of each place folding alone.

    tile.launch (%i = 1024 : thread, %j = 4096 : thread) {
      %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %v = scf.if %until -> (f32) { ... %x[%i, %k] ... } else { ... 0.0 ... }
        loop.yield %v : f32
      }
      loop.store %s, %y[%i, %j]
    }
becomes
    tile.launch (%i = 1024 : block, %lane = 1024 : thread) schedule(#tile.schedule<threads = 1024>) {
      %kept = loop.registers : memref<4xf32, "registers">
      loop.for %e = 0 to 4 { ... loop.store %x[%i, %lane * 4 + %e], %kept[%e] } attributes {unroll, vector}
      %total = loop.for %e = 0 to 4 reduce(add) -> f32 { ... %kept[%e] ... }
      %before = tile.prefix add %total over(%lane) : f32
      %s_0 = arith.addf %before, %kept[0]
      ...                                            // and so on, each stored to %kept
      loop.for %e = 0 to 4 { ... loop.store %kept[%e], %y[%i, %lane * 4 + %e] } attributes {unroll, vector}
    }

A thread has neighbouring places: it folds their terms, gets what the threads before it fold, and goes on
from there, place by place. Each term is computed once, and each place rounded in the same order in every run.
Where the axis is in parts (`%j mod 2048 - %k >= 0`), it becomes two axes first. Short rows share a block.
Where neighbours in memory are no neighbours of a fold, they are columns, and the lanes of a warp have these.

Declined are CPU targets, reductions in which a term depends on the place or is not the identity past it,
parts of few places, and of more than the threads of a block can keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.cost import hints_of, trips
from ...analysis.launches import launches_of
from ...analysis.running import FEWEST
from ...analysis.vectors import is_unit_stride
from ...dialects.inside import ops_in
from ...dialects.kernel import WARP
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import (
    ForOp,
    IndexOp,
    LoadOp,
    StoreOp,
    TestOp,
)
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, extent_expr
from ...dialects.tile import MAX_THREADS, AxisAttr, LaunchOp, Level
from ...index.affine import product, replace_dims
from ...machine.targets import Target, get_gpu
from ..decisions import record
from ..loop.scalar_code import emit_constant
from ..replacing import replace
from ..schedule.axes import take_off_guard
from .axis_splits import Split
from .blockify_launch import blockify
from .row_shape import covering, rows_per_block, split_rows
from .running_folds import misfit, runs, varying_ops
from .scan_places import Places, ScanShape
from .split_axes import split_in_parts
from .split_loops import fold_tests

INDEX = IndexType()

MOST_KEPT = 128
"""Registers that a thread may have for terms: what does not fit is still sooner there than folded again."""

LEAST = 4
"""Places of a column that a thread has at least."""

VECTOR_BYTES = 16

_INDEPENDENT = (IndexOp, TestOp, arith.ConstantOp)
"""What may be computed for rows that are not there."""


# --------------------------------------------------------------------------- what it becomes


@dataclass(frozen=True)
class _Scan:
    """A running fold whose places are an axis of their own: `part` places, of `extent` in all parts."""

    axis: int
    part: int
    extent: Extent


def _choose(launch: LaunchOp, scan: _Scan, target: Target) -> ScanShape:
    """Lanes for each vector of a row, as far as a block has them; for columns, whole warps along them."""
    extents = [axis.extent.data for axis in launch.axes]
    del extents[scan.axis]
    if _runs_along_columns(launch, scan):
        others = min(covering(extents[-1]), WARP)
        lanes = min(covering(-(-scan.part // LEAST)), WARP)
        return ScanShape(lanes, others, -(-scan.part // lanes), columns=True)
    vector = _vector(launch, scan)
    units = scan.part // vector
    lanes = min(covering(units), MAX_THREADS)
    rows = rows_per_block(prod(map(trips, extents)), lanes, target)
    room = prod(map(covering, extents))
    return ScanShape(lanes, min(rows, room), -(-units // lanes) * vector, vector)


def _terms(launch: LaunchOp) -> list[ForOp]:
    return [op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res]


def _runs_along_columns(launch: LaunchOp, scan: _Scan) -> bool:
    """Whether the terms are neighbours along the last other axis, and not along the fold."""
    others = [v for n, v in enumerate(launch.body.block.args) if n != scan.axis]
    loads = [(op, loop) for loop in _terms(launch) for op in ops_in(loop) if isinstance(op, LoadOp)]
    if not others or any(is_unit_stride(op, loop.induction_var) for op, loop in loads):
        return False
    return any(is_unit_stride(op, others[-1]) for op, _ in loads)


def _vector(launch: LaunchOp, scan: _Scan) -> int:
    """Neighbours that a thread loads and stores at once: whole parts and rows are made of them."""
    if not isinstance(scan.extent, int):
        return 1
    accesses = [op for op in ops_in(launch) if isinstance(op, LoadOp | StoreOp)]
    values = [op.result if isinstance(op, LoadOp) else op.value for op in accesses]
    widest = max((storage_bytes(value.type) for value in values), default=VECTOR_BYTES)
    fitting = [
        n for n in WIDTHS if n * widest <= VECTOR_BYTES and scan.part % n == scan.extent % n == 0
    ]
    return max(fitting, default=1)


def _find(launch: LaunchOp, axis: int, part: int) -> _Scan | str:
    """The running folds along an axis, which becomes two if it is in parts; or why there are none."""
    extent = launch.axes.data[axis].extent.data
    if part < FEWEST:
        return f"a part has {part} places, each of which folds alone"
    if extent != part:
        split_in_parts(launch, axis, part)
        axis += 1
    place = launch.body.block.args[axis]
    varying = varying_ops(launch.body.block, place)
    for loop in _terms(launch):
        if loop not in varying:
            continue
        if loop.extent.data != part:
            return "its reductions differ in length"
        if (reason := misfit(loop, place, varying)) is not None:
            return reason
    return _Scan(axis, part, extent)


# --------------------------------------------------------------------------- the rewriting


def _ends(scan: _Scan, shape: ScanShape) -> list[AffineExpr]:
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


def _share(launch: LaunchOp, scan: _Scan, shape: ScanShape) -> None:
    """Let `shape.lanes` threads share the places of each row or column."""
    arguments = launch.body.block.args
    ends = _ends(scan, shape)
    if ends:  # what is said of places is rewritten with them
        marker = TestOp(ends, [arguments[max(scan.axis - 1, 0)], arguments[scan.axis]])
        Builder(InsertPoint.at_start(launch.body.block)).insert(marker)
    extents = [axis.extent.data for axis in launch.axes]
    splits = split_rows([n for i, n in enumerate(extents) if i != scan.axis], shape.others)
    splits.insert(scan.axis, Split(scan.part, blocks=scan.part))
    schedule = ScheduleAttr(threads=shape.lanes * prod(s.threads for s in splits))
    if shape.vector > 1:
        schedule = schedule.with_choices(vector=shape.vector)
    blockify(launch, splits, schedule)
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
    axes = list(launch.axes)
    position = len(launch.extents(Level.BLOCK)) if shape.columns else len(axes)
    lane = launch.body.block.insert_arg(IndexType(), position)
    lane.name_hint = "lane"
    axes.insert(position, AxisAttr(shape.lanes, Level.THREAD))
    launch.axes = ArrayAttr(axes)
    return lane


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


def _change(launch: LaunchOp, target: Target) -> tuple[bool, str]:
    """Share the running folds of a launch; whether it has them, and what came of it."""
    if launch.settled is not None:
        return False, launch.settled
    reasons: dict[str, None] = {}
    for axis, part in runs(launch):
        name = launch.body.block.args[axis].name_hint or f"axis {axis}"
        copy = launch.clone()
        copy.location = launch.location
        scan = _find(copy, axis, part)
        if isinstance(scan, str):
            reasons[scan] = None
            continue
        shape = _choose(copy, scan, target)
        if (registers := shape.each * _words(copy)) > MOST_KEPT:
            reasons[f"a thread would keep {registers} registers of terms"] = None
            continue
        replace(launch, copy)
        _share(copy, scan, shape)
        what = "columns" if shape.columns else "rows"
        return True, f"{shape.lanes} threads share {name}, {shape.others} {what} a block"
    return False, "; ".join(reasons) or "no reduction ends at the place of an axis"


def _words(launch: LaunchOp) -> int:
    """Registers of the terms of a place."""
    return sum(
        -(-storage_bytes(result.type) // 4) for loop in _terms(launch) for result in loop.res
    )


@dataclass(frozen=True)
class ScanRowsPass(ModulePass):
    """Needs launches whose axes are not shared out yet; leaves running folds that threads share."""

    name = "scan-rows"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Share every running fold."""
        target = get_gpu(self.target)
        with hints_of(op):
            for kernel, launch in launches_of(op):
                fired, reason = _change(launch, target)
                record(self.name, kernel.sym_name.data, fired, reason, launch)
