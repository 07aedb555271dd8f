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
leaves it; those after it find it, too. Values of another type than the output's elements are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.loop import LoadOp, StoreOp
from ..decisions import record
from .kernel_loops import kernels_of
from .loop_names import Names, goes_down, is_in


def _sweeps_before(loop: scf.ForOp) -> Iterator[scf.ForOp]:
    """The reductions in front of a loop that run over the same range."""
    op = loop.prev_op
    while op is not None:
        if isinstance(op, scf.ForOp) and op.res:
            if (op.lb, op.ub, op.step) == (loop.lb, loop.ub, loop.step):
                yield op
        op = op.prev_op


def _is_known_at(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value from outside of a later loop is known in front of `loop`."""
    owner, block = value.owner, loop.parent
    assert block is not None
    if isinstance(owner, Operation) and owner.parent is block:
        return owner.is_before_in_block(loop)
    return True


def _keep(store: StoreOp, loop: scf.ForOp) -> str | None:
    """Leave what `loop` computes again where `store` will write; gives None, or why not."""
    assert isinstance(store.memref.type, MemRefType)
    element = store.memref.type.element_type
    counter = loop.body.block.args[0]
    reason = "no sweep computes again what one before it did"
    mine = Names(loop, columns=not goes_down(store, counter))
    sweeps = [(sweep, Names(sweep, mine.columns)) for sweep in _sweeps_before(loop)]
    for value in reversed(mine.costly):
        same = [(sweep, v) for sweep, theirs in sweeps if (v := theirs.find(mine.of[value]))]
        if not same:
            continue
        if value.type != element:
            reason = f"the output's elements are {element} and not {value.type}"
            continue
        *later, (first, left) = same
        others = [v for v in store.indices if v is not counter]
        if any(is_in(v, loop.body.block) or not _is_known_at(v, first) for v in others):
            return "the output's index is computed in between"
        _leave(store, left, counter, first)
        for sweep, again in [(loop, value), *later]:
            _find(store, again, counter, sweep)
        for names in (mine, *(theirs for sweep, theirs in sweeps if sweep is not first)):
            names.erase_unused()
        return None
    return reason


def _leave(store: StoreOp, value: SSAValue, counter: SSAValue, sweep: scf.ForOp) -> None:
    """Store `value`, which `sweep` computes, where `store` will write in an iteration of its loop."""
    owner = value.owner
    assert isinstance(owner, Operation)
    left = StoreOp(value, store.memref, store.map.data.results, _there(store, counter, sweep))
    left.location = owner.location
    sweep.body.block.insert_op_after(left, owner)


def _find(store: StoreOp, value: SSAValue, counter: SSAValue, sweep: scf.ForOp) -> None:
    """Load what `sweep` computes as `value` from there."""
    owner = value.owner
    assert isinstance(owner, Operation)
    found = LoadOp(store.memref, store.map.data.results, _there(store, counter, sweep))
    found.location = owner.location
    found.result.name_hint = value.name_hint
    sweep.body.block.insert_op_after(found, owner)
    value.replace_all_uses_with(found.result)


def _there(store: StoreOp, counter: SSAValue, sweep: scf.ForOp) -> list[SSAValue]:
    return [sweep.body.block.args[0] if v is counter else v for v in store.indices]


@dataclass(frozen=True)
class KeepInOutputPass(ModulePass):
    """Needs kernels as `scf` functions; leaves values in outputs for the sweep that writes these."""

    name = "keep-in-output"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every store that is the end of a loop."""
        for function in kernels_of(op):
            stores = [o for o in function.walk() if isinstance(o, StoreOp)]
            kept, reasons = 0, dict[str, None]()
            for store in stores:
                loop = store.parent_op()
                if not isinstance(loop, scf.ForOp) or loop.res:
                    continue
                reason = _keep(store, loop)
                kept += reason is None
                if reason is not None:
                    reasons[reason] = None
            reason = "; ".join(reasons) or "no loop stores elements"
            said = f"{kept} values wait in the output" if kept else reason
            record(self.name, function.sym_name.data, kept > 0, said, function)
