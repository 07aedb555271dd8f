"""`distribute-sweeps`: the sweeps over few long rows become kernels of their own, which all processors share.

    %y = loop.kernel @k(%x) {
      tile.launch (%i = 4 : thread) {
        %s = loop.for %k = 0 to 1048576 reduce(add) -> f32 { ... %x[%i, %k] ... }
        %m = arith.divf %s, %n
        loop.for %j = 0 to 1048576 { ... %x[%i, %j] ... %m ... loop.store %v, %y[%i, %j] }
      }
    }
becomes
    %m = loop.kernel @k_sweep1(%x) {
      tile.launch (%i = 4 : thread) {
        %s = loop.for %k = 0 to 1048576 reduce(add) -> f32 { ... %x[%i, %k] ... }
        %m = arith.divf %s, %n
        loop.store %m, %m_rows[%i]
      }
    }
    %y = loop.kernel @k(%x, %m) {
      tile.launch (%i = 4 : thread, %j = 1048576 : thread) {
        %m = loop.load %m_rows[%i]
        ... %x[%i, %j] ... loop.store %v, %y[%i, %j]
      }
    }

A block has a row, so four of them would do the work of the machine. A sweep alone can be split among blocks
(`split-reduce`), and one that stores is a launch over all its elements. Threads of different blocks meet only
where a kernel ends. What later sweeps need of earlier ones goes through memory, a value for each row; what
depends on no sweep is computed again. Rows this long fit no registers: each sweep reads them from memory, be
it one kernel or several.

Declined are what threads cannot share (`cooperative-reduce`), launches with one sweep or a schedule, extents
that are not known, checks of indices, blocks that keep the machine busy, rows too short for so many kernels,
and results that several sweeps store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.launches import open_kernels
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, LoadOp, StoreOp
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...machine.targets import Target, get_gpu
from ..decisions import record
from ..loop.merging import drop_unused_inputs
from ..schedule.partial_threads import sweeps_of
from ..symbol_names import insert_kernel
from .chunk_reduce import block_columns
from .cooperative_reduce import lanes_share_columns, obstacle
from .deepen_launch import spread
from .split_reduce import LEAST
from .tileify import is_scalar

WORTH_KERNELS = 4 * LEAST
"""Elements of a block's share of a sweep below which a kernel for each sweep, and another one to fold its
parts, take longer to start than they save."""

Segment = list[Operation]
"""Operations of a launch that become a kernel: a sweep, and if it reduces, the scalars after it."""


def segments_of(launch: LaunchOp) -> list[Segment]:
    """The operations of a launch by the kernels they go to, in order.

    Scalars are computed with the last sweep before them that reduces, those before all with the first.
    """
    segments: list[Segment] = []
    home: Segment = []
    reduced = False
    for op in launch.body.block.ops:
        if not isinstance(op, ForOp):
            home.append(op)
        elif not op.res:
            segments.append([op])
        else:
            home = [op] if reduced else [*home, op]
            segments.append(home)
            reduced = True
    return segments


def _read(op: Operation) -> Iterator[SSAValue]:
    """What an operation and those in it read of a launch's body."""
    body = op.parent
    for inner in ops_in(op):
        for value in inner.operands:
            if isinstance(value.owner, Operation) and value.owner.parent is body:
                yield value


def _repeatable(segments: Sequence[Segment]) -> set[Operation]:
    """The operations that depend on no sweep, so that each kernel can compute them."""
    found: set[Operation] = set()
    for op in (op for segment in segments for op in segment):
        if is_scalar(op) and all(value.owner in found for value in _read(op)):
            found.add(op)
    return found


def _passed_on(segments: Sequence[Segment]) -> list[list[SSAValue]]:
    """For each segment, its values that others read and cannot compute."""
    home = {op: number for number, segment in enumerate(segments) for op in segment}
    repeatable = _repeatable(segments)
    found: list[dict[SSAValue, None]] = [{} for _ in segments]
    for number, segment in enumerate(segments):
        for value in (value for op in segment for value in _read(op)):
            assert isinstance(value.owner, Operation)
            if home[value.owner] != number and value.owner not in repeatable:
                found[home[value.owner]][value] = None
    return [list(values) for values in found]


def _stored(segment: Segment) -> set[SSAValue]:
    """The arrays that a segment writes."""
    return {op.memref for outer in segment for op in ops_in(outer) if isinstance(op, StoreOp)}


# --------------------------------------------------------------------------- the decision


def decline_reason(launch: LaunchOp, target: Target, least: int) -> str | None:
    """Why the sweeps of a launch stay in one kernel, or None if each is to have its own."""
    reason = obstacle(launch)
    if reason is not None:
        return reason
    if launch.settled is not None:
        return launch.settled
    sweeps = sweeps_of(launch)
    if len(sweeps) == 1:
        return "it has one sweep"
    extents = launch.extents(Level.THREAD)
    loops = [ops_of(sweep, ForOp) for sweep in sweeps]
    inner = [loop.extent.data for nest in loops for loop in nest]
    if not all(isinstance(extent, int) for extent in (*extents, *inner)):
        return "an extent is not known"
    if any(isinstance(op, CheckedIndexOp | AssertOp) for op in ops_in(launch)):
        return "it checks indices from data"
    columns = block_columns(launch, target) if lanes_share_columns(launch) else 1
    points = prod(map(int, extents))  # pyright: ignore[reportArgumentType]
    blocks = -(-points // columns)
    if blocks * 2 > target.processors or not blocks:
        return f"{blocks} blocks keep {target.processors} processors busy"
    longest = max(prod(int(loop.extent.data) for loop in nest) for nest in loops)  # pyright: ignore
    if longest * columns < least:
        return f"{longest * columns} elements of a block are too few for a kernel for each sweep"
    segments = segments_of(launch)
    if any(_stored(a) & _stored(b) for n, a in enumerate(segments) for b in segments[:n]):
        return "several sweeps store parts of a result"
    return None


# --------------------------------------------------------------------------- the kernels


@dataclass
class _Distribution:
    """A kernel that becomes several: what was passed on so far, and the new results."""

    kernel: KernelOp
    launch: LaunchOp
    rows: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """A value of a row -> the tensor that has it for all rows."""
    results: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """An array that the old kernel stored to -> the tensor in its place."""

    @property
    def extents(self) -> list[int]:
        """The extents of the launch."""
        return [e for e in self.launch.extents(Level.THREAD) if isinstance(e, int)]

    def make(self, name: str, segment: Segment, passed_on: Sequence[SSAValue]) -> KernelOp:
        """The kernel of one segment."""
        stored = [a for a in self.kernel.output_args if a in _stored(segment)]
        kept = [self.kernel.outputs[self.kernel.output_args.index(a)].type for a in stored]
        types = [*kept, *(TensorType(value.type, self.extents) for value in passed_on)]
        inputs = [*self.kernel.inputs, *self.rows.values()]
        new, values = _kernel_like(self.kernel, name, inputs, types)
        body = self._body(new, values, segment, stored, passed_on)
        launch = LaunchOp([AxisAttr(e, Level.THREAD) for e in self.extents], Region(body))
        launch.location = self.launch.location
        new.body.block.add_op(launch)
        for old, output in zip([*stored, *passed_on], new.outputs, strict=True):
            output.name_hint = old.name_hint
            (self.results if old in stored else self.rows)[old] = output
        return new

    def _body(
        self,
        new: KernelOp,
        values: dict[SSAValue, SSAValue],
        segment: Segment,
        stored: Sequence[SSAValue],
        passed_on: Sequence[SSAValue],
    ) -> Block:
        """The body of a segment's launch: what it is passed, its operations, what it passes on."""
        body = Block(arg_types=[IndexType()] * len(self.extents))
        for old, counter in zip(self.launch.body.block.args, body.args, strict=True):
            counter.name_hint, values[old] = old.name_hint, counter
        arrays = new.input_args[len(self.kernel.inputs) :]
        builder, place = Builder(InsertPoint.at_end(body)), _identity(len(body.args))
        for value, array in zip(self.rows, arrays, strict=True):
            array.name_hint = f"{value.name_hint or 'value'}_rows"
            load = builder.insert(LoadOp(array, place, list(body.args)))
            load.result.name_hint, values[value] = value.name_hint, load.result
        for old, argument in zip([*stored, *passed_on], new.output_args, strict=True):
            argument.name_hint = old.name_hint
            if old in stored:
                values[old] = argument
        for op in segment:
            for value in _read(op):
                _repeat(value, builder, values)
            builder.insert(op.clone(value_mapper=values))
        for value, argument in zip(passed_on, new.output_args[len(stored) :], strict=True):
            argument.name_hint = f"{value.name_hint or 'value'}_rows"
            builder.insert(StoreOp(values[value], argument, place, list(body.args)))
        return body


def _kernel_like(
    kernel: KernelOp, name: str, inputs: Sequence[SSAValue], outputs: Sequence[Attribute]
) -> tuple[KernelOp, dict[SSAValue, SSAValue]]:
    """A kernel of that name without a body; gives the arguments in the place of its inputs, too."""
    new = KernelOp(name, inputs, outputs)
    new.location = kernel.location
    values: dict[SSAValue, SSAValue] = {}
    for old, argument in zip(kernel.input_args, new.input_args, strict=False):
        argument.name_hint, values[old] = old.name_hint, argument
    return new, values


def _identity(rank: int) -> list[AffineExpr]:
    return [AffineExpr.dimension(i) for i in range(rank)]


def _repeat(value: SSAValue, builder: Builder, values: dict[SSAValue, SSAValue]) -> None:
    """Compute a value that depends on no sweep, unless it is there."""
    owner = value.owner
    if value in values or not isinstance(owner, Operation):
        return
    for operand in owner.operands:
        _repeat(operand, builder, values)
    builder.insert(owner.clone(value_mapper=values))


def distribute(kernel: KernelOp, launch: LaunchOp) -> list[str]:
    """Put a kernel for each sweep of a launch in the place of one; gives their names."""
    block = kernel.parent
    assert block is not None
    segments = segments_of(launch)
    passed_on, work = _passed_on(segments), _Distribution(kernel, launch)
    name = kernel.sym_name.data
    for number, segment in enumerate(segments, 1):
        last = number == len(segments)
        new = work.make(name if last else f"{name}_sweep{number}", segment, passed_on[number - 1])
        if last:
            block.insert_op_before(new, kernel)
        else:
            insert_kernel(new, kernel)
        spread(next(op for op in ops_in(new) if isinstance(op, LaunchOp)))
    made = [op for op in block.ops if isinstance(op, KernelOp)]
    for old, argument in zip(kernel.outputs, kernel.output_args, strict=True):
        work.results[argument].name_hint = old.name_hint
        old.replace_all_uses_with(work.results[argument])
    position = made.index(kernel)
    kernel.detach()
    kernel.erase()
    new_ones = made[position - len(segments) : position]
    for new in new_ones:
        drop_unused_inputs(new)
    return [new.sym_name.data for new in new_ones]


@dataclass(frozen=True)
class DistributeSweepsPass(ModulePass):
    """Make a kernel of each sweep where there are few rows, and they are long.

    A block's share of the longest sweep has `least` elements or more.
    """

    name = "distribute-sweeps"

    target: str = "sm_90a"
    least: int = WORTH_KERNELS
    """Elements of the longest sweep in a block's share, at least."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_gpu(self.target)
        for kernel in open_kernels(op):
            launches = [o for o in kernel.body.ops if isinstance(o, LaunchOp)]
            if len(launches) != 1:
                continue
            (launch,), name = launches, kernel.sym_name.data
            reason, location = decline_reason(launch, target, self.least), launch.location
            if reason is not None:
                record(self.name, name, False, reason, location)
                continue
            made = distribute(kernel, launch)
            told = f"{len(made)} sweeps, a kernel each"
            record(self.name, name, True, told, location, tuple(made))
