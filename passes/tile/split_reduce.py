"""`split-reduce`: a long reduction with few results becomes two kernels, so that all processors take part.

    %y = loop.kernel @k(%x) {
      tile.launch () {
        %s = loop.for %k = 0 to 1048576 reduce(add) -> f32 { ... %x[%k] ... }
        loop.store %s, %y[]
      }
    }
becomes
    %parts = loop.kernel @k_parts(%x) {
      tile.launch (%part = 128 : thread) {
        %s = loop.for %k = 0 to 8192 reduce(add) -> f32 { ... %x[%part * 8192 + %k] ... }
        loop.store %s, %parts[%part]
      }
    }
    %y = loop.kernel @k(%parts) {
      tile.launch () {
        %s = loop.for %k = 0 to 128 reduce(add) -> f32 { ... %parts[%k] ... }
        loop.store %s, %y[]
      }
    }

The parts are folded in a fixed order, so every run gives the same result.

Declined are launches with a schedule, kernels with several sweeps, extents that are not known, reductions
whose iterations need what a check lets through, those that keep the machine busy as they are or are too short
for a second kernel, and those of columns on a CPU, which reads them row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.contraction import find_contraction
from ...dialects.inside import ops_in
from ...dialects.kernel import WARP
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from ...dialects.sizes import extent_expr
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...machine.targets import Target, get_target
from ..decisions import record
from ..loop.dedup_loads import dedup_kernel
from ..symbol_names import insert_kernel
from .chunk_reduce import block_columns
from .cooperative_reduce import lanes_share_columns, reduces_columns
from .masks import mask_contributions
from .rewrite_indices import rewrite_index

INDEX = IndexType()

LEAST = 1 << 15
"""Elements of a block's share below which a second kernel does not pay."""

SHARE = 1 << 13
"""Elements of a part."""

CPU_BLOCKS = 16
"""Blocks for the cores of a CPU, however many there are: the order of a sum is the same everywhere."""

CPU_SHARE = 1 << 16
"""Elements of a part on a CPU: what a core takes longer for than for a second kernel."""


@dataclass(frozen=True)
class _Split:
    """What is split: a sweep of a launch, into so many parts."""

    launch: LaunchOp
    sweep: ForOp
    parts: int

    @property
    def length(self) -> int:
        """Iterations of a part; parts that are not equal begin at sectors of memory."""
        extent = _extent(self.sweep)
        if extent % self.parts == 0:
            return extent // self.parts
        return -(-extent // (self.parts * WARP)) * WARP


def _extent(loop: ForOp) -> int:
    extent = loop.extent.data
    assert isinstance(extent, int)
    return extent


def find_split(launch: LaunchOp, target: Target) -> _Split | str:
    """How a reduction is split into parts, or why it is not."""
    if launch.settled is not None:
        return launch.settled
    sweeps = [op for op in launch.body.block.ops if isinstance(op, ForOp)]
    if len(sweeps) != 1 or not sweeps[0].res:
        return f"it has {len(sweeps)} sweeps, not one" if len(sweeps) != 1 else "no reduce loop"
    (sweep,) = sweeps
    extents = launch.extents(Level.THREAD)
    nest = [op for op in ops_in(sweep) if isinstance(op, ForOp)]
    if not all(isinstance(e, int) for e in (*extents, *(loop.extent.data for loop in nest))):
        return "an extent is not known"
    if any(isinstance(op, CheckedIndexOp | AssertOp) for op in ops_in(launch)):
        return "it checks indices from data"
    if not isinstance(find_contraction(launch), str):
        return "a contraction"
    points, elements = prod(map(int, extents)), prod(_extent(loop) for loop in nest)  # pyright: ignore
    if not points:
        return "it has no result to compute"
    choose = _choose if target.is_gpu else _choose_on_cpu
    return choose(launch, sweep, points, elements, target)


def _choose(
    launch: LaunchOp, sweep: ForOp, points: int, elements: int, target: Target
) -> _Split | str:
    columns = block_columns(launch, target) if lanes_share_columns(launch) else 1
    blocks, share = -(-points // columns), elements * columns
    if share < LEAST:
        return f"{share} elements of a block are too few for a second kernel"
    if blocks * 2 > target.processors:
        return f"{blocks} blocks keep {target.processors} processors busy"
    parts = 1
    while blocks * parts < target.processors and share // (parts * 2) >= SHARE:
        parts *= 2
    return _Split(launch, sweep, min(parts, _extent(sweep)))


def _choose_on_cpu(
    launch: LaunchOp, sweep: ForOp, points: int, elements: int, target: Target
) -> _Split | str:
    if reduces_columns(launch):
        return "a CPU reads columns row by row"
    if points * 2 > CPU_BLOCKS:
        return f"{points} rows keep the cores busy"
    parts = 1
    most = min(elements // CPU_SHARE, _extent(sweep))
    while points * parts < CPU_BLOCKS and parts * 2 <= most:
        parts *= 2
    if parts == 1:
        return f"{elements} elements of a row are too few for a second kernel on a CPU"
    return _Split(launch, sweep, parts)


# --------------------------------------------------------------------------- the two kernels


def kernel_like(
    kernel: KernelOp, name: str, inputs: Sequence[SSAValue], outputs: Sequence[TensorType]
):
    """A kernel with the body of another but its stores; gives the new values of the old ones too."""
    new = KernelOp(name, inputs, outputs)
    new.location = kernel.location
    values: dict[SSAValue, SSAValue] = {}
    for old, argument in zip(kernel.input_args, new.input_args, strict=False):
        argument.name_hint = old.name_hint
        values[old] = argument
    return new, values


def _parts_kernel(kernel: KernelOp, split: _Split) -> KernelOp:
    """The kernel that computes the parts."""
    extents = [split.parts, *(e for e in split.launch.extents(Level.THREAD) if isinstance(e, int))]
    outputs = [TensorType(result.type, extents) for result in split.sweep.res]
    new, values = kernel_like(kernel, f"{kernel.sym_name.data}_parts", list(kernel.inputs), outputs)
    body = Block(arg_types=[INDEX] * len(extents))
    part = body.args[0]
    part.name_hint = "part"
    for old, argument in zip(split.launch.body.block.args, body.args[1:], strict=True):
        argument.name_hint = old.name_hint
        values[old] = argument
    builder = Builder(InsertPoint.at_end(body))
    for op in split.launch.body.block.ops:
        if op is split.sweep:
            break
        if not any(isinstance(inner, StoreOp) for inner in ops_in(op)):
            builder.insert(op.clone(value_mapper=values))
    results = _part(builder, split, part, values)
    counters: list[SSAValue] = list(body.args)
    place = [AffineExpr.dimension(i) for i in range(len(counters))]
    for result, output, argument in zip(results, split.sweep.res, new.output_args, strict=True):
        argument.name_hint = f"{output.name_hint or 'value'}_parts"
        builder.insert(StoreOp(result, argument, place, counters))
    for output, result in zip(new.outputs, split.sweep.res, strict=True):
        output.name_hint = f"{result.name_hint or 'value'}_parts"
    launch = LaunchOp([AxisAttr(e, Level.THREAD) for e in extents], Region(body))
    launch.location = split.launch.location
    new.body.block.add_op(launch)
    return new


def _part(
    builder: Builder, split: _Split, part: SSAValue, values: dict[SSAValue, SSAValue]
) -> Sequence[SSAValue]:
    """Compute one part; gives its results."""
    loop = split.sweep.clone(value_mapper=values)
    builder.insert(loop)
    old = loop.induction_var
    shorter = ForOp(
        split.length,
        loop.detach_region(loop.body),
        combiners=[c.data for c in loop.combiners],
        result_types=list(loop.res.types),
    )
    shorter.location = loop.location
    builder.insert(shorter)
    whole = AffineExpr.dimension(0) * split.length + AffineExpr.dimension(1)
    for op in ops_in(shorter):
        rewrite_index(op, {old: whole}, [part, old])
    if split.length * split.parts != _extent(split.sweep):
        end = whole * -1 + extent_expr(_extent(split.sweep) - 1)
        mask_contributions(shorter, [end], [part, old])
    for mine, theirs in zip(split.sweep.res, shorter.res, strict=True):
        theirs.name_hint = mine.name_hint
    loop.detach()
    loop.erase()
    return list(shorter.res)


def _fold_kernel(kernel: KernelOp, parts: KernelOp, split: _Split) -> KernelOp:
    """The kernel with a sweep over the parts in the place of its own."""
    inputs = [*kernel.inputs, *parts.outputs]
    new, values = kernel_like(kernel, kernel.sym_name.data, inputs, list(kernel.outputs.types))
    arguments = new.input_args[len(kernel.inputs) :]
    for old, argument in zip(kernel.output_args, new.output_args, strict=True):
        argument.name_hint = old.name_hint
        values[old] = argument
    for op in kernel.body.block.ops:
        new.body.block.add_op(op.clone(value_mapper=values))
    launch = next(op for op in ops_in(new) if isinstance(op, LaunchOp))
    sweep = next(op for op in launch.body.ops if isinstance(op, ForOp))
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = "part"
    counters: list[SSAValue] = [body.args[0], *launch.body.block.args]
    place = [AffineExpr.dimension(i) for i in range(len(counters))]
    loads: list[SSAValue] = []
    for argument, result, output in zip(arguments, sweep.res, parts.outputs, strict=True):
        argument.name_hint = output.name_hint
        load = LoadOp(argument, place, counters)
        load.result.name_hint = result.name_hint
        body.add_op(load)
        loads.append(load.result)
    body.add_op(YieldOp(*loads))
    fold = ForOp(
        split.parts,
        Region(body),
        combiners=[c.data for c in sweep.combiners],
        result_types=list(sweep.res.types),
    )
    fold.location = sweep.location
    launch.body.block.insert_op_before(fold, sweep)
    for old, result in zip(sweep.res, fold.res, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    sweep.detach()
    sweep.erase()
    return new


def drop_unused_inputs(kernel: KernelOp) -> KernelOp:
    """A kernel without inputs that it does not read."""
    dedup_kernel(kernel)
    entry = kernel.body.block
    unused = [i for i, argument in enumerate(kernel.input_args) if not argument.uses]
    for position in reversed(unused):
        entry.erase_arg(entry.args[position])
    kernel.operands = [v for i, v in enumerate(kernel.operands) if i not in unused]
    return kernel


def split_reduce(kernel: KernelOp, split: _Split) -> None:
    """Put the two kernels in the place of one."""
    block = kernel.parent
    assert block is not None
    parts = _parts_kernel(kernel, split)
    insert_kernel(parts, kernel)
    fold = _fold_kernel(kernel, parts, split)
    block.insert_op_before(fold, kernel)
    for old, new in zip(kernel.outputs, fold.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    kernel.detach()
    kernel.erase()
    drop_unused_inputs(parts)
    drop_unused_inputs(fold)


@dataclass(frozen=True)
class SplitReducePass(ModulePass):
    """Split long reductions with few results into parts."""

    name = "split-reduce"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        for kernel in [o for o in ops_in(op) if isinstance(o, KernelOp)]:
            launches: list[Operation] = [o for o in kernel.body.ops if isinstance(o, LaunchOp)]
            if len(launches) != 1:
                continue
            (launch,) = launches
            assert isinstance(launch, LaunchOp)
            found = find_split(launch, target)
            name, location = kernel.sym_name.data, launch.location
            if isinstance(found, str):
                record(self.name, name, False, found, location)
                continue
            split_reduce(kernel, found)
            record(
                self.name, name, True, f"{found.parts} parts, folded by a second kernel", location
            )
