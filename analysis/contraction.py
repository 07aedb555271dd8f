"""Finds contractions: kernels that fold products of operands over a common axis, however they are written.

    tile.launch (%b = 8 : thread, %i = 512 : thread, %j = 3584 : thread) {
      %s = loop.for %k = 0 to 3584 reduce(add) -> f32 { ... %x[%b, %i, %k] ... %w[%j, %k] ... }

Here `j` is N, the innermost axis that some operand does not depend on; `i` is M, the innermost one that an
operand which does not depend on N does; the others are batch axes. What is found are facts about which axes
each load of the sweep depends on, not the shape of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineDimExpr, AffineExpr

from ..dialects.loop import AssertOp, CheckedIndexOp, ForOp, LoadOp, StoreOp, TestOp, YieldOp
from ..dialects.tile import LaunchOp


@dataclass(frozen=True)
class Contraction:
    """The sweep of a contraction, and the launch axes that are its M and N, by position."""

    sweep: ForOp
    m: int
    n: int


def find_contraction(launch: LaunchOp) -> Contraction | str:
    """The contraction that a launch is, or why it is none whose operands a block can share."""
    sweeps = [op for op in launch.body.block.ops if isinstance(op, ForOp)]
    if not sweeps or not any(sweep.res for sweep in sweeps):
        return "no reduce loop in the body"
    if len(sweeps) > 1:
        return f"{len(sweeps)} sweeps in the body; a contraction has one"
    (sweep,) = sweeps
    if any(isinstance(op, ForOp | scf.IfOp | TestOp) for op in sweep.body.walk()):
        return "the sweep has loops or conditions of its own"
    if any(isinstance(op, CheckedIndexOp | AssertOp) for op in launch.walk()):
        return "it checks indices from data"
    loads = [op for op in sweep.body.ops if isinstance(op, LoadOp)]
    read = [axes_of(load, launch) for load in loads]
    chosen = _choose_axes([axes for axes in read if axes])
    if chosen is None:
        return "no reduce of operands that depend on different axes"
    m, n = chosen
    known: set[SSAValue] = {*launch.body.block.args, sweep.induction_var}
    for load in loads:
        if {m, n} & axes_of(load, launch) and not is_box(load, known):
            return "an operand is not read position by position"
    before = _before(launch, sweep)
    if any(axes_of(op, launch) & {m, n} for op in before):
        return "what is loaded before the sweep depends on its rows or columns"
    return Contraction(sweep, m, n)


def _before(launch: LaunchOp, sweep: ForOp) -> list[LoadOp]:
    loads: list[LoadOp] = []
    for op in launch.body.block.ops:
        if op is sweep:
            break
        loads += [inner for inner in op.walk() if isinstance(inner, LoadOp)]
    return loads


def axes_of(op: LoadOp | StoreOp, launch: LaunchOp) -> frozenset[int]:
    """The axes of the launch that the index of an access depends on."""
    return frozenset(i for i, a in enumerate(launch.body.block.args) if a in op.indices)


def _choose_axes(read: Sequence[frozenset[int]]) -> tuple[int, int] | None:
    """M and N, from the axes that each operand depends on."""
    if len(set(read)) < 2:
        return None
    shared = frozenset.intersection(*read)
    free = frozenset[int]().union(*read) - shared
    n = max(free)
    others = [axes - shared for axes in read if n not in axes]
    if not others or not (rows := frozenset[int]().union(*others)):
        return None
    m = max(rows)
    if any({m, n} <= axes for axes in read):
        return None
    return m, n


def is_box(load: LoadOp, known: set[SSAValue]) -> bool:
    """Whether neighbours along each counter are read at neighbouring positions of one axis of the buffer.

    Then what a block reads is a box. `known` are the counters in question.
    """
    counted: set[int] = set()
    for expr in load.map.data.results:
        dims = [d for d in expr.used_dims() if load.indices[d] in known]
        if any(d in counted for d in dims) or not all(_plain_term(expr, d) for d in dims):
            return False
        counted.update(dims)
    return all(value in known for value in load.indices)


def _plain_term(expr: AffineExpr, dim: int) -> bool:
    """Whether `expr` is a sum in which the dim stands alone, once."""
    match expr:
        case AffineDimExpr(position=position):
            return position == dim
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            here = [side for side in (lhs, rhs) if dim in side.used_dims()]
            return len(here) == 1 and _plain_term(here[0], dim)
        case _:
            return False


def yields_only(sweep: ForOp) -> bool:
    """Whether a loop does nothing but contribute."""
    return not any(isinstance(op, StoreOp) for op in sweep.body.ops if not isinstance(op, YieldOp))
