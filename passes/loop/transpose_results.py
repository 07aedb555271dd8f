"""`transpose-results`: the results of a contraction lie as all that read them go through them.

    %c = loop.kernel @k_c(...) : (...) -> tensor<96x3136xf32> { for %j, for %p { ... store %s, %c[%j, %p] } }
    %m = loop.kernel @k_m(%c) { for %p { ... for %j reduce(add) { ... %c[%j, %p] ... } ... } }
becomes
    %c = loop.kernel @k_c(...) : (...) -> tensor<3136x96xf32> { for %p, for %j { ... store %s, %c[%p, %j] } }
    %m = loop.kernel @k_m(%c) { for %p { ... for %j reduce(add) { ... %c[%p, %j] ... } ... } }

So a norm over the channels of an image that a convolution made reads neighbours. One axis is moved to the
end, that of the innermost loop around each load. What is no contraction would itself store far apart then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...analysis.conditions import linear
from ...analysis.cost import trips
from ...analysis.windows import MOST_STEPS
from ...dialects.inside import ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp
from ...dialects.sizes import shape_of, tensor_of
from ..decisions import record
from ..replacing import replace
from .folded_contractions import is_contraction, reductions_around
from .narrow_results import reader_arguments
from .nests import perfect_nest, permute

LEAST = 16
"""Elements of an axis, at least, for its neighbours to be read as vectors."""


def _innermost_axis(load: LoadOp) -> int | None:
    """The axis that the innermost loop around a load counts along, element by element, if it is one alone."""
    parent: Operation | None = load.parent_op()
    while isinstance(parent, Operation) and not isinstance(parent, KernelOp):
        if isinstance(parent, ForOp) and _is_swept(parent):
            counter = parent.induction_var
            if counter in load.indices:
                exprs = load.map.data.results
                axes = [a for a, expr in enumerate(exprs) if _depends(expr, load, counter)]
                alone = len(axes) == 1 and _steps_by_one(exprs[axes[0]], load, counter)
                return axes[0] if alone else None
        parent = parent.parent_op()
    return None


def _is_swept(loop: ForOp) -> bool:
    """Whether a loop goes through something: a window is unrolled."""
    steps = trips(loop.extent.data)
    return steps > MOST_STEPS if loop.res else steps > 1


def _depends(expr: AffineExpr, load: LoadOp, counter: SSAValue) -> bool:
    return any(load.indices[d] is counter for d in expr.used_dims())


def _steps_by_one(expr: AffineExpr, load: LoadOp, counter: SSAValue) -> bool:
    sum_ = linear(expr)
    if sum_ is None:
        return False
    return sum(c for d, c in sum_.coefficients.items() if load.indices[d] is counter) == 1


def _kernel_of(load: Operation) -> KernelOp:
    parent = load.parent_op()
    while not isinstance(parent, KernelOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent


def _order(kernel: KernelOp, position: int) -> tuple[int, ...] | str:
    """The order that the axes of a result should have, or why it should stay as it is."""
    type = kernel.outputs[position].type
    assert isinstance(type, TensorType)
    shape = shape_of(type)
    if not is_contraction(kernel):
        return "it is no contraction"
    if not all(isinstance(extent, int) for extent in shape):
        return "an axis is dynamic"
    stores = [use.operation for use in kernel.output_args[position].uses]
    places = [e for op in stores if isinstance(op, StoreOp) for e in op.map.data.results]
    if len(stores) > 1 or not all(
        isinstance(e, AffineDimExpr | AffineConstantExpr) for e in places
    ):
        return "it is not stored element by element, in one place"
    arguments = reader_arguments(kernel.outputs[position])
    loads = [use.operation for each in arguments or () for use in each.uses]
    if not loads or not all(isinstance(load, LoadOp) for load in loads):
        return "a result of the program lies as it is"
    if any(reductions_around(load) and is_contraction(_kernel_of(load)) for load in loads):
        return "a contraction sweeps it, which copies what it reads as it needs it"
    axes = {_innermost_axis(load) for load in loads if isinstance(load, LoadOp)}
    long = [axis for axis, extent in enumerate(shape) if trips(extent) > 1]
    if len(axes) != 1 or None in axes:
        return "its readers go through it in different ways"
    (axis,) = axes
    assert axis is not None
    if axis == long[-1] or trips(shape[axis]) < LEAST:
        return "it lies as its readers go through it"
    return (*(a for a in range(len(shape)) if a != axis), axis)


def _transpose(kernel: KernelOp, position: int, order: Sequence[int]) -> None:
    """Give the axes of a result another order, and the loops that store it the same."""
    result, argument = kernel.outputs[position], kernel.output_args[position]
    arguments = reader_arguments(result)
    (store,) = (use.operation for use in argument.uses)
    assert arguments is not None and isinstance(store, StoreOp)
    assert isinstance(result.type, TensorType)
    shape = shape_of(result.type)
    made = tensor_of(result.type.element_type, [shape[axis] for axis in order])
    exprs = [store.map.data.results[axis] for axis in order]
    counters = [store.indices[d] for e in exprs for d in sorted(e.used_dims())]
    for value in (result, argument, *arguments):
        to = made if value is result else KernelOp.buffer_type(made)
        Rewriter.replace_value_with_new_type(value, to)
    replace(store, StoreOp(store.value, store.memref, exprs, list(store.indices)))
    readers = reader_arguments(kernel.outputs[position]) or []
    for load in [use.operation for each in readers for use in each.uses]:
        assert isinstance(load, LoadOp)
        moved = [load.map.data.results[axis] for axis in order]
        replace(load, LoadOp(load.memref, moved, list(load.indices)))
    loops = perfect_nest(kernel)
    old: list[SSAValue] = [loop.induction_var for loop in loops]
    if set(old) == set(counters):
        permute(loops, [old.index(counter) for counter in counters])


@dataclass(frozen=True)
class TransposeResultsPass(ModulePass):
    """Have contractions store their results as the kernels that read them go through them."""

    name = "transpose-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            orders = {_order(kernel, position) for position in range(len(kernel.outputs))}
            reasons = sorted(each for each in orders if isinstance(each, str))
            order = orders.pop() if len(orders) == 1 else "its results would have different orders"
            if isinstance(order, str):
                record(self.name, kernel.sym_name.data, False, "; ".join(reasons) or order, kernel)
                continue
            for position in range(len(kernel.outputs)):
                _transpose(kernel, position, order)
            said = "its results lie as their readers go through them"
            record(self.name, kernel.sym_name.data, True, said, kernel)
