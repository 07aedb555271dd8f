"""What `partial` does across threads: the lanes of an axis share the sweeps of each point of a launch.

    tile.launch (%row = 32 : block) {
      %s = loop.for %k = 0 to 2048 reduce(add) -> f32 { ... %x[%row, %k] ... }
      loop.for %j = 0 to 2048 { ... loop.store %y, %out[%row, %j] }
    }
becomes, for 256 threads,
    tile.launch (%row = 32 : block, %lane = 256 : thread) {
      %p = loop.for %k = 0 to 8 reduce(add) -> f32 { ... %x[%row, %k * 256 + %lane] ... }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 8 { ... loop.store %y, %out[%row, %j * 256 + %lane] }
    }
and in vectors
      loop.for %j = 0 to 2 {
        loop.for %e = 0 to 4 { ... %out[%row, (%j * 256 + %lane) * 4 + %e] } attributes {vector}
      }

The tail of a row and rows past the last one are masked: there a fold gets its identity. What stands between
the sweeps every thread computes; what is stored there, one thread stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.cost import trips
from ...analysis.vectors import VECTOR, vector_width
from ...dialects.inside import ops_in
from ...dialects.loop import (
    AccumulateOp,
    AssertOp,
    CheckedIndexOp,
    ForOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ...dialects.scalars import is_weighted
from ...dialects.sizes import Extent, ceil_div, extent_expr
from ...dialects.tile import AxisAttr, CombineOp, LaunchOp, Level
from ...index.affine import replace_dims
from ..loop.scalar_code import emit_constant
from ..lower_loops import CHUNK
from ..replacing import rename
from ..tile.masks import mask_contributions
from ..tile.named_axes import INDEX, find_guard, insert_axis, take_off_guard
from ..tile.rewrite_indices import rewrite_index


def sweeps_of(launch: LaunchOp) -> list[ForOp]:
    """The loops of a launch's body."""
    return [op for op in _body(launch).ops if isinstance(op, ForOp)]


def between(launch: LaunchOp) -> list[Operation]:
    """What stands between the sweeps and is no store."""
    return [op for op in _body(launch).ops if not isinstance(op, ForOp | StoreOp | scf.YieldOp)]


def _body(launch: LaunchOp) -> Block:
    """The operations of a launch, those under the condition that all are under if there is one."""
    found = find_guard(launch)
    return launch.body.block if found is None else found[1].true_region.block


def checks(launch: LaunchOp) -> bool:
    """Whether something between the sweeps must not run for rows past the last one."""
    return any(isinstance(op, CheckedIndexOp | AssertOp | scf.IfOp) for op in between(launch))


def widest_vector(launch: LaunchOp) -> int:
    """The most neighbours that every sweep of a launch can access at once; a row has two vectors."""
    widths: list[int] = []
    for sweep in sweeps_of(launch):
        extent = sweep.extent.data
        width = vector_width(sweep.induction_var, sweep.body.block)
        if not isinstance(width, int):
            return 1
        while width > 1 and (extent % width != 0 or trips(extent) <= width):
            width //= 2
        widths.append(width)
    return min(widths)


def obstacle(launch: LaunchOp) -> str | None:
    """Why threads cannot share the sweeps of a launch, or None if they can."""
    sweeps = sweeps_of(launch)
    if not any(sweep.res for sweep in sweeps):
        return "no reduce loop in the body"
    if any(sweep.limit is not None for sweep in sweeps):
        return "a sweep ends at a limit of its own"
    if any(is_weighted([c.data for c in sweep.combiners]) for sweep in sweeps):
        return "it folds weighted means, which one thread joins"
    if any(isinstance(inner, StoreOp) for op in between(launch) for inner in ops_in(op)):
        return "it stores under a condition between the sweeps"
    if any(isinstance(op, AccumulateOp) for op in ops_in(launch)):
        return "it adds to what is stored"
    if any(VECTOR in sweep.attributes for sweep in sweeps):
        return "a sweep goes over neighbours that a thread accesses at once"
    if find_guard(launch) is not None and checks(launch):
        return "it checks indices from data in rows that may not be there"
    return None


@dataclass(frozen=True)
class _Sharing:
    """How sweeps are shared: by the points of an axis, in vectors, where there is a row.

    There is one where `ends` are at least zero, over `counters`.
    """

    lanes: int
    vector: int
    lane: SSAValue
    ends: Sequence[AffineExpr]
    counters: Sequence[SSAValue]

    def inside(
        self, expr: AffineExpr, operands: Sequence[SSAValue]
    ) -> tuple[list[AffineExpr], list[SSAValue]]:
        """The conditions that there is a row and that `expr` over `operands` is at least zero."""
        dims = [AffineExpr.dimension(len(self.counters) + i) for i in range(len(operands))]
        return [*self.ends, replace_dims(expr, dims)], [*self.counters, *operands]


def share_sweeps(
    launch: LaunchOp, lanes: int, vector: int, name: str = "lane", *, columns: bool = False
) -> None:
    """Let so many threads share the sweeps over each point of a launch.

    Neighbouring threads are lanes of one row; with `columns`, they are neighbouring points.
    """
    ends, counters = take_off_guard(launch)
    blocks = sum(axis.level.data is Level.BLOCK for axis in launch.axes)
    place = blocks if columns else len(launch.axes)
    lane = insert_axis(launch, place, AxisAttr(lanes, Level.THREAD), name)
    sharing = _Sharing(lanes, vector, lane, ends, counters)
    for op in list(launch.body.block.ops):
        if isinstance(op, ForOp):
            _share_sweep(op, sharing)
        elif isinstance(op, StoreOp):
            _guard(op, "first", *sharing.inside(AffineExpr.dimension(0) * -1, [lane]))
        elif isinstance(op, LoadOp) and ends:
            _guard(op, "inside", ends, counters)


def _share_sweep(sweep: ForOp, sharing: _Sharing) -> None:
    """Let a loop visit every so many elements or vectors from `lane` on, and combine what it reduces."""
    lanes, vector = sharing.lanes, sharing.vector
    units = ceil_div(sweep.extent.data, vector)
    visits = ceil_div(units, lanes)
    unit = AffineExpr.dimension(0) * lanes + AffineExpr.dimension(1)
    old = sweep.induction_var
    body, neighbours = sweep.detach_region(sweep.body), None
    if vector > 1:
        neighbours = loop_like(sweep, vector, body, "_vector")
        neighbours.attributes[VECTOR] = UnitAttr()
        body = Region(Block([neighbours, YieldOp(*neighbours.res)], arg_types=[INDEX]))
        body.block.args[0].name_hint, old.name_hint = old.name_hint, "e"
    shared = loop_like(sweep, visits, body, "_part")
    assert sweep.parent is not None
    sweep.parent.insert_op_before(shared, sweep)
    counters: list[SSAValue] = [shared.induction_var, sharing.lane]
    element = unit if vector == 1 else unit * vector + AffineExpr.dimension(2)
    space = counters if vector == 1 else [*counters, old]
    for op in ops_in(shared):
        rewrite_index(op, {old: element}, space)
    if visits * lanes != units:
        last = unit * -1 + extent_expr(units - 1)
        mask_contributions(shared, *sharing.inside(last, counters))
    elif sharing.ends:
        mask_contributions(shared, sharing.ends, sharing.counters)
    elif neighbours is not None and neighbours.res:
        neighbours.attributes[CHUNK] = UnitAttr()
    _combine(sweep, shared, sharing.lane)


def _combine(sweep: ForOp, shared: ForOp, lane: SSAValue) -> None:
    """Put what the lanes have folded together in the place of what a sweep folds."""
    after = Builder(InsertPoint.before(sweep))
    for mine, theirs, combiner in zip(sweep.res, shared.res, sweep.combiners, strict=True):
        combined = after.insert(CombineOp(combiner.data, theirs, [lane]))
        combined.location = sweep.location
        rename([mine], [combined.result])
    sweep.detach()
    sweep.erase()


def loop_like(sweep: ForOp, extent: Extent, body: Region, suffix: str = "") -> ForOp:
    """A loop that folds as `sweep` does; `suffix` is added to the names of its results."""
    combiners = [c.data for c in sweep.combiners]
    new = ForOp(extent, body, combiners=combiners, result_types=list(sweep.res.types))
    new.location = sweep.location
    for mine, theirs in zip(sweep.res, new.res, strict=True):
        theirs.name_hint = f"{mine.name_hint or 'value'}{suffix}"
    return new


def _guard(
    op: LoadOp | StoreOp, name: str, conditions: Sequence[AffineExpr], operands: Sequence[SSAValue]
) -> None:
    """Put an access under a condition; what is not loaded is 0."""
    before = Builder(InsertPoint.before(op))
    test = before.insert(TestOp(conditions, operands))
    test.result.name_hint = name
    types = [result.type for result in op.results]
    then, otherwise = Block(), Block()
    if types:
        zero = emit_constant(Builder(InsertPoint.at_end(otherwise)), 0, types[0])
        otherwise.add_op(scf.YieldOp(zero))
    guard = scf.IfOp(test.result, types, Region(then), Region(otherwise) if types else None)
    guard.location = op.location
    before.insert(guard)
    rename(op.results, guard.output)
    op.detach()
    then.add_ops([op, scf.YieldOp(*op.results)])
