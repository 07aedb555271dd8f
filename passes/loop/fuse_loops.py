"""`fuse-loops`: a kernel that reads another one's output computes it in place, where that pays.

    %m = loop.kernel @k_m(%x) { for %i { for %j { store exp(x[%i, %j]), m[%i, %j] } } }
    %s = loop.kernel @k_s(%m) { for %i { store (for %j reduce(add) { m[%i, %j] }), s[%i] } }
becomes
    %s = loop.kernel @k_s(%x) { for %i { store (for %j reduce(add) { exp(x[%i, %j]) }), s[%i] } }

A load of the producer's output at some index solves for the producer's counters, because the producer
stores at its identity index. The producer's statements move to the shallowest scope of the consumer that
binds what they depend on, so the row statistics of a norm run once per row. Where no scope binds that and no
more, the consumer's loops are interchanged or split (`interchange.py`), if the merge pays then.

The cost gate: merging saves the round trip of the intermediate through memory, and costs the work that
is then done more than once (`analysis/cost.py`). A producer that does not pay stays a kernel, with the
numbers as the reason; its other readers save no more than what it is larger than its inputs. Merged are
producers of one output whose loops form one chain. A producer that checks indices is merged only where
each of its elements is read, so that no check is lost; reductions that all rows share, and many rows
with reductions that one thread would have to fold, stay in a kernel of their own. So does a contraction
that the consumer would fold: inside of a reduction, no block of its results shares what it reads. So does
what is put together from pieces, where windows overlap in it or pieces take turns along a reduction
(`analysis/patchwork.py`), a reduction that would stand beside a contraction with other sweeps, and a
contraction beside several others, which would have few registers each. What selects the one term of a
reduction that counts is merged at any cost: the others are then not computed (`collapse-reduce`).
On a GPU a running fold is merged into what reads its places one by one, no reduction into it (`scan-rows`).
A sum that several places read is computed once, in its own kernel unless one scope serves them all: each
place would round it in its own order, and a softmax that subtracts one from the other shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass

from ...analysis import patchwork
from ...analysis.cost import (
    WORK_PER_BYTE,
    elements,
    executions,
    hints_of,
    size_bytes,
    trips,
    work,
)
from ...analysis.running import has_running_fold, is_running
from ...dialects.index import ZERO
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp
from ...dialects.scalars import is_bool
from ...dialects.sizes import shape_of
from ...machine.targets import get_target
from ..decisions import record
from .collapse_reduce import EQ, NE, collapse
from .dedup_loads import dedup_kernel
from .folded_contractions import (
    MOST_SUMS,
    comes_under_condition,
    finishes_contraction,
    has_many_sums,
    is_repeated,
    loses_blocks,
    meets_data_indices,
    meets_other_sweeps,
    reductions_around,
)
from .interchange import Undo, bind_first, split_first
from .merging import Chain, checks, merge, shallowest

PASS = "fuse-loops"

MAX_SERIAL_WORK = 1 << 16
"""Work of reductions that may become the work of a single thread, in units of one addition."""

UNSHARED = 8
"""How many times as long the work of a contraction takes, at least, where no block of results shares what it
reads: a product of a 1 by 1 convolution, merged into the windows of a depthwise one, took forty times."""

MAX_REPEATS = 4
"""How often one element may be computed in one kernel. A chain of cheap operations that is merged one by
one into the reduction of a matrix product would pass a gate on each of them, and slow the product."""

_BESIDE = "the threads of a block share a running fold, and no reduction beside it"


@dataclass(frozen=True)
class _Program:
    """The kernels in order, the processors of the target, and what some reader has not merged: it grows."""

    position: dict[KernelOp, int]
    processors: int
    is_gpu: bool
    guard: bool
    """Whether the cost of recomputation declines merges."""
    stored: set[SSAValue] = field(default_factory=set[SSAValue])


# --------------------------------------------------------------------------- the cost gate


def _decline_reason(
    producer: KernelOp, chain: Chain, consumer: KernelOp, argument: SSAValue, stays: bool, guard: bool
) -> str | None:
    """Why the merge does not pay or is not possible, or None.

    A producer that another reader has not merged `stays`: then its inputs are read instead of it.
    """
    loads = [u.operation for u in argument.uses if isinstance(u.operation, LoadOp)]
    result = producer.outputs[0]
    readers = {u.operation for u in result.uses}
    total = work(producer)
    if any(not isinstance(reader, KernelOp) for reader in readers):
        return "its value is a result of the program, or what PyTorch is called with"
    if chain.checks and not any(_reads_all(load) for load in loads):
        return "checks indices from data, and not all of them would be read"
    if any(isinstance(o, ForOp) for o in chain.statements):
        parallel = any(isinstance(o, ForOp) and not o.res for o in consumer.body.block.ops)
        places = [shallowest(load, set(load.indices)) for load in loads]
        if parallel and any(place.parent is consumer.body.block for place in places):
            return "a reduction that all rows share is computed once, in a kernel of its own"
        if not parallel and chain.counters and total > MAX_SERIAL_WORK:
            return f"one thread would do what {_si(total)}FLOP of independent rows do at once"
    if (reason := _puts_together(producer, chain, loads)) is not None:
        return reason
    if guard and (reason := _blowup(producer, chain, consumer, loads, stays=stays)) is not None:
        return reason
    copies = len(_places(loads)) + len(readers) - 1
    if copies > 1 and any(_rounds(o) for o in chain.statements):
        return f"{copies} places would compute its sum, each rounding it in an order of its own"
    return None


def _blowup(
    producer: KernelOp, chain: Chain, consumer: KernelOp, loads: list[LoadOp], *, stays: bool
) -> str | None:
    """Why the merge would cost more work than the traffic that it saves is worth, or None."""
    total, count = work(producer), elements(producer.output_args[0].type)
    per_element = total / max(count, 1)
    places = _places(loads)
    runs = sum(executions(place) for place in places)
    # Each reader pays for itself; the first run of each element replaces the producer's own, if that goes.
    others = len({use.operation for use in producer.outputs[0].uses}) - 1
    total_runs = runs + (1 if stays else others) * count
    extra = per_element * max(total_runs - count, 0)
    saved = _saved(producer, consumer, stays=stays)
    if saved < 0:
        return f"another kernel has it from memory, where it is {_si(-saved)}B less to read"
    repeats = total_runs / max(count, 1)
    if extra > WORK_PER_BYTE * saved or (per_element and runs > MAX_REPEATS * count):
        return (
            f"would recompute {_si(extra)}FLOP, each element {repeats:.4g} times, to save "
            f"{_si(saved)}B of traffic ({extra / max(saved, 1):.1f} per byte, "
            f"{WORK_PER_BYTE:g} pays)"
        )
    if total > max(WORK_PER_BYTE * saved / UNSHARED, MAX_SERIAL_WORK) and any(
        loses_blocks(chain, load) for load in loads
    ):
        return (
            f"its {_si(total)}FLOP would run inside of a reduction, where no block of results shares what "
            f"they read, to save {_si(saved)}B of traffic"
        )
    return _beside(producer, chain, consumer, loads)


def _puts_together(producer: KernelOp, chain: Chain, loads: list[LoadOp]) -> str | None:
    """Why what is put together from pieces is to lie there as a whole."""
    if any(map(patchwork.reads_windows, loads)) and patchwork.is_patchwork(producer):
        return patchwork.REASON
    turns = patchwork.alternating_axes(producer, chain.axis_of)
    if turns and any(turns & _reduced_axes(load) for load in loads):
        runs = sum(executions(place) for place in _places(loads))
        if runs > elements(producer.output_args[0].type):
            return patchwork.ALTERNATE
    return None


def _reduced_axes(load: LoadOp) -> set[int]:
    """The axes along which a reduction around a load walks."""
    counters = {loop.induction_var for loop in reductions_around(load)}
    indices, exprs = load.indices, load.map.data.results
    reduced = [any(indices[d] in counters for d in e.used_dims()) for e in exprs]
    return {axis for axis, walks in enumerate(reduced) if walks}


def _saved(producer: KernelOp, consumer: KernelOp, *, stays: bool) -> int:
    """Bytes of traffic that a merge saves; less than 0 if the producer reads more than it gives."""
    result = producer.outputs[0]
    size = size_bytes(producer.output_args[0].type)
    if not stays:
        return size * (1 + len({use.operation for use in result.uses}))
    read = zip(producer.inputs, producer.input_args, strict=True)
    return size - sum(size_bytes(a.type) for value, a in read if value not in consumer.inputs)


def _beside(
    producer: KernelOp, chain: Chain, consumer: KernelOp, loads: list[LoadOp]
) -> str | None:
    """Why a contraction, or its end, should not be in one kernel with what is there already."""
    serial = work(producer) <= MAX_SERIAL_WORK
    if not serial and any(comes_under_condition(chain, o) for o in loads):
        return "its contraction would stand under a condition, and have no blocks"
    if meets_other_sweeps(chain, consumer) and not (serial and _is_serial(consumer)):
        return (
            "a contraction would stand beside a reduction with other sweeps; a block has one sweep"
        )
    if meets_data_indices(chain, consumer, loads) and not (serial and _is_serial(consumer)):
        return "a contraction would stand beside indices from data, and have no blocks"
    if not serial and has_many_sums(chain, producer, consumer):
        return f"the registers would be shared by more than {MOST_SUMS} sums"
    if finishes_contraction(producer) and is_repeated(_places(loads)):
        return (
            "it is the end of a contraction, which stays, and would be computed again in each sweep"
        )
    return None


def _is_serial(kernel: KernelOp) -> bool:
    """Whether one thread may do what the reductions of a kernel do."""
    return work(kernel) <= MAX_SERIAL_WORK


def _alone(producer: KernelOp, consumer: KernelOp, argument: BlockArgument) -> str | None:
    """Why a running fold, which the threads of a GPU's block share, has no part in a merge."""
    if not has_running_fold(producer):
        reduces = any(isinstance(o, ForOp) and o.res for o in ops_in(producer))
        return _BESIDE if reduces and has_running_fold(consumer) else None
    loads = [u.operation for u in argument.uses if isinstance(u.operation, LoadOp)]
    if any(reductions_around(load) or not _reads_all(load) for load in loads):
        return "a running fold is merged only where each of its places is read by itself"
    reductions = [o for o in ops_in(consumer) if isinstance(o, ForOp) and o.res]
    return None if all(is_running(o, consumer) for o in reductions) else _BESIDE


def _selection(
    producer: KernelOp, consumer: KernelOp, argument: BlockArgument, program: _Program
) -> Chain | None:
    """The producer, if merging it lets `collapse-reduce` put one iteration in the place of a reduction."""
    result = producer.output_args[0].type
    assert isinstance(result, MemRefType)
    compared = ops_of(producer, arith.CmpiOp)
    if not is_bool(result.element_type) or checks(producer):
        return None
    if not any(compare.predicate.value.data in (EQ, NE) for compare in compared):
        return None
    _fuse_into(producer, program)
    chain = Chain.of(producer)
    if isinstance(chain, str) or chain.checks:  # what was merged into it may check, too
        return None
    assert consumer.parent is not None
    trial = consumer.clone()
    consumer.parent.insert_op_after(trial, consumer)
    merge(producer, chain, trial, trial.body.block.args[argument.index])
    sweeps = [o for o in ops_in(trial) if isinstance(o, ForOp) and o.res and o.induction_var.uses]
    found = any(collapse(sweep) is None for sweep in reversed(sweeps))
    trial.detach()
    trial.erase()
    return chain if found else None


def _rounds(op: Operation) -> bool:
    """Whether the order in which a loop folds its contributions changes the result."""
    return (
        isinstance(op, ForOp)
        and any(
            combiner.data in ("add", "mul") and isinstance(result.type, AnyFloat)
            for combiner, result in zip(op.combiners, op.res, strict=True)
        )
        and trips(op.extent.data) > 1
    )


def _reads_all(load: LoadOp) -> bool:
    """Whether a load surely reads each element of its buffer: a loop of its own counts each axis."""
    assert isinstance(load.memref.type, MemRefType)
    extents = shape_of(load.memref.type)
    counters: set[SSAValue] = set()
    for axis, expr in enumerate(load.map.data.results):
        extent = extents[axis]
        if extent == 1 and expr == ZERO:
            continue
        if not isinstance(expr, AffineDimExpr):
            return False
        counter = load.indices[expr.position]
        loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
        if not isinstance(loop, ForOp) or loop.extent.data != extent or counter in counters:
            return False
        counters.add(counter)
    parent = load.parent_op()
    while isinstance(parent, ForOp):
        if parent.induction_var not in counters and parent.never_runs:
            return False
        parent = parent.parent_op()
    return isinstance(parent, KernelOp)


def _places(loads: list[LoadOp]) -> list[Operation]:
    """Where the producer's innermost statements would stand if they replaced `loads`.

    Loads of one element that move to one scope become one, so they count once.
    """
    seen: dict[object, Operation] = {}
    for load in loads:
        place = shallowest(load, set(load.indices))
        seen[(place.parent, load.map, tuple(load.indices))] = place
    return list(seen.values())


def _si(number: float) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.1f} {prefix}"
    return f"{number:.0f} "


def _erase_unused(kernel: KernelOp, *, merged: bool = False) -> None:
    """Erase a kernel whose outputs nobody reads, unless it checks something that no merge checks."""
    if (merged or not checks(kernel)) and not any(result.uses for result in kernel.outputs):
        kernel.detach()
        kernel.erase()


def _changes(chain: Chain, processors: int) -> list[Callable[[KernelOp, SSAValue], Undo | None]]:
    """What may be done to a consumer's nest so that a merge pays."""
    reduces = any(isinstance(o, ForOp) for o in chain.statements)
    return [*[bind_first] * reduces, partial(split_first, processors=processors)]


def _fuse_into(consumer: KernelOp, program: _Program) -> None:
    """Merge every producer of `consumer` that pays, and theirs in turn, the latest one first.

    By the time a producer is judged, the kernels between it and the consumer are merged or stay.
    """
    stored = program.stored
    dedup_kernel(consumer)
    declined: set[SSAValue] = set()
    while True:
        candidates = [
            (program.position[value.owner], argument, value, value.owner)
            for argument, value in zip(consumer.input_args, consumer.inputs, strict=True)
            if isinstance(value.owner, KernelOp) and value not in declined
        ]
        if not candidates:
            return
        _, argument, value, producer = max(candidates, key=lambda c: c[0])
        name, into = producer.sym_name.data, consumer.sym_name.data
        chain = (program.is_gpu and _alone(producer, consumer, argument)) or Chain.of(producer)
        reason = chain if isinstance(chain, str) else None
        if not isinstance(chain, str):
            judged = producer, chain, consumer, argument, value in stored, program.guard
            judge = partial(_decline_reason, *judged)
            reason = judge()
            for change in [] if reason is None else _changes(chain, program.processors):
                undo = change(consumer, argument)
                if undo is None:
                    continue
                if judge() is None:
                    reason = None
                    break
                undo()
            if reason is not None and (
                selection := _selection(producer, consumer, argument, program)
            ):
                chain, reason = selection, None
            if reason is None:
                merge(producer, chain, consumer, argument)
                _erase_unused(producer, merged=True)
                record(PASS, name, True, f"merged into {into}", consumer, (into,))
                continue
        declined.add(value)
        stored.add(value)
        record(PASS, name, False, f"not merged into {into}: {reason}", consumer, (into,))


@dataclass(frozen=True)
class FuseLoopsPass(ModulePass):
    """Merge producers into consumers where the cost model says that it pays, last consumers first."""

    name = PASS

    target: str = "sm_90a"
    fusion_guard: bool = True
    """Decline merges that recompute more than the traffic that they save is worth."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = ops_of(op, KernelOp)
        position = {kernel: i for i, kernel in enumerate(kernels)}
        target = get_target(self.target)
        program = _Program(position, target.processors, target.is_gpu, self.fusion_guard)
        with hints_of(op):
            for kernel in reversed(kernels):
                if kernel.parent is not None:
                    _erase_unused(kernel)
                if kernel.parent is not None:
                    _fuse_into(kernel, program)
