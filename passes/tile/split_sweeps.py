"""`split-sweeps`: a loop that reduces along pieces which take turns, or divides its counter, does so no more.

    %s = loop.for %k = 0 to 1024 reduce(add) -> f32 {
      %x_1 = loop.load %x[%k]
      %low = loop.test[%k mod 64 < 32]
      %q = scf.if %low -> (f32) { ... %p[%k floordiv 64 * 32 + %k mod 64] } else { ... }
      %m = arith.mulf %x_1, %q : f32
      loop.yield %m : f32
    }
becomes
    %s = loop.for %k_part = 0 to 4 reduce(add) -> f32 {
      %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
        ... %x[%k_part * 256 + %k] ... %p[%k_part * 128 + %k] ...
        ... %x[%k_part * 256 + %k + 32] ... %p[%k_part * 128 + %k] ...
        %both = arith.addf %m, %m_1 : f32
        ... %x[%k_part * 256 + %k + 64] ... %p[%k_part * 128 + %k + 32] ...
        loop.yield %all : f32
      }
      loop.yield %c : f32
    }

So are weights of four bits read, of which two share a byte, and their scales, of which some columns share
one: an iteration computes a contribution of each piece, under no condition, and neighbours are neighbours.
It does so in several parts at once: at the end of each the elements of a vector are added up.

Declined are sweeps with a loop in their body or a limit, those that fold weights, and those of which a
quotient or a condition would be left. Where floats are added, the order changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.launches import open_kernels
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, TestOp, YieldOp
from ...dialects.scalars import is_weighted
from ...errors import counted
from ...index.affine import divisions
from ..decisions import record
from ..lower_loops import CHUNK, combine
from ..schedule.split import chunk
from .rewrite_indices import index_of, rewrite_index
from .split_loops import fold_tests

MOST_PIECES = 8
"""Contributions that one iteration computes: as many as values of one bit share a byte."""
SHORTEST = 16
"""Iterations of a sweep within a part: a vector of any CPU."""
ROUND = 128
"""Iterations that several parts at once have together, at most. A row times 8192 x 8192 weights of 4 bits, in
parts of 32, took 12.5, 11.0, 10.8, 10.8 ms of a core of Zen 3 with 1, 2, 4, 8 parts at once."""


@dataclass(frozen=True)
class SplitSweepsPass(ModulePass):
    """Make sweeps of which each iteration, or each part, comes from one piece."""

    name = "split-sweeps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            fired, reason = _split_kernel(kernel)
            record(self.name, kernel.sym_name.data, fired, reason, kernel, steps=[self])


def _split_kernel(kernel: KernelOp) -> tuple[bool, str]:
    """Split the sweeps of a kernel; what came of it."""
    done: list[str] = []
    reasons: dict[str, None] = {}
    for sweep in ops_of(kernel, ForOp):
        if not sweep.res:
            continue
        if (reason := _why_not(sweep)) is not None:
            reasons[reason] = None
            continue
        said = _split(sweep)
        done += [said] if said else []
        reasons |= {} if said else {"no number of pieces leaves no condition and no quotient": None}
    return bool(done), "; ".join(done) or "; ".join(reasons) or "nothing is reduced"


def _why_not(sweep: ForOp) -> str | None:
    if not any(_parts(sweep)):
        return "no sweep divides its counter"
    if any(isinstance(op, ForOp) for op in ops_in(sweep.body)):
        return "a sweep has a loop in its body"
    if CHUNK in sweep.attributes or sweep.limit is not None:
        return "a sweep is a chunk already, or has a limit"
    if is_weighted([each.data for each in sweep.combiners]):
        return "a sweep folds weights"
    if not isinstance(sweep.extent.data, int):
        return "the length of a sweep is not known"
    return None


def _parts(sweep: ForOp) -> Iterator[tuple[Operation, int]]:
    """The operations in a sweep that divide what depends on its counter, by which numbers; sizes are 0."""
    for op in ops_in(sweep.body):
        exprs, operands = index_of(op) or ((), [])
        for node in (node for expr in exprs for node in divisions(expr)):
            used = {operands[d] for d in node.lhs.used_dims()}
            if sweep.induction_var in used:
                yield op, node.rhs.value if isinstance(node.rhs, AffineConstantExpr) else 0


def _split(sweep: ForOp) -> str:
    """Split a sweep the way that leaves least to look for; says how, nothing if there is no way."""
    extent, found = sweep.extent.data, list(_parts(sweep))
    assert isinstance(extent, int)
    turns = sorted({part for op, part in found if isinstance(op, TestOp)}, reverse=True)
    for turn in turns:
        for pieces in range(2, MOST_PIECES + 1):
            if turn < 2 or extent % turn or turn % pieces:
                continue
            trial = _jammed(sweep, turn, pieces)
            if not _has_tests(trial):
                _replace(sweep, trial)
                return f"{counted(pieces, 'piece')} in an iteration{_part(trial, MOST_PIECES // pieces)}"
            _drop(trial)
    return "" if turns else _part(sweep, MOST_PIECES).removeprefix(", ")


def _has_tests(sweep: ForOp) -> bool:
    """Whether a condition in a sweep depends on its counter."""
    return any(sweep.induction_var in test.operands_ for test in ops_of(sweep, TestOp))


def _jammed(sweep: ForOp, turn: int, pieces: int) -> ForOp:
    """A sweep whose iterations compute what `pieces` of the old one do, one from each piece of a turn."""
    extent, size = sweep.extent.data, turn // pieces
    assert isinstance(extent, int)
    combiners = [each.data for each in sweep.combiners]
    body = Block(arg_types=[IndexType()])
    types = list(sweep.res.types)
    made = ForOp(extent // pieces, Region(body), combiners=combiners, result_types=types)
    if body.last_op is not None:
        body.last_op.detach()
    made.location = sweep.location
    made.induction_var.name_hint = sweep.induction_var.name_hint
    totals: list[SSAValue] = []
    builder = Builder(InsertPoint.at_end(body))
    counter = AffineExpr.dimension(0)
    for piece in range(pieces):
        place = counter // size * turn + counter % size + piece * size
        yielded = _copy(sweep, body, place)
        if totals:
            pairs = zip(combiners, totals, yielded, strict=True)
            yielded = [combine(builder, c, a, b) for c, a, b in pairs]
        totals = yielded
    body.add_op(YieldOp(*totals))
    assert sweep.parent is not None
    sweep.parent.insert_op_before(made, sweep)
    fold_tests(made)
    return made


def _copy(sweep: ForOp, body: Block, place: AffineExpr) -> list[SSAValue]:
    """Put the body of a sweep at the end of another, at a place of the counter; gives what it yields."""
    known: dict[SSAValue, SSAValue] = {sweep.induction_var: body.args[0]}
    copies = [op.clone(known) for op in sweep.body.block.ops]
    body.add_ops(copies)
    for each in copies:
        for op in ops_in(each):
            rewrite_index(op, {body.args[0]: place}, [body.args[0]])
    # Which may replace an operation, so that only the copy of the end knows what is yielded.
    yielded = list(copies[-1].operands)
    _drop(copies[-1])
    return yielded


def _replace(sweep: ForOp, by: ForOp) -> None:
    for old, new in zip(sweep.res, by.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    _drop(sweep)


def _drop(op: Operation) -> None:
    op.detach()
    op.erase()


def _part(sweep: ForOp, most: int) -> str:
    """Sweep so many parts at once, in which the counter is divided no more; says how, if that can be."""
    extent = sweep.extent.data
    assert isinstance(extent, int)
    for part in sorted({part for _, part in _parts(sweep)}, reverse=True):
        if SHORTEST <= part < extent and extent % part == 0 and _is_whole(sweep, part):
            name = sweep.induction_var.name_hint or "k"
            most = min(most, max(ROUND // part, 1))
            count = next(n for n in range(most, 0, -1) if extent // part % n == 0)
            several = _jammed(sweep, count * part, count)
            _replace(sweep, several)
            if extent > count * part:
                # Each round has a sum of its own, so that none waits for the one before.
                del chunk(several, part, (f"{name}_part", name)).attributes[CHUNK]
            return f", {count} parts of {part} at once" if count > 1 else f", parts of {part}"
    return ""


def _is_whole(sweep: ForOp, part: int) -> bool:
    """Whether all that divides the counter of a sweep divides it by multiples of a part."""
    return all(divisor and divisor % part == 0 for _, divisor in _parts(sweep))
