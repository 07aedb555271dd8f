"""What `partial` does across blocks: the sweep of a kernel becomes parts, which a second kernel folds.

    %y = loop.kernel @k(%x) {
      tile.launch (%i = 3 : thread) {
        %s = loop.for %k = 0 to 1048576 reduce(add) -> f32 { ... %x[%i, %k] ... }
        EPILOGUE of %s
      }
    }
becomes, in 128 parts,
    %parts = loop.kernel @k_partial(%x) {
      tile.launch (%k_part = 128 : thread, %i = 3 : thread) {
        %s = loop.for %k = 0 to 8192 reduce(add) -> f32 { ... %x[%i, %k_part * 8192 + %k] ... }
        loop.store %s, %parts[%k_part, %i]
      }
    }
    %y = loop.kernel @k_fold(%parts) {
      tile.launch (%i = 3 : thread) {
        %s = loop.for %part = 0 to 128 reduce(add) -> f32 { ... %parts[%part, %i] ... }
        EPILOGUE of %s
      }
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Region
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_in
from ...dialects.loop import (
    INDEX,
    AssertOp,
    CheckedIndexOp,
    ForOp,
    KernelOp,
    LoadOp,
    StoreOp,
    YieldOp,
)
from ...dialects.sizes import Extent, ExtentAttr, Size, extent_expr, tensor_of
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...index.affine import product
from ..loop.merging import add_input, drop_unused_inputs
from ..replacing import replace
from ..symbol_names import insert_kernel
from ..tile.masks import mask_contributions
from ..tile.named_axes import insert_axis, replace_counter

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)

Check = Callable[[LaunchOp, ForOp], str | None]
"""Why a launch with this part of a sweep will not do, or None."""


@dataclass(frozen=True)
class Parts:
    """How a sweep is shared out: `count` parts of `size` positions cover `extent`."""

    count: int
    size: Extent
    extent: Extent

    @property
    def ragged(self) -> bool:
        """Whether the parts cover more than the sweep has."""
        return self.size * self.count != self.extent


def parts_of(extent: Extent, count: int, grain: int = 1) -> Parts:
    """At most `count` parts, multiples of `grain`; no more than have something to do, if that is known."""
    grains = (extent + (grain - 1)) // grain
    each = (grains + (count - 1)) // count
    if not isinstance(grains, Size) and not isinstance(each, Size) and each:
        count = -(-grains // each)
    return Parts(count, each * grain, extent)


def sweep_of(launch: LaunchOp) -> ForOp | str:
    """The one sweep of a launch, which reduces, or why its parts cannot be folded by another kernel."""
    sweeps = [op for op in launch.body.block.ops if isinstance(op, ForOp)]
    if len(sweeps) != 1:
        return f"it has {len(sweeps)} sweeps, not one"
    if not sweeps[0].res:
        return "no reduce loop"
    if sweeps[0].limit is not None:
        return "its sweep ends at a limit of its own"
    if any(isinstance(op, CheckedIndexOp | AssertOp) for op in ops_in(launch)):
        return "it checks indices from data"
    if any(isinstance(op, StoreOp) for op in ops_in(sweeps[0])):
        return "its sweep stores"
    return sweeps[0]


def split_sweep(launch: LaunchOp, parts: Parts, check: Check | None = None) -> str | None:
    """Give a launch an outermost axis of parts, each of which runs a part of the sweep; or why not."""
    sweep = _sweep(launch)
    position = sweep.induction_var
    name = f"{position.name_hint or 'k'}_part"
    part = insert_axis(launch, 0, AxisAttr(parts.count, Level.THREAD), name)
    sweep.extent = ExtentAttr(parts.size)
    whole = product(D0, extent_expr(parts.size)) + D1
    replace_counter(launch, {position: whole}, [part, position])
    if check is not None and (reason := check(launch, sweep)) is not None:
        return reason
    if parts.ragged:
        inside = whole * -1 + extent_expr(parts.extent - 1)
        mask_contributions(sweep, [inside], [part, position])
    return None


def make_partial(kernel: KernelOp, parts: Parts, check: Check | None = None) -> KernelOp | str:
    """The kernel that leaves what each part folds, one tensor for each reduction; or why there is none."""
    partial = kernel.clone()
    launch = _launch(partial)
    sweep = _sweep(launch)
    ops = list(launch.body.block.ops)
    for n, op in reversed([*enumerate(ops)]):
        stores = any(isinstance(inner, StoreOp) for inner in ops_in(op))
        if n > ops.index(sweep) or (stores and op is not sweep):
            op.detach()
            op.erase()
    shape = [parts.count, *(axis.extent.data for axis in launch.axes)]
    if (reason := split_sweep(launch, parts, check)) is not None:
        partial.erase()
        return reason
    outputs = [tensor_of(value.type, shape) for value in sweep.res]
    made = _with_outputs(partial, f"{kernel.sym_name.data}_partial", outputs)
    counters = list(launch.body.block.args)
    dims = [AffineExpr.dimension(i) for i in range(len(counters))]
    for value, output, buffer in zip(sweep.res, made.outputs, made.output_args, strict=True):
        launch.body.block.add_op(StoreOp(value, buffer, dims, counters))
        output.name_hint = buffer.name_hint = f"{value.name_hint or 'value'}_parts"
    drop_unused_inputs(made)
    return made


def make_fold(kernel: KernelOp, partial: KernelOp, parts: Parts) -> KernelOp:
    """The kernel that folds the parts, in order, and does what follows."""
    fold = kernel.clone()
    fold.sym_name = StringAttr(f"{kernel.sym_name.data}_fold")
    for mine, theirs in zip(fold.outputs, kernel.outputs, strict=True):
        mine.name_hint = theirs.name_hint
    launch = _launch(fold)
    sweep = _sweep(launch)
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
    types = list(sweep.res.types)
    replace(sweep, ForOp(parts.count, Region(body), combiners=combiners, result_types=types))
    drop_unused_inputs(fold)
    return fold


def put_in_place(made: Sequence[KernelOp], kernel: KernelOp) -> None:
    """Put kernels, the last of which has its results, in the place of one."""
    for new in made:
        insert_kernel(new, kernel)
    for mine, theirs in zip(kernel.outputs, made[-1].outputs, strict=True):
        mine.replace_all_uses_with(theirs)
    kernel.detach()
    kernel.erase()


def fold_in_parts(kernel: KernelOp, count: int, grain: int) -> list[KernelOp] | str:
    """Put a kernel of parts and one that folds them in the place of one; gives them, or why not."""
    sweep = sweep_of(_launch(kernel))
    if isinstance(sweep, str):
        return sweep
    parts = parts_of(sweep.extent.data, count, grain)
    if parts.count != count:
        return f"{parts.extent} elements are {parts.count} parts of {parts.size}, not {count}"
    partial = make_partial(kernel, parts)
    if isinstance(partial, str):
        return partial
    made = [partial, make_fold(kernel, partial, parts)]
    put_in_place(made, kernel)
    return made


def _launch(kernel: KernelOp) -> LaunchOp:
    return next(op for op in ops_in(kernel) if isinstance(op, LaunchOp))


def _sweep(launch: LaunchOp) -> ForOp:
    return next(op for op in launch.body.block.ops if isinstance(op, ForOp) and op.res)


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
