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
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..dialects.inside import ops_in
from ..dialects.loop import ForOp, LoadOp, StoreOp, TestOp
from ..dialects.loop_access import may_stop
from ..dialects.tile import LaunchOp
from ..index.affine import replace_dims
from .borders import bordered_load, is_border_test, is_position_test, loads_through_borders
from .conditions import slope
from .index import UNKNOWN, operand_ranges, simplify
from .lines import in_lines, lengths_along, line_length


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
    if sweep.limit is not None:
        return "the sweep ends at a limit of its own"
    if any(isinstance(op, ForOp) or _is_condition(op) for op in ops_in(sweep.body)):
        return "the sweep has loops or conditions of its own"
    if any(map(may_stop, ops_in(launch))):
        return "it checks indices from data"
    read = [axes_of(load, launch) for load in loads_through_borders(sweep.body.block)]
    chosen = _choose_axes([axes for axes in read if axes])
    if chosen is None:
        return "no reduce of operands that depend on different axes"
    m, n = chosen
    if any(axes_of(load, launch) & {m, n} for load in _loads_before(sweep)):
        return "the sweep needs what is loaded before it for each row or column"
    return Contraction(sweep, m, n)


def _is_condition(op: Operation) -> bool:
    """Whether an operation is a condition, and not that of borders of what a block copies or of windows."""
    if isinstance(op, scf.IfOp):
        return bordered_load(op) is None
    return isinstance(op, TestOp) and not (is_border_test(op) or is_position_test(op))


def _loads_before(sweep: ForOp) -> list[LoadOp]:
    """The loads outside a loop that it depends on."""
    inside = {op for op in ops_in(sweep)}
    todo = [value.owner for op in inside for value in op.operands]
    found: dict[Operation, None] = {}
    while todo:
        op = todo.pop()
        if isinstance(op, Operation) and op not in inside and op not in found:
            found[op] = None
            todo += [value.owner for inner in ops_in(op) for value in inner.operands]
    return [inner for op in found for inner in ops_in(op) if isinstance(inner, LoadOp)]


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


def operands_are_boxes(contraction: Contraction, launch: LaunchOp, sizes: Sequence[int]) -> bool:
    """Whether what a block reads of each operand is a box, where M, N and K come in parts of `sizes`."""
    arguments = launch.body.block.args
    counters = (arguments[contraction.m], arguments[contraction.n], contraction.sweep.induction_var)
    local: dict[SSAValue, int] = dict(zip(counters, sizes, strict=True))
    loads = loads_through_borders(contraction.sweep.body.block)
    rows = counters[:2]
    return all(is_box(load, local) for load in loads if any(v in load.indices for v in rows))


def is_box(load: LoadOp, local: dict[SSAValue, int]) -> bool:
    """Whether neighbours along each counter are read a fixed step apart along one axis of the buffer.

    Counters may share an axis, as those of an image and of windows in it do: the box has all that they read.
    `local` has the counters in question, and in parts of what size they come: within a part, positions
    must be that step apart: one element, or two in windows that are two elements apart.
    """
    ranges = operand_ranges(load.indices)
    count = len(load.indices)
    dims = [AffineExpr.dimension(i) for i in range(count)]
    for i, value in enumerate(load.indices):
        if value in local:
            dims[i] = AffineExpr.dimension(count + i) * local[value] + AffineExpr.dimension(i)
    wide = [*ranges, *ranges]
    for i, value in enumerate(load.indices):
        if value in local:
            wide[i] = (0, local[value] - 1)
            wide[count + i] = (0, UNKNOWN[1] // local[value] // 4)
    parted = [simplify(replace_dims(expr, dims), wide) for expr in load.map.data.results]
    sizes = {i: local[value] for i, value in enumerate(load.indices) if value in local}
    counted = in_lines(parted, wide, sizes)
    seen: set[int] = set()
    for expr in counted.exprs:
        used = [d for d in expr.used_dims() if d in counted.sizes]
        if any(d in seen or not _plain_term(expr, d) for d in used):
            return False
        seen.update(used)
    return True


def step_along(load: LoadOp, counter: SSAValue) -> int:
    """How many elements of a box there are for each that is read along a counter: 2 of every second one."""
    dim, ranges = list(load.indices).index(counter), operand_ranges(load.indices)
    exprs = load.map.data.results
    counted = in_lines(exprs, ranges, {dim: line_length(exprs, dim) or 1})
    steps = (slope(e, {d}, counted.ranges) for e in counted.exprs for d in counted.sizes)
    return prod(abs(step) for step in steps if step)


def shared_along(load: LoadOp, counter: SSAValue, position: SSAValue) -> int:
    """How many positions of windows share an element, about: those along the axis that a counter is in."""
    lengths = lengths_along(load, position)
    if not lengths:
        return 1
    (unit, *_), ranges = lengths, operand_ranges(load.indices)
    inside, line = list(load.indices).index(position), len(ranges)
    dims = [AffineExpr.dimension(i) for i in range(line)]
    dims[inside] = AffineExpr.dimension(line) * unit + dims[inside]
    within = [*ranges, (0, UNKNOWN[1] // unit // 4)]
    within[inside] = (0, unit - 1)
    for expr in load.map.data.results:
        used = simplify(replace_dims(expr, dims), within).used_dims()
        if inside in used and counter in {load.indices[d] for d in used if d < line}:
            return unit
    return 1


def _plain_term(expr: AffineExpr, dim: int) -> bool:
    """Whether `expr` is a sum in which a multiple of the dim stands alone, once."""
    match expr:
        case AffineDimExpr(position=position):
            return position == dim
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul,
            lhs=AffineDimExpr(position=position),
            rhs=AffineConstantExpr(value=step),
        ):
            return position == dim and step > 0
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            here = [side for side in (lhs, rhs) if dim in side.used_dims()]
            return len(here) == 1 and _plain_term(here[0], dim)
        case _:
            return False
