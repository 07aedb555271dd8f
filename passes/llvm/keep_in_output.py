"""`keep-in-output`: what a sweep computes again it finds in the output, where the sweep before left it.

    %s = scf.for %j = ... iter_args(%so_far = %zero) -> (f32) {
      %e = math.exp ...
      %next = arith.addf %so_far, %e
      scf.yield %next
    }
    scf.for %j = ... {
      %e = math.exp ...                                    // the same
      %p = arith.divf %e, %s
      loop.store %p, %y[%i, %j]
    }
becomes
    %s = scf.for %j = ... { %e = math.exp ...    loop.store %e, %y[%i, %j]    ... }
    scf.for %j = ... { %e = loop.load %y[%i, %j]    %p = arith.divf %e, %s    loop.store %p, %y[%i, %j] }

The output is to be written in any case, each of its elements by one iteration alone, so until then it is a
place of the right size. A function such as exp costs as much as several loads and stores in the cache, and so
does an element of a column, if the output is written along a row. The first sweep that computes the value
leaves it; those after it find it, too. If there are only values of another type than the output's elements,
such as the exponentials of a softmax of bf16, one waits in a scratch row, which has to stay in the cache; not
so if rows are to be computed side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import constant_of
from ...dialects.inside import ops_of
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import schedule_of
from ..decisions import record
from .kernel_loops import kernels_of
from .loop_code import element_of
from .loop_names import Names, goes_down, is_in
from .scratch_rows import most_of, row_of

ROOM = 1 << 18
"""Bytes of a scratch row at most, which is to stay in the second level of the cache."""


def _sweeps_before(loop: scf.ForOp) -> Iterator[scf.ForOp]:
    """The reductions in front of a loop that run over the same range."""
    op = loop.prev_op
    while op is not None:
        if isinstance(op, scf.ForOp) and op.res:
            if (op.lb, op.ub, op.step) == (loop.lb, loop.ub, loop.step):
                yield op
        op = op.prev_op


def _is_known_at(value: SSAValue, op: Operation) -> bool:
    """Whether a value of the block of `op`, or of one around it, is computed in front of `op`."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.parent is op.parent:
        return owner.is_before_in_block(op)
    return True


@dataclass(frozen=True)
class _Place:
    """Where a value of each iteration waits."""

    buffer: SSAValue
    exprs: Sequence[AffineExpr]
    indices: Sequence[SSAValue]
    counter: SSAValue
    """That one of `indices` which becomes the counter of each sweep."""

    def leave(self, value: SSAValue, sweep: scf.ForOp) -> None:
        """Store `value`, which `sweep` computes."""
        owner = value.owner
        assert isinstance(owner, Operation)
        left = StoreOp(value, self.buffer, self.exprs, self._indices(sweep))
        left.location = owner.location
        sweep.body.block.insert_op_after(left, owner)

    def find(self, value: SSAValue, sweep: scf.ForOp) -> None:
        """Load what `sweep` computes as `value`."""
        owner = value.owner
        assert isinstance(owner, Operation)
        found = LoadOp(self.buffer, self.exprs, self._indices(sweep))
        found.location = owner.location
        found.result.name_hint = value.name_hint
        sweep.body.block.insert_op_after(found, owner)
        value.replace_all_uses_with(found.result)

    def _indices(self, sweep: scf.ForOp) -> list[SSAValue]:
        return [sweep.body.block.args[0] if v is self.counter else v for v in self.indices]


def _keep(store: StoreOp, loop: scf.ForOp, function: func.FuncOp) -> str | None:
    """Leave what `loop` computes again where `store` will write, or in a scratch row; or say why not."""
    element = element_of(store.memref)
    counter = loop.body.block.args[0]
    reason = "no sweep computes again what one before it did"
    if not (before := list(_sweeps_before(loop))):
        return reason
    mine = Names(loop, columns=not goes_down(store, counter))
    sweeps = [(sweep, Names(sweep, mine.columns)) for sweep in before]
    known = [value for value in reversed(mine.costly) if _is_known_at(value, store)]
    for value in sorted(known, key=lambda value: value.type != element):
        same = [(sweep, v) for sweep, theirs in sweeps if (v := theirs.find(mine.of[value]))]
        if not same:
            continue
        *later, (first, left) = same
        if value.type == element:
            others = [v for v in store.indices if v is not counter]
            if any(is_in(v, loop.body.block) or not _is_known_at(v, first) for v in others):
                return "the output's index is computed in between"
            place = _Place(store.memref, store.map.data.results, store.indices, counter)
        elif (why := _no_room(value, loop, function)) is not None:
            reason = f"the output's elements are {element} and not {value.type}, and {why}"
            continue
        else:
            row = row_of(value, loop, function.body.block, "row")
            place = _Place(row, [AffineExpr.dimension(0)], [counter], counter)
        place.leave(left, first)
        for sweep, again in [(loop, value), *later]:
            place.find(again, sweep)
        for names in (mine, *(theirs for sweep, theirs in sweeps if sweep is not first)):
            names.erase_unused()
        return None
    return reason


def _no_room(value: SSAValue, loop: scf.ForOp, function: func.FuncOp) -> str | None:
    """Why the values of a loop's iterations do not wait in a scratch row."""
    if schedule_of(function).get("rows") is not None:
        return "rows are to come side by side"
    if not isinstance(value.type, Float32Type | Float64Type):
        return "these are no floats"
    if constant_of(loop.lb) != 0 or constant_of(loop.step) != 1:
        return "the loop does not count from 0"
    length = most_of(loop.ub)
    if length is None or length * storage_bytes(value.type) > ROOM:
        return f"a row may be longer than {ROOM} bytes"
    return None


@dataclass(frozen=True)
class KeepInOutputPass(ModulePass):
    """Needs kernels as `scf` functions; leaves values in outputs for the sweep that writes these."""

    name = "keep-in-output"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every store that is the end of a loop."""
        for function in kernels_of(op):
            stores = ops_of(function, StoreOp)
            kept, reasons = 0, dict[str, None]()
            for store in stores:
                loop = store.parent_op()
                if not isinstance(loop, scf.ForOp) or loop.res:
                    continue
                reason = _keep(store, loop, function)
                kept += reason is None
                if reason is not None:
                    reasons[reason] = None
            reason = "; ".join(reasons) or "no loop stores elements"
            said = f"{kept} values wait for a later sweep" if kept else reason
            record(self.name, function.sym_name.data, kept > 0, said, function)
