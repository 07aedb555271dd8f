"""`lower-tile-to-scf`: each kernel becomes a CPU function that runs a range of its blocks.

    %y = loop.kernel @k_neg(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32> {
    ^bb0(%xv: memref<2x8xf32>, %out: memref<2x8xf32>):
      tile.launch (%i = 2 : block) {
        loop.for %j = 0 to 8 { ... }
      }
    }

becomes a function, and in `main` a buffer and a launch (see `passes/host.py`):

    func.func @k_neg(%xv: memref<2x8xf32>, %out: memref<2x8xf32>,
                     %block_begin: index, %block_end: index, %status: memref<1xi64>)
        attributes {deplo.kernel} {
      scf.for %i = %block_begin to %block_end step %c1 {
        scf.for %j = %c0 to %c8 step %c1 { ... }
      }
    }

Axes of blocks and of clusters share one counter, row-major; thread axes become loops inside. The arguments
after the buffers are the same for every kernel: the blocks to run, never negative, and a word that
a failed `kernel.assert` writes.

A float reduction is marked `fastmath<reassoc>`: in which order it folds its contributions is fixed when
the kernel is compiled, and is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import FunctionType, IndexType, MemRefType, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import extent_range, simplify
from ...dialects.index import delinearize
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, IndexOp, KernelOp, RegistersOp
from ...dialects.scalars import is_weighted
from ...dialects.schedule import KERNEL_ATTRIBUTE, SCHEDULE_ATTRIBUTE, ScheduleAttr
from ...dialects.tensor_ir_indexed import NthElementOp, ScatterOp, SortOp
from ...dialects.tile import CombineOp, LaunchOp, Level, MmaOp, PrefixOp, StageOp, WgmmaOp
from ...errors import DeploError
from ..decisions import record
from ..host import Device, Whole, Wholes, lower_host
from ..lower_loops import IndexConstants, lower_loops
from .contraction_blocks import ContractionBlock
from .dot_blocks import DotBlock, PlainDotBlock, is_dot
from .nth_element_kernel import nth_element_kernel
from .packed_blocks import PackedBlock, is_packed
from .plain_blocks import PlainBlock
from .scatter_kernel import scatter_kernel
from .softmax_blocks import PlainSoftmaxBlock, SoftmaxBlock
from .sort_kernel import sort_kernel
from .window_copies import lower_windows

INDEX = IndexType()

WHOLES: Wholes = {
    ScatterOp: Whole(scatter_kernel, begins_as_first=True),
    SortOp: Whole(sort_kernel),
    NthElementOp: Whole(nth_element_kernel),
}
"""Operations on tensors that are kernels as they are."""

FOR_GPUS = (MmaOp, PrefixOp, RegistersOp, WgmmaOp)
"""Operations on the registers of threads."""

LATER = ("prefetch", "width", "interleave", "rows", "divide")
"""Choices of a schedule that passes after this one carry out."""


@dataclass(frozen=True)
class LowerTileToScfPass(ModulePass):
    """Needs kernels that are one `tile.launch` each; leaves `scf` functions and a host `main`."""

    name = "lower-tile-to-scf"

    reassociate: bool = True
    """Let LLVM keep several partial results of a reduction, and so vectorise it."""

    vectors: bool = True
    """Whether packed contractions name vector registers; else they are plain loops."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function of the module."""
        lower_host(op, partial(_build, self.reassociate, self.vectors), WHOLES)


def _build(
    reassociate: bool, vectors: bool, kernel: KernelOp, launch: LaunchOp, name: str
) -> Device:
    if kernel.replaced_inputs:
        raise DeploError(
            f"@{name} accumulates in its output, which deplo lowers for GPUs only; split K without "
            "`atomics`"
        )
    rest = _left_of(launch.schedule)
    blocks = launch.num_blocks if launch.num_threads != 0 else 0
    _drop_trivial_combines(launch)
    region = kernel.detach_region(kernel.body)
    entry = region.block
    begin = _append_argument(entry, INDEX, "block_begin")
    end = _append_argument(entry, INDEX, "block_end")
    _append_argument(entry, MemRefType(i64, [1]), "status")
    constants = IndexConstants(entry)
    body = Block(arg_types=[INDEX])
    values = _block_indices(launch, body, constants)
    loop = scf.ForOp(begin, end, constants.get(1), [], body)
    loop.location = launch.location
    entry.insert_op_before(loop, launch)
    entry.add_op(func.ReturnOp())
    if is_packed(launch) or is_dot(launch):
        packed = _block_class(launch, vectors)(launch, entry, constants)
        _replace_counters(launch, values)
        packed.lower(body)
    else:
        lower_windows(launch, loop, constants, vectors=vectors)
        _move_body(launch, _thread_loops(launch, body, values, constants), values)
    launch.detach()
    launch.erase()
    lower_loops(entry, constants, reassociate=reassociate)
    function = func.FuncOp(name, FunctionType.from_lists(list(entry.arg_types), []), region)
    function.attributes[KERNEL_ATTRIBUTE] = UnitAttr()
    if rest is not None:
        function.attributes[SCHEDULE_ATTRIBUTE] = rest
    record(LowerTileToScfPass.name, name, True, f"runs {blocks} blocks as one counted loop", kernel)
    return Device(function, blocks, 1)


def _left_of(schedule: ScheduleAttr | None) -> ScheduleAttr | None:
    """What of a schedule later passes carry out, if anything."""
    found = {} if schedule is None else {name: schedule.get(name) for name in LATER}
    said = {name: value for name, value in found.items() if value is not None}
    return ScheduleAttr(**said) if said else None


def _block_class(launch: LaunchOp, vectors: bool) -> type[ContractionBlock]:
    """What lowers a launch of packed operands."""
    loops = (op for op in launch.body.block.ops if isinstance(op, ForOp))
    if any(is_weighted([each.data for each in loop.combiners]) for loop in loops):
        return SoftmaxBlock if vectors else PlainSoftmaxBlock
    if is_dot(launch):
        return DotBlock if vectors else PlainDotBlock
    return PackedBlock if vectors else PlainBlock


def _append_argument(block: Block, type: IndexType | MemRefType, name: str) -> SSAValue:
    argument = block.insert_arg(type, len(block.args))
    argument.name_hint = name
    return argument


def _drop_trivial_combines(launch: LaunchOp) -> None:
    """Remove combines over axes of one thread; refuse what needs threads that work together."""
    for op in ops_in(launch.body):
        if isinstance(op, StageOp):
            raise DeploError(
                "a scratchpad is not lowered for the CPU yet; schedule the kernel without stages"
            )
        if isinstance(op, FOR_GPUS):
            raise DeploError(
                f"{op.name} is lowered for GPUs only; write the kernel without it, as passes for a CPU do"
            )
        if not isinstance(op, CombineOp):
            continue
        for value in op.axes:
            axis = launch.axis_of(value)
            if axis is not None and axis.extent.data != 1:
                raise DeploError(
                    f"combines across {axis.extent.data} threads; a block has one thread on the "
                    "CPU, so reduce with a loop (`blockify-launch{target=cpu}`)"
                )
        op.result.replace_all_uses_with(op.value)
        op.detach()
        op.erase()


def _block_indices(launch: LaunchOp, body: Block, constants: IndexConstants) -> dict[int, SSAValue]:
    """The value of each axis of blocks, by its position among the axes, from the one counter."""
    positions = [i for i, a in enumerate(launch.axes) if a.level.data is not Level.THREAD]
    extents = [launch.axes.data[i].extent.data for i in positions]
    counter = body.args[0]
    builder = Builder(InsertPoint.at_end(body))
    ranges = [extent_range(launch.num_blocks)]
    values: dict[int, SSAValue] = {}
    for position, expr in zip(
        positions, delinearize(AffineExpr.dimension(0), extents), strict=True
    ):
        hint = launch.body.block.args[position].name_hint
        match simplify(expr, ranges):
            case AffineConstantExpr(value=value):
                values[position] = constants.get(value)
            case AffineDimExpr():
                values[position] = counter
                counter.name_hint = hint
            case simplified:
                values[position] = builder.insert(IndexOp(simplified, [counter])).result
                values[position].name_hint = hint
    if counter.name_hint is None:
        counter.name_hint = "block"
    return values


def _thread_loops(
    launch: LaunchOp, body: Block, values: dict[int, SSAValue], constants: IndexConstants
) -> Block:
    """Nest a loop per thread axis into `body`, note the counters, give the innermost block."""
    for position, axis in enumerate(launch.axes):
        if axis.level.data is not Level.THREAD:
            continue
        if axis.extent.data == 1:
            values[position] = constants.get(0)
            continue
        inner = Block(arg_types=[INDEX])
        inner.args[0].name_hint = launch.body.block.args[position].name_hint
        values[position] = inner.args[0]
        bound = constants.get(axis.extent.data)
        body.add_op(scf.ForOp(constants.get(0), bound, constants.get(1), [], inner))
        body.add_op(scf.YieldOp())
        body = inner
    return body


def _replace_counters(launch: LaunchOp, values: dict[int, SSAValue]) -> None:
    for position, value in values.items():
        launch.body.block.args[position].replace_all_uses_with(value)


def _move_body(launch: LaunchOp, target: Block, values: dict[int, SSAValue]) -> None:
    source = launch.body.block
    _replace_counters(launch, values)
    for op in list(source.ops):
        op.detach()
        target.add_op(op)
    target.add_op(scf.YieldOp())
