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

from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.contraction import Contraction, operands_are_boxes
from ...dialects.inside import ops_in
from ...dialects.loop import INDEX, ForOp, KernelOp, StoreOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import shape_of
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ..decisions import record
from ..loop.merging import drop_unused_inputs
from ..loop.scalar_code import emit_constant
from ..schedule.partial import PartialPass
from ..schedule.partial_blocks import (
    Parts,
    make_fold,
    make_partial,
    parts_of,
    put_in_place,
    split_sweep,
)
from ..schedule.primitive import Primitive
from .atomic_epilogue import accumulate, refusal
from .axis_splits import split_for_gpu
from .blockify_launch import blockify
from .recipe import GpuRecipe


def share_out(launch: LaunchOp, threads: int, **choices: int) -> list[Primitive]:
    """Give each thread of a launch an element, so many threads to a block; gives the steps."""
    splits = split_for_gpu(launch.extents(Level.THREAD), threads)
    block = prod(split.threads for split in splits)
    return blockify(launch, splits, ScheduleAttr(**choices, threads=block))


def _launch_of(kernel: KernelOp) -> LaunchOp:
    return next(op for op in ops_in(kernel) if isinstance(op, LaunchOp))


def _obstacle(kernel: KernelOp, launch: LaunchOp, schedule: ScheduleAttr) -> str | None:
    """Why the sweep of a launch cannot be split, whatever it reads, or None."""
    if kernel.replaced_inputs:
        return "K is split already"
    if launch.is_partitioned:
        return "the launch is partitioned already"
    if not (sweeps := _sweeps_of(launch)):
        return "no loop of the launch reduces"
    if sweeps[0].limit is not None:
        return "its sweep ends at a limit of its own"
    return schedule.lacks("m", "n", "block_m", "block_n", "block_k")


def _sweeps_of(launch: LaunchOp) -> list[ForOp]:
    return [op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res]


def _check(launch: LaunchOp, sweep: ForOp) -> str | None:
    """Number the axes of a launch behind that of parts; why its operands are no boxes any more, or None."""
    schedule = launch.schedule
    assert schedule is not None
    m, n = schedule.number("m") + 1, schedule.number("n") + 1
    launch.schedule = schedule.with_choices(m=m, n=n).without("split_k")
    blocks = (schedule.number("block_m"), schedule.number("block_n"), schedule.number("block_k"))
    if operands_are_boxes(Contraction(sweep, m, n), launch, blocks):
        return None
    return "a part of an operand is not read position by position"


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
        share_out(launch, threads)
        made.append(zeros)
    return made


def make_atomic(kernel: KernelOp, zeros: list[KernelOp], parts: Parts) -> KernelOp | str:
    """The kernel whose blocks add the parts to its outputs, which begin as zeros; or why there is none."""
    atomic = kernel.clone()
    atomic.sym_name = StringAttr(f"{kernel.sym_name.data}_atomic")
    launch = _launch_of(atomic)
    sweep = _sweeps_of(launch)[0]
    reason = refusal(sweep) or split_sweep(launch, parts, _check)
    if reason is not None:
        atomic.erase()
        return reason
    tensors: list[SSAValue] = [each.outputs[0] for each in zeros]
    starts: dict[SSAValue, SSAValue] = dict(zip(atomic.output_args, tensors, strict=True))
    accumulate(sweep, launch.body.block.args[0], atomic, starts)
    schedule = launch.schedule
    assert schedule is not None
    launch.schedule = schedule.with_choices(split_k=parts.count)
    for mine, theirs in zip(atomic.outputs, kernel.outputs, strict=True):
        mine.name_hint = theirs.name_hint
    drop_unused_inputs(atomic)
    return atomic


@dataclass(frozen=True)
class SplitMatmulKPass(GpuRecipe):
    """Split the sweep of each launch whose schedule has a `split_k`.

    With `atomics`, the parts are added to the result in any order, where the epilogue allows that.
    """

    name = "split-matmul-k"

    atomics: bool = False
    """Add the parts to the result in any order, where the epilogue allows it."""

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name = kernel.sym_name.data
        schedule = launch.schedule
        count = None if schedule is None else schedule.get("split_k")
        if schedule is None or count is None:
            record(self.name, name, False, "the schedule splits no K", launch)
            return
        if (reason := _obstacle(kernel, launch, schedule)) is not None:
            record(self.name, name, False, reason, launch)
            return
        sweep = _sweeps_of(launch)[0]
        parts = parts_of(sweep.extent.data, count, schedule.get("block_k") or 1)
        threads = self.machine.threads
        made: list[KernelOp] | str = f"K of {parts.extent} is one part"
        if parts.count > 1:
            made = self._make(kernel, parts, threads)
        if isinstance(made, str):
            launch.schedule = schedule.without("split_k")
            record(self.name, name, False, made, launch)
            return
        put_in_place(made, kernel)
        reason = f"{parts.count} parts of {parts.size} of K"
        names = tuple(new.sym_name.data for new in made)
        if self.atomics:
            record(self.name, name, True, f"{reason}, added atomically", made[-1], names)
            return
        grain = schedule.get("block_k") or 1
        step = PartialPass(across="block", parts=parts.count, grain=grain)
        record(self.name, name, True, reason, made[-1], names, [step])
        steps = share_out(_launch_of(made[-1]), threads, split_k=parts.count)
        told = f"{threads} threads of a block fold an element each"
        record(self.name, names[-1], True, told, made[-1], steps=steps)

    def _make(self, kernel: KernelOp, parts: Parts, threads: int) -> list[KernelOp] | str:
        """The kernels in place of one, in order; or why it is not split."""
        if self.atomics:
            zeros = make_zeros(kernel, threads)
            atomic = make_atomic(kernel, zeros, parts)
            return atomic if isinstance(atomic, str) else [*zeros, atomic]
        partial = make_partial(kernel, parts, _check)
        if isinstance(partial, str):
            return partial
        return [partial, make_fold(kernel, partial, parts)]
