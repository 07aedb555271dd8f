"""`split-matmul-k`: blocks share the sweep of a contraction whose result is too small to keep them all busy.

    %y = loop.kernel @k(%x, %w, %b) {
      tile.launch (%i = 32 : thread, %j = 512 : thread) schedule(#tile.schedule<..., split_k = 28>) {
        %s = loop.for %k = 0 to 3584 reduce(add) -> f32 { ... %x[%i, %k] ... }
        EPILOGUE of %s, %b
      }
    }
becomes
    %parts = loop.kernel @k_partial(%x, %w) {
      tile.launch (%part = 28 : thread, %i = 32 : thread, %j = 512 : thread) schedule(...) {
        %s = loop.for %k = 0 to 128 reduce(add) -> f32 { ... %x[%i, %part * 128 + %k] ... }
        loop.store %s, %parts[%part, %i, %j]
      }
    }
    %y = loop.kernel @k_fold(%parts, %b) {
      tile.launch (%i = 32 : block, %j_block = 2 : block, %j_thread = 256 : thread) schedule(...) {
        %s = loop.for %part = 0 to 28 reduce(add) -> f32 { ... %parts[%part, %i, ...] ... }
        EPILOGUE of %s, %b
      }
    }

The parts are folded in order, so every run gives the same bits, and any epilogue may follow. The workspace is
a tensor like any other. A part is whole chunks of `block_k`; past the end of K its contributions are masked.

`split-matmul-k{atomics=true}` makes no workspace: the parts are added to the result, which begins as zeros
(`atomic_epilogue.py`). Then the bits may differ from run to run, and an epilogue that is not linear in the
sum is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.contraction import Contraction, operands_are_boxes
from ...analysis.cost import hints_of
from ...analysis.launches import launches_of
from ...dialects.inside import ops_in
from ...dialects.loop import INDEX, ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, ExtentAttr, Size, extent_expr, shape_of, tensor_of
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...index.affine import product
from ...machine.targets import get_gpu
from ..decisions import record
from ..loop.dedup_loads import dedup_kernel
from ..loop.merging import add_input, remove_input
from ..loop.scalar_code import emit_constant
from ..symbol_names import insert_kernel
from .atomic_epilogue import accumulate, refusal
from .axis_splits import split_for_gpu
from .blockify_launch import blockify
from .masks import mask_contributions
from .rewrite_indices import rewrite_index

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)


@dataclass(frozen=True)
class Parts:
    """How K is shared out: `count` parts of `size` positions cover `extent`."""

    count: int
    size: Extent
    extent: Extent

    @property
    def ragged(self) -> bool:
        """Whether the parts cover more than K has."""
        return self.size * self.count != self.extent


def parts_of(extent: Extent, block_k: int, count: int) -> Parts:
    """At most `count` parts of whole chunks; as many as have something to do, if that is known."""
    chunks = (extent + (block_k - 1)) // block_k
    each = (chunks + (count - 1)) // count
    if not isinstance(chunks, Size) and not isinstance(each, Size):
        count = -(-chunks // each)
    return Parts(count, each * block_k, extent)


def _launch_of(kernel: KernelOp) -> LaunchOp:
    return next(op for op in ops_in(kernel) if isinstance(op, LaunchOp))


def _sweep_of(launch: LaunchOp) -> ForOp:
    return next(op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res)


def split_sweep(launch: LaunchOp, parts: Parts) -> str | None:
    """Give a launch an axis of parts, each of which runs a part of the sweep; or why that cannot be."""
    sweep = _sweep_of(launch)
    schedule = launch.schedule
    assert schedule is not None
    launch.axes = ArrayAttr([AxisAttr(parts.count, Level.THREAD), *launch.axes])
    part = launch.body.block.insert_arg(INDEX, 0)
    part.name_hint = f"{sweep.induction_var.name_hint or 'k'}_part"
    sizes = {key: schedule.get(key) or 0 for key in ("m", "n", "block_m", "block_n", "block_k")}
    m, n = sizes["m"] + 1, sizes["n"] + 1
    launch.schedule = schedule.with_choices(m=m, n=n).without("split_k")
    position = sweep.induction_var
    sweep.extent = ExtentAttr(parts.size)
    whole = product(D0, extent_expr(parts.size)) + D1
    for op in ops_in(sweep.body):
        rewrite_index(op, {position: whole}, [part, position])
    blocks = (sizes["block_m"], sizes["block_n"], sizes["block_k"])
    if not operands_are_boxes(Contraction(sweep, m, n), launch, blocks):
        return "a part of an operand is not read position by position"
    if parts.ragged:
        inside = whole * -1 + extent_expr(parts.extent - 1)
        mask_contributions(sweep, [inside], [part, position])
    return None


def make_partial(kernel: KernelOp, parts: Parts) -> KernelOp | str:
    """The kernel that leaves the sum of each part, one tensor for each reduction; or why there is none."""
    partial = kernel.clone()
    launch = _launch_of(partial)
    sweep = _sweep_of(launch)
    _erase_after(sweep)
    shape = [parts.count, *(axis.extent.data for axis in launch.axes)]
    if (reason := split_sweep(launch, parts)) is not None:
        return reason
    outputs = [tensor_of(value.type, shape) for value in sweep.res]
    made = _with_outputs(partial, f"{kernel.sym_name.data}_partial", outputs)
    counters = list(launch.body.block.args)
    dims = [AffineExpr.dimension(i) for i in range(len(counters))]
    for value, output, buffer in zip(sweep.res, made.outputs, made.output_args, strict=True):
        launch.body.block.add_op(StoreOp(value, buffer, dims, counters))
        output.name_hint = buffer.name_hint = f"{value.name_hint or 'value'}_parts"
    _tidy(made)
    return made


def make_fold(kernel: KernelOp, partial: KernelOp, parts: Parts, threads: int) -> KernelOp:
    """The kernel that folds the parts, in order, and does what follows."""
    fold = kernel.clone()
    fold.sym_name = StringAttr(f"{kernel.sym_name.data}_fold")
    for mine, theirs in zip(fold.outputs, kernel.outputs, strict=True):
        mine.name_hint = theirs.name_hint
    launch = _launch_of(fold)
    sweep = _sweep_of(launch)
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = "part"
    dims = [AffineExpr.dimension(i) for i in range(len(launch.axes) + 1)]
    for value in partial.outputs:
        buffer = add_input(fold, value, value.name_hint)
        load = LoadOp(buffer, dims, [body.args[0], *launch.body.block.args])
        load.result.name_hint = "partial"
        body.add_op(load)
    body.add_op(YieldOp(*(op.results[0] for op in body.ops)))
    combiners = [c.data for c in sweep.combiners]
    loop = ForOp(parts.count, Region(body), combiners=combiners, result_types=list(sweep.res.types))
    _replace_loop(sweep, loop)
    _tidy(fold)
    splits = split_for_gpu(launch.extents(Level.THREAD), threads)
    block = prod(split.threads for split in splits)
    blockify(launch, splits, ScheduleAttr(split_k=parts.count, threads=block))
    return fold


def make_zeros(kernel: KernelOp, threads: int) -> list[KernelOp]:
    """Kernels that make tensors of zeros, one for each output."""
    made: list[KernelOp] = []
    for output in kernel.outputs:
        assert isinstance(output.type, TensorType)
        shape = shape_of(output.type)
        zeros = KernelOp(f"{kernel.sym_name.data}_zero", [], [output.type])
        zeros.location = kernel.location
        zeros.outputs[0].name_hint = "zeros"
        body = Block(arg_types=[INDEX] * len(shape))
        builder = Builder(InsertPoint.at_end(body))
        zero = emit_constant(builder, 0, output.type.element_type)
        dims = [AffineExpr.dimension(i) for i in range(len(shape))]
        builder.insert(StoreOp(zero, zeros.output_args[0], dims, list(body.args)))
        launch = LaunchOp([AxisAttr(extent, Level.THREAD) for extent in shape], Region(body))
        launch.location = kernel.location
        zeros.body.block.add_op(launch)
        splits = split_for_gpu(shape, threads)
        block = prod(split.threads for split in splits)
        blockify(launch, splits, ScheduleAttr(threads=block))
        made.append(zeros)
    return made


def make_atomic(kernel: KernelOp, zeros: list[KernelOp], parts: Parts) -> KernelOp | str:
    """The kernel whose blocks add the parts to its outputs, which begin as zeros; or why there is none."""
    atomic = kernel.clone()
    atomic.sym_name = StringAttr(f"{kernel.sym_name.data}_atomic")
    launch = _launch_of(atomic)
    sweep = _sweep_of(launch)
    reason = refusal(sweep) or split_sweep(launch, parts)
    if reason is not None:
        return reason
    tensors: list[SSAValue] = [each.outputs[0] for each in zeros]
    starts: dict[SSAValue, SSAValue] = dict(zip(atomic.output_args, tensors, strict=True))
    accumulate(sweep, launch.body.block.args[0], atomic, starts)
    schedule = launch.schedule
    assert schedule is not None
    launch.schedule = schedule.with_choices(split_k=parts.count)
    for mine, theirs in zip(atomic.outputs, kernel.outputs, strict=True):
        mine.name_hint = theirs.name_hint
    _tidy(atomic)
    return atomic


def _erase_after(op: Operation) -> None:
    """Erase what stands behind an operation, last first."""
    block = op.parent
    assert block is not None and block.last_op is not None
    while block.last_op is not op:
        last = block.last_op
        last.detach()
        last.erase()


def _replace_loop(old: ForOp, new: ForOp) -> None:
    assert old.parent is not None
    new.location = old.location
    old.parent.insert_op_before(new, old)
    for mine, theirs in zip(old.res, new.res, strict=True):
        theirs.name_hint = mine.name_hint
        mine.replace_all_uses_with(theirs)
    old.detach()
    old.erase()


def _with_outputs(kernel: KernelOp, name: str, types: Sequence[Attribute]) -> KernelOp:
    """A kernel of another name, with other outputs; nothing may store to those it has."""
    block = kernel.body.block
    for argument in list(kernel.output_args):
        block.erase_arg(argument)
    for type_ in types:
        block.insert_arg(KernelOp.buffer_type(type_), len(block.args))
    made = KernelOp(name, list(kernel.inputs), types, kernel.detach_region(kernel.body))
    made.location = kernel.location
    kernel.erase()
    return made


def _tidy(kernel: KernelOp) -> None:
    """Drop what nobody reads, inputs included."""
    dedup_kernel(kernel)
    for argument in list(kernel.input_args):
        if not argument.uses:
            remove_input(kernel, argument)


@dataclass(frozen=True)
class SplitMatmulKPass(ModulePass):
    """Split the sweep of each launch whose schedule has a `split_k`.

    With `atomics`, the parts are added to the result in any order, where the epilogue allows that.
    """

    name = "split-matmul-k"

    target: str = "sm_90a"
    atomics: bool = False
    """Add the parts to the result in any order, where the epilogue allows it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with hints_of(op):
            for kernel, launch in launches_of(op):
                self._apply(kernel, launch)

    def _apply(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name = kernel.sym_name.data
        schedule = launch.schedule
        count = None if schedule is None else schedule.get("split_k")
        if schedule is None or count is None:
            record(self.name, name, False, "the schedule splits no K", launch)
            return
        if kernel.replaced_inputs:
            record(self.name, name, False, "K is split already", launch)
            return
        if launch.is_partitioned:
            record(self.name, name, False, "the launch is partitioned already", launch)
            return
        sweep = _sweep_of(launch)
        parts = parts_of(sweep.extent.data, schedule.get("block_k") or 1, count)
        reason = f"K of {parts.extent} is one part" if parts.count == 1 else None
        made = reason or self._make(kernel, parts)
        if isinstance(made, str):
            launch.schedule = schedule.without("split_k")
            record(self.name, name, False, made, launch)
            return
        for new in made:
            insert_kernel(new, kernel)
        for mine, theirs in zip(kernel.outputs, made[-1].outputs, strict=True):
            mine.replace_all_uses_with(theirs)
        kernel.detach()
        kernel.erase()
        reason = f"{parts.count} parts of {parts.size} of K"
        reason += ", added atomically" if self.atomics else ""
        names = tuple(new.sym_name.data for new in made)
        record(self.name, name, True, reason, made[-1], names)

    def _make(self, kernel: KernelOp, parts: Parts) -> list[KernelOp] | str:
        """The kernels in place of one, in order; or why it is not split."""
        threads = get_gpu(self.target).threads
        if self.atomics:
            zeros = make_zeros(kernel, threads)
            atomic = make_atomic(kernel, zeros, parts)
            return atomic if isinstance(atomic, str) else [*zeros, atomic]
        partial = make_partial(kernel, parts)
        if isinstance(partial, str):
            return partial
        return [partial, make_fold(kernel, partial, parts, threads)]
