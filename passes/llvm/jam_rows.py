"""`jam-rows`: several rows of a kernel are computed side by side, sweep by sweep.

    scf.for %i = %begin to %end {
      %s = scf.for %j = ... iter_args(%so_far = %zero) -> (f32) { ... %x[%i, %j] ... }
      %d = arith.divf %s, %n
      scf.for %j = ... { ... loop.store ..., %y[%i, %j] }
    }
becomes, for `rows = 2`,
    scf.for %i = %begin to %pairs step 2 {
      %s:2 = scf.for %j = ... iter_args(...) -> (f32, f32) { ... %x[%i, %j] ... %x[%i + 1, %j] ... }
      %d0 = arith.divf %s#0, %n     %d1 = arith.divf %s#1, %n
      scf.for %j = ... { ... loop.store ..., %y[%i, %j] ... loop.store ..., %y[%i + 1, %j] }
    }
    scf.for %i = %pairs to %end { ... as before ... }

At the end of a sweep the elements of a vector are added up one after the other, and what is divided or rooted
then comes after that: of a short row a core spends a third of its time waiting. Rows of small windows, which
are unrolled, read most of what the next one reads. What a row writes must lie in a line of its own, such as
%y[%i, ...], which no other row reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import linear
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import IndexOp, LoadOp, PrefetchOp, StoreOp, TestOp
from ...dialects.schedule import SCHEDULE_ATTRIBUTE, schedule_of
from ..decisions import record
from ..lower_loops import IndexConstants
from .kernel_loops import NOT_CONCERNED, kernels_of

D0, D1 = (AffineExpr.dimension(i) for i in range(2))

PLAIN = (IndexOp, LoadOp, PrefetchOp, StoreOp, TestOp)
"""Operations of a row, apart from sweeps and from those that only compute."""

Values = dict[SSAValue, SSAValue]
"""What became of values in a copy."""


def why_not(loop: scf.ForOp) -> str | None:
    """Why iterations of a loop are no rows that can be computed side by side; None if they are."""
    block = loop.body.block
    if loop.res or not any(isinstance(op, scf.ForOp) for op in block.ops):
        return NOT_CONCERNED
    for sweep in ops_of(block, scf.ForOp):
        if any(_is_inside(bound, loop) for bound in (sweep.lb, sweep.ub, sweep.step)):
            return "a sweep's range depends on the row"
        if not sweep.res and ops_of(sweep.body, scf.ForOp):
            return "a sweep that folds nothing has loops of its own"
    for op in ops_in(block):
        known = isinstance(op, (*PLAIN, scf.ForOp, scf.IfOp, scf.YieldOp))
        known |= isinstance(op, llvm.InlineAsmOp) and op.has_side_effects is None
        if not known and op.dialect_name() not in ("arith", "math"):
            return f"{op.name} may do more than compute"
    return None if _writes_apart(loop) else "a row may read or write what another one writes"


def _writes_apart(loop: scf.ForOp) -> bool:
    """Whether all that an iteration writes lies in lines of its own, and nobody else reads these."""
    accesses = ops_of(loop.body, LoadOp, StoreOp)
    written = {op.memref for op in accesses if isinstance(op, StoreOp)}
    for memref in written:
        lines = [set(_own_lines(op, loop)) for op in accesses if op.memref is memref]
        if not set.intersection(*lines):
            return False
    return True


def _own_lines(op: LoadOp | StoreOp, loop: scf.ForOp) -> Iterator[Hashable]:
    """The dimensions in which an access counts with the loop, and nothing inside of it matters, and how."""
    counter = loop.body.block.args[0]
    for dimension, expr in enumerate(op.map.data.results):
        if (found := linear(expr)) is None:
            continue
        by = {op.indices[d]: c for d, c in found.coefficients.items()}
        others = [value for value in by if value is not counter]
        if counter in by and not any(_is_inside(value, loop) for value in others):
            yield dimension, frozenset(by.items()), found.constant


def _is_inside(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    return loop.is_ancestor(owner if isinstance(owner, Operation) else owner.parent_op() or loop)


def jam(loop: scf.ForOp, count: int, constants: IndexConstants) -> None:
    """Have a loop compute so many rows in an iteration; what is left of them follows one by one."""
    before = Builder(InsertPoint.before(loop))
    several = D0 + (D1 - D0) // count * count
    end = before.insert(IndexOp(several, [loop.lb, loop.ub])).result
    body = Block(arg_types=[loop.lb.type])
    body.args[0].name_hint = loop.body.block.args[0].name_hint
    side_by_side = scf.ForOp(loop.lb, end, constants.get(count), [], body)
    side_by_side.location = loop.location
    before.insert(side_by_side)
    builder = Builder(InsertPoint.at_end(body))
    copies: list[Values] = []
    for row in range(count):
        place = builder.insert(IndexOp(D0 + row, [body.args[0]])).result if row else body.args[0]
        copies.append({loop.body.block.args[0]: place})
    _copy(builder, loop.body.block, copies)
    builder.insert(scf.YieldOp())
    loop.operands[0] = end


def _copy(builder: Builder, block: Block, copies: list[Values]) -> None:
    """Put what a block computes there, for all rows: of each row, what stands between two sweeps."""
    between: list[Operation] = []
    for op in block.ops:
        if not isinstance(op, (scf.ForOp, scf.YieldOp)):
            between.append(op)
            continue
        for values in copies:
            for each in between:
                builder.insert(each.clone(value_mapper=values))
        between.clear()
        if isinstance(op, scf.ForOp):
            _sweep(builder, op, copies)


def _sweep(builder: Builder, sweep: scf.ForOp, copies: list[Values]) -> None:
    """One sweep over all rows, and those in it."""
    old = sweep.body.block
    start = [values.get(v, v) for values in copies for v in sweep.iter_args]
    body = Block(arg_types=[old.args[0].type, *(value.type for value in start)])
    for new, known in zip(body.args, (old.args[0], *list(old.args[1:]) * len(copies)), strict=True):
        new.name_hint = known.name_hint
    made = scf.ForOp(sweep.lb, sweep.ub, sweep.step, start, body)
    made.location = sweep.location
    made.attributes |= sweep.attributes
    builder.insert(made)
    width = len(sweep.res)
    for row, values in enumerate(copies):
        here = range(row * width, (row + 1) * width)
        values[old.args[0]] = body.args[0]
        values.update(zip(old.args[1:], (body.args[1 + i] for i in here), strict=True))
        values.update(zip(sweep.res, (made.res[i] for i in here), strict=True))
    inside = Builder(InsertPoint.at_end(body))
    _copy(inside, old, copies)
    (end,) = (op for op in old.ops if isinstance(op, scf.YieldOp))
    inside.insert(scf.YieldOp(*(values.get(v, v) for values in copies for v in end.operands)))


@dataclass(frozen=True)
class JamRowsPass(ModulePass):
    """Needs kernels as `scf` functions; carries out the choice `rows` of their schedules."""

    name = "jam-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every kernel."""
        for function in kernels_of(op):
            name, schedule = function.sym_name.data, schedule_of(function)
            if (count := schedule.get("rows")) is None:
                record(self.name, name, False, "its schedule has no `rows`", function)
                continue
            function.attributes[SCHEDULE_ATTRIBUTE] = schedule.without("rows")
            loops = {o: why_not(o) for o in ops_in(function) if isinstance(o, scf.ForOp)}
            constants = IndexConstants(function.body.block)
            for loop in (loop for loop, reason in loops.items() if reason is None):
                jam(loop, count, constants)
            found = any(reason is None for reason in loops.values())
            reason = "; ".join(dict.fromkeys(filter(None, loops.values())))
            said = f"{count} rows come side by side" if found else reason or "it has no rows"
            record(self.name, name, found, said, function)
