"""`transpose-weights`: the weights of windows over images with channels last lie as the channels do.

    %y = loop.kernel @k_y(%x, %w) : (tensor<54x54x32xf32>, tensor<32x3xf32>) -> tensor<54x52x32xf32> {
      for %h, for %p, for %c { ... for %n reduce(add) { ... %x[%h, %p + %n, %c] * %w[%c, %n] ... } }
    }
becomes
    %w_1 = loop.kernel @k_w(%w) : (tensor<32x3xf32>) -> tensor<3x32xf32> { for %n, for %c { ... } }
    %y = loop.kernel @k_y(%x, %w_1) : (...) -> tensor<54x52x32xf32> {
      for %h, for %p, for %c { ... for %n reduce(add) { ... %x[%h, %p + %n, %c] * %w_1[%n, %c] ... } }
    }

So neighbouring channels are vectors (`strip-channels`). What is only made wider is copied as it is then.

The weights of a contraction over windows are copied, too, where they do not lie as they are summed over,
such as those that the gradient of a convolution's input is computed with, `%w[%n, %c, 2 - %k]`. Each block
then reads its rows where they lie (`schedule-cpu`), and does not turn them again.
Declined are GPUs, whose threads read what lies apart from their caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.cost import trips
from ...analysis.launches import open_kernels
from ...analysis.products import goes_straight
from ...analysis.windows import MOST_STEPS, stride_along
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp
from ...dialects.sizes import Extent, static_extent, tensor_of
from ...index.affine import replace_dims
from ..decisions import record
from ..replacing import replace
from ..symbol_names import insert_kernel
from .folded_contractions import is_contraction, reductions_around
from .lift_to_loops import Nest
from .nests import perfect_nest

LEAST = 8
"""Channels, at least, for them to be vectors."""

MANY = 256
"""Results that read each weight of a contraction, at least."""

REUSE = 16
"""Results that read each weight, at least, for a copy to be worth it."""


def _find(kernel: KernelOp) -> list[LoadOp] | str:
    """The loads of a kernel's weights, or why they stay as they are."""
    loops = perfect_nest(kernel)
    windows = [op for op in ops_in(kernel) if isinstance(op, ForOp) and op not in loops]
    if not windows or not all(op.res and trips(op.extent.data) <= MOST_STEPS for op in windows):
        return "it has no windows"
    if not loops:
        return "it has no windows"
    *outer, last = loops
    channel, channels = last.induction_var, last.extent.data
    if not isinstance(channels, int) or channels < LEAST:
        return "its last axis has no strips"
    weights: list[LoadOp] = []
    inner: set[SSAValue] = {channel, *(op.induction_var for op in windows)}
    for load in [op for op in ops_in(kernel) if isinstance(op, LoadOp) and channel in op.indices]:
        if stride_along(load, channel) == 1:
            continue
        alone = load.memref.has_one_use() and isinstance(load.parent_op(), ForOp)
        if not alone or not reductions_around(load) or not inner.issuperset(load.indices):
            return "channels do not come last in all that its windows read"
        weights.append(load)
    if prod(trips(loop.extent.data) for loop in outer) < REUSE:
        return "each weight is read a few times"
    return weights or "channels come last in all that it reads"


def _find_rows(kernel: KernelOp) -> tuple[LoadOp, list[SSAValue]] | str:
    """The load of a contraction's weights and the order they are to lie in, or why they stay as they are.

    Its counters are that of a row, and then those that are summed over.
    """
    loops = perfect_nest(kernel)
    sweeps = [op for op in ops_in(kernel) if isinstance(op, ForOp) and op not in loops]
    if len(sweeps) < 2 or trips(sweeps[-1].extent.data) > MOST_STEPS:
        return "it is a contraction"
    inner = [op.induction_var for op in sweeps]
    for load in ops_of(kernel, LoadOp):
        row = [loop for loop in loops if loop.induction_var in load.indices]
        alone = load.memref.has_one_use() and load.parent_op() is sweeps[-1]
        if len(row) != 1 or not alone or not {*inner}.issubset(load.indices):
            continue
        if not stands_alone(load, row[0].induction_var):
            continue
        if trips(row[0].extent.data) < LEAST:
            return "its rows are few"
        counters: list[SSAValue] = [row[0].induction_var, *inner]
        if goes_straight(load, sweeps):
            return "its weights lie as they are summed over"
        if not all(isinstance(op.extent.data, int) for op in (*row, *sweeps)):
            return "the number of its weights is dynamic"
        if prod(trips(loop.extent.data) for loop in loops if loop not in row) < MANY:
            return "each weight is read a few times"
        return load, counters
    return "it is a contraction"


def stands_alone(load: LoadOp, counter: SSAValue) -> bool:
    """Whether a counter is in no index with another one, as those of an image's windows are."""
    used = [{load.indices[d] for d in expr.used_dims()} for expr in load.map.data.results]
    return all(each == {counter} for each in used if counter in each)


def _widening(load: LoadOp) -> arith.ExtFOp | None:
    """What makes a weight wider, if that is all that is done with it."""
    match [use.operation for use in load.result.uses]:
        case [arith.ExtFOp() as widening]:
            return widening
        case _:
            return None


def turn_weights(
    kernel: KernelOp,
    load: LoadOp,
    counters: Sequence[SSAValue],
    order: str,
    widening: arith.ExtFOp | None = None,
    neighbours: int = 1,
) -> KernelOp:
    """Copy what a load reads in front of a kernel, in the order of some counters, and load that.

    The last `neighbours` of the counters go along one axis. Gives the kernel that copies.
    """
    source = load.memref
    assert isinstance(source, BlockArgument)
    position = source.index
    extents = [loop_of(counter).extent.data for counter in counters]
    read = load if widening is None else widening
    name = source.name_hint or "weights"
    dims = [AffineExpr.dimension(d) for d in range(len(counters))]
    places, lying = _lying_together(dims, extents, neighbours)
    type = tensor_of(read.results[0].type, lying)
    copy = KernelOp(f"k_{name}", [kernel.inputs[position]], [type])
    copy.location = load.location
    argument, result = copy.body.block.args
    argument.name_hint, result.name_hint = name, f"{name}_by_{order}"
    copy.outputs[0].name_hint = result.name_hint
    nest = Nest(Builder(InsertPoint.at_end(copy.body.block)), [], {})
    index = [nest.open_free(n, c.name_hint or "i") for n, c in zip(extents, counters, strict=True)]
    read_at = [index[counters.index(counter)] for counter in load.indices]
    exprs = [replace_dims(expr, read_at) for expr in load.map.data.results]
    value = nest.builder.insert(LoadOp(argument, exprs, nest.counters)).result
    if widening is not None:
        value = nest.builder.insert(arith.ExtFOp(value, widening.result.type)).result
    stored_at = [replace_dims(expr, index) for expr in places]
    nest.builder.insert(StoreOp(value, result, stored_at, nest.counters))
    insert_kernel(copy, kernel)
    kernel.operands[position] = copy.outputs[0]
    to = Rewriter.replace_value_with_new_type(source, KernelOp.buffer_type(type))
    replace(read, LoadOp(to, places, list(counters)))
    if widening is not None:
        Rewriter.erase_op(load)
    return copy


def _lying_together(
    dims: Sequence[AffineExpr], extents: Sequence[Extent], count: int
) -> tuple[list[AffineExpr], list[Extent]]:
    """The index along each axis, and its extent, where the last `count` of some dims go along one."""
    place, extent = dims[-count], extents[-count]
    for dim, size in zip(
        dims[len(dims) - count + 1 :], extents[len(dims) - count + 1 :], strict=True
    ):
        place, extent = place * static_extent(size) + dim, extent * static_extent(size)
    return [*dims[:-count], place], [*extents[:-count], extent]


def _apply(kernel: KernelOp) -> tuple[list[KernelOp], str]:
    """Turn the weights of a kernel: the copies of them, and what they lie as then or why there are none."""
    if perfect_nest(kernel) and is_contraction(kernel):
        rows = _find_rows(kernel)
        if isinstance(rows, str):
            return [], rows
        return [turn_weights(kernel, *rows, "row")], "its weights lie as its sums do"
    found = _find(kernel)
    if isinstance(found, str):
        return [], found
    copies: list[KernelOp] = []
    channel = perfect_nest(kernel)[-1].induction_var
    for load in found:
        counters = [*dict.fromkeys(v for v in load.indices if v is not channel), channel]
        copies.append(turn_weights(kernel, load, counters, "channel", _widening(load)))
    return copies, "its weights lie as its channels do"


def loop_of(counter: SSAValue) -> ForOp:
    """The loop that a counter belongs to."""
    owner = counter.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    assert isinstance(loop, ForOp)
    return loop


@dataclass(frozen=True)
class TransposeWeightsPass(ModulePass):
    """Copy the weights of windows with the channels last, where all else has these last."""

    name = "transpose-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            copies, said = _apply(kernel)
            names = tuple(copy.sym_name.data for copy in copies)
            steps = [self] if copies else None
            record(self.name, kernel.sym_name.data, bool(copies), said, kernel, names, steps)
