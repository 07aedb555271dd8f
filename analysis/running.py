"""Running folds: at each place of an axis, what is folded of the terms at or before it."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.inside import ops_in, ops_of
from ..dialects.loop import ForOp, KernelOp, LoadOp, StoreOp, TestOp
from .conditions import Linear, linear
from .index import bounds, operand_ranges, simplify

FEWEST = 8
"""Places below which each folds alone."""


def is_until(test: TestOp, place: SSAValue, counter: SSAValue) -> bool:
    """Whether a test says `place - counter >= 0`, and else nothing of the place."""
    operands = list(test.operands_)
    if place not in operands or counter not in operands:
        return False
    here = operands.index(place)
    difference = Linear({here: 1, operands.index(counter): -1}, 0)
    said = [expr for expr in test.exprs if here in expr.used_dims()]
    return len(said) == 1 and linear(said[0]) == difference


def has_running_fold(kernel: KernelOp) -> bool:
    """Whether a reduction folds at each place the terms at or before it, all of them at the last place."""
    return any(is_running(op, kernel) for op in ops_in(kernel) if isinstance(op, ForOp) and op.res)


def is_running(loop: ForOp, kernel: KernelOp) -> bool:
    """Whether a reduction of a kernel is a running fold, of terms that the kernel chooses or reads chosen."""
    extent = loop.extent.data
    if not isinstance(extent, int) or extent < FEWEST:
        return False
    for term in loop.yielded:
        choice, counter = term, loop.induction_var
        if isinstance(term.owner, LoadOp):
            choice, counter = _read(term.owner, counter, kernel)
        test = choice.owner.cond.owner if isinstance(choice.owner, scf.IfOp) else None
        if isinstance(test, TestOp) and _ends_at_places(test, counter, extent):
            return True
    return False


def _read(load: LoadOp, counter: SSAValue, kernel: KernelOp) -> tuple[SSAValue, SSAValue]:
    """What another kernel stores where a kernel reads, and what counts there in the place of a counter."""
    nothing = load.result, counter
    if not isinstance(load.memref, BlockArgument) or load.memref not in kernel.input_args:
        return nothing
    producer = kernel.inputs[load.memref.index].owner
    if not isinstance(producer, KernelOp):
        return nothing
    stores = ops_of(producer, StoreOp)
    if len(stores) != 1 or counter not in load.indices:
        return nothing
    along = AffineExpr.dimension(list(load.indices).index(counter))
    for here, there in zip(load.map.data.results, stores[0].map.data.results, strict=True):
        if here == along and (used := there.used_dims()):
            return stores[0].value, stores[0].indices[min(used)]
    return nothing


def _ends_at_places(test: TestOp, counter: SSAValue, extent: int) -> bool:
    """Whether a test says `place - counter >= 0`, for places from 0 to an extent."""
    operands = list(test.operands_)
    if counter not in operands:
        return False
    dim, ranges = operands.index(counter), operand_ranges(operands)
    places = [simplify(expr + AffineExpr.dimension(dim), ranges) for expr in test.exprs]
    return any(dim not in e.used_dims() and bounds(e, ranges) == (0, extent - 1) for e in places)
