"""`join-kernels`: kernels that go through the same loops and the same data become one with all their outputs.

    %y = loop.kernel @k_y(%x) { for %i { %e = exp(x[%i]); store %e, y[%i] } }
    %z = loop.kernel @k_z(%y) { for %i { store y[%i] * 2, z[%i] } }             // %y is a result, too
becomes
    %y, %z = loop.kernel @k_y(%x) { for %i { %e = exp(x[%i]); store %e, y[%i]; store %e * 2, z[%i] } }

`fuse-loops` moves what one reader needs into it. What has to lie in memory all the same, because a gradient
needs it or others read it, is joined here. A kernel that reads it in the iterations that store it does not
load it again, and kernels that read the same inputs in the same loops load them once. Such are the mean,
deviation and normalized values that a norm saves, an activation and what it is computed from, and the sums of
a gradient, whose reductions `share-sweeps` joins. A loop whose places the other kernel counts in groups is
split for that.

Contractions, whose blocks have registers and packed operands of their own, are joined only with what goes on
with each of their results. What checks indices stays apart. Outputs that nobody reads any more go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of, size_bytes, trips
from ...analysis.index import operand_ranges, simplify
from ...analysis.sizes import symbols_used
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AccumulateOp, ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from ...dialects.sizes import Extent
from ...index.affine import replace_dims
from ...machine.targets import get_target
from ..decisions import record
from ..replacing import rename
from .coalesce_axes import coalesce
from .dedup_loads import dedup_kernel
from .folded_contractions import MOST_SUMS, is_contraction, sums_in
from .interchange import split
from .merging import checks
from .nests import perfect_nest

PASS = "join-kernels"

MOST_OUTPUTS = 6
"""Outputs of a kernel: each has an address to keep track of."""

ROWS = 8
"""Iterations of shared loops that keep all cores busy, if what stands in them is not shared out further."""


def nest(kernel: KernelOp) -> list[ForOp]:
    """The free loops around each other, outermost first, with statements in front of the next one or not."""
    loops: list[ForOp] = []
    block = kernel.body.block
    while True:
        free = [o for o in block.ops if isinstance(o, ForOp) and not o.res]
        if len(free) != 1:
            return loops
        loops.append(free[0])
        block = free[0].body.block


# --------------------------------------------------------------------------- where accesses meet

Element = tuple[tuple[Extent, ...], tuple[AffineExpr, ...]]
"""Extents of the loops around an access, and its index over their counters."""


def _element(access: LoadOp | StoreOp, depth: int | None = None) -> Element | None:
    """What is accessed, by the first `depth` loops around; None if other values have a say in it."""
    loops: list[ForOp] = []
    parent = access.parent_op()
    while not isinstance(parent, KernelOp):
        if isinstance(parent, ForOp):
            loops.insert(0, parent)
        assert parent is not None
        parent = parent.parent_op()
    counters: list[SSAValue] = [loop.induction_var for loop in loops[:depth]]
    if any(value not in counters for value in access.indices):
        return None
    dims = [AffineExpr.dimension(counters.index(value)) for value in access.indices]
    ranges = operand_ranges(counters)
    index = tuple(simplify(replace_dims(e, dims), ranges) for e in access.map.data.results)
    return tuple(loop.extent.data for loop in loops[:depth]), index


def reader_depth(first: KernelOp, second: KernelOp) -> int | str:
    """How many loops two kernels have in common, where one reads what the other stores; or why none."""
    blocks = [loop.body.block for loop in nest(first)]
    depth = 0
    for argument, value in zip(second.input_args, second.inputs, strict=True):
        if not isinstance(value, OpResult) or value.owner is not first:
            continue
        store, *others = (use.operation for use in first.output_args[value.index].uses)
        block = store.parent
        if others or not isinstance(store, StoreOp) or block is None or block not in blocks:
            return "what it reads is stored in several places, or under a condition"
        here = blocks.index(block) + 1
        stored = _element(store)
        for load in (use.operation for use in argument.uses):
            assert isinstance(load, LoadOp)
            if stored is None or _element(load, here) != stored:
                return "reads other elements than those that its iteration stores"
        depth = max(depth, here)
    theirs, mine = (
        [loop.extent.data for loop in loops[:depth]]
        for loops in (nest(first), perfect_nest(second))
    )
    return depth if mine == theirs else "has loops of its own"


def are_alike(first: KernelOp, second: KernelOp) -> bool:
    """Whether two kernels have the same loops, and one reads mostly what the other reads.

    Reductions are sums: a search for an extremum has code of its own (`narrow-searches`).
    """
    loops = perfect_nest(first)
    alone = loops == nest(first) and perfect_nest(second) == nest(second)
    if not loops or not alone or _extents(first) != _extents(second):
        return False
    if _walks(first) != _walks(second) or not all(map(_only_adds, (first, second))):
        return False
    shared = sum(size_bytes(argument.type) for argument in _read_alike(first, second))
    read = min(sum(size_bytes(a.type) for a in kernel.input_args) for kernel in (first, second))
    return 2 * shared >= read


def _extents(kernel: KernelOp) -> tuple[list[object], set[object]]:
    """The extents of the free loops of a kernel, and those of its reductions."""
    free: list[object] = [loop.extent.data for loop in perfect_nest(kernel)]
    folds = [o for o in ops_in(kernel) if isinstance(o, ForOp) and o.res]
    return free, {(len(list(_around(fold))), fold.extent.data) for fold in folds}


def _only_adds(kernel: KernelOp) -> bool:
    folds = (o for o in ops_in(kernel) if isinstance(o, ForOp))
    return all(combiner.data == "add" for fold in folds for combiner in fold.combiners)


def _around(op: Operation) -> Iterator[ForOp]:
    parent = op.parent_op()
    while isinstance(parent, ForOp):
        yield parent
        parent = parent.parent_op()


def _walks(kernel: KernelOp) -> set[bool]:
    """Whether the last loop walks along the last axis of what is stored."""
    counter = perfect_nest(kernel)[-1].induction_var
    stores = ops_of(kernel, StoreOp)
    return {
        any(store.indices[d] is counter for d in store.map.data.results[-1].used_dims())
        for store in stores
    }


def _read_alike(first: KernelOp, second: KernelOp) -> Iterator[SSAValue]:
    """The inputs of `second` of which both read an element in an iteration."""
    of_value = dict(zip(first.inputs, first.input_args, strict=True))
    for argument, value in zip(second.input_args, second.inputs, strict=True):
        if value in of_value:
            theirs, mine = (
                {_element(u.operation) for u in each.uses if isinstance(u.operation, LoadOp)}
                for each in (of_value[value], argument)
            )
            if (theirs & mine) - {None}:
                yield argument


# --------------------------------------------------------------------------- joining


def join(first: KernelOp, second: KernelOp, depth: int) -> KernelOp:
    """One kernel: the statements of `second` stand at the end of so many loops of `first`."""
    inputs = [*first.inputs, *(value for value in second.inputs if value.owner is not first)]
    inputs = list(dict.fromkeys(inputs))
    joined = KernelOp(first.sym_name.data, inputs, [*first.outputs.types, *second.outputs.types])
    joined.location = first.location
    count = len(first.outputs)
    places = dict(zip((*inputs, *first.outputs), joined.body.block.args, strict=False))
    values: dict[SSAValue, SSAValue] = {}
    outputs_of = (first, joined.output_args[:count]), (second, joined.output_args[count:])
    for kernel, outputs in outputs_of:
        arguments = [*(places[value] for value in kernel.inputs), *outputs]
        for old, new in zip(kernel.body.block.args, arguments, strict=True):
            new.name_hint = new.name_hint or old.name_hint
            values[old] = new
    for op in first.body.block.ops:
        joined.body.block.add_op(op.clone(values))
    loops, mine = nest(joined)[:depth], perfect_nest(second)[:depth]
    for ours, theirs in zip(mine, loops, strict=True):
        values[ours.induction_var] = theirs.induction_var
    end = loops[-1].body.block.last_op
    assert end is not None
    for op in mine[-1].body.block.ops:
        if not isinstance(op, YieldOp):
            loops[-1].body.block.insert_op_before(op.clone(values), end)
    _read_stored(joined)
    return joined


def _read_stored(joined: KernelOp) -> None:
    """Have what loads from an output take the value that is stored there."""
    stored = {o.memref: o.value for o in ops_in(joined) if isinstance(o, StoreOp)}
    for load in ops_of(joined, LoadOp):
        if load.memref in joined.output_args:
            load.result.replace_all_uses_with(stored[load.memref])
            load.detach()
            load.erase()
    dedup_kernel(joined)


def _align(first: KernelOp, second: KernelOp) -> list[int]:
    """Split the loops of `second` that count what two loops of `first` count; gives which, innermost last."""
    done: list[int] = []
    for place, loop in enumerate(nest(first)):
        mine, extent = perfect_nest(second), loop.extent.data
        if place == len(mine):
            break
        whole = mine[place].extent.data
        if whole == extent:
            continue
        if not isinstance(whole, int) or not isinstance(extent, int):
            break
        if not whole or not extent or whole % extent:
            break
        split(mine[place], whole // extent)
        done.append(place)
    return done


def _undo(second: KernelOp, done: Sequence[int]) -> None:
    for place in reversed(done):
        coalesce(*perfect_nest(second)[place : place + 2])


# --------------------------------------------------------------------------- which, and where


def anchor(first: KernelOp, second: KernelOp) -> Operation | None:
    """The operation in whose place one kernel may stand for both, of which `second` comes later."""
    assert first.parent is not None
    order = {op: n for n, op in enumerate(first.parent.ops)}
    readers = {use.operation for value in first.outputs for use in value.uses} - {second}
    if all(order[reader] > order[second] for reader in readers):
        return second
    owners = [value.owner for value in second.inputs if value.owner is not first]
    before = [order[owner] for owner in owners if isinstance(owner, Operation)]
    early = all(place < order[first] for place in before)
    return first if early and not _finds_size_between(first, second) else None


def _finds_size_between(first: KernelOp, second: KernelOp) -> bool:
    """Whether what stands between two kernels may find a size in data that only the second one depends on."""
    own = set(symbols_used(second)).difference(symbols_used(first))
    between = first.next_op
    while own and between is not None and between is not second:
        if not isinstance(between, KernelOp) and not own.isdisjoint(symbols_used(between)):
            return True
        between = between.next_op
    return False


def obstacle(first: KernelOp, second: KernelOp) -> str | None:
    """Why two kernels should not be one, whatever their loops; or None."""
    both = (first, second)
    if any(map(checks, both)) or any(isinstance(o, AccumulateOp) for k in both for o in ops_in(k)):
        return "one checks indices, or changes an input"
    if len(first.outputs) + len(second.outputs) > MOST_OUTPUTS:
        return f"a kernel has at most {MOST_OUTPUTS} outputs"
    if sums_in(first) + sums_in(second) > MOST_SUMS:
        return f"a kernel has at most {MOST_SUMS} reductions"
    if is_contraction(first) and not _goes_on(first, second):
        return "a contraction has registers and packed operands of its own"
    return None


def _goes_on(first: KernelOp, second: KernelOp) -> bool:
    """Whether one kernel does nothing but go on with each result of the other."""
    reads = any(value.owner is first for value in second.inputs)
    return reads and not sums_in(second) and len(perfect_nest(second)) == len(nest(first))


def _candidates(second: KernelOp) -> Iterator[KernelOp]:
    """The kernels in front of one that give what it reads, or read the same; the latest first."""
    found: set[Operation] = set()
    for value in second.inputs:
        found |= {value.owner} if isinstance(value.owner, KernelOp) else set()
        found |= {use.operation for use in value.uses if isinstance(use.operation, KernelOp)}
    earlier = second.prev_op
    while earlier is not None:
        if earlier in found:
            assert isinstance(earlier, KernelOp)
            yield earlier
        earlier = earlier.prev_op


@dataclass(frozen=True)
class JoinKernelsPass(ModulePass):
    """Join kernels that go through the same loops and the same data."""

    name = PASS

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with hints_of(op):
            for kernel in ops_of(op, KernelOp):
                joined: KernelOp | None = kernel
                while joined is not None:
                    joined = self._join_earlier(joined)
        for kernel in ops_of(op, KernelOp):
            drop_unread(kernel)

    def _join_earlier(self, second: KernelOp) -> KernelOp | None:
        """Join a kernel with one in front of it, if it may be; gives both."""
        for first in [] if is_contraction(second) else _candidates(second):
            reads = any(value.owner is first for value in second.inputs)
            if not reads and not are_alike(first, second):
                continue
            names = first.sym_name.data, second.sym_name.data
            place = anchor(first, second)
            apart = obstacle(first, second)
            if place is None:
                apart = "what stands between them needs the one and gives something to the other"
            depth = apart or self._depth(first, second, reads=reads)
            if isinstance(depth, str) or place is None:
                reason = f"not joined with {names[0]}: {depth}"
                record(PASS, names[1], False, reason, second, names[:1])
                continue
            joined = join(first, second, depth)
            assert place.parent is not None
            place.parent.insert_op_before(joined, place)
            rename([*first.outputs, *second.outputs], joined.outputs)
            for kernel in (second, first):
                kernel.detach()
                kernel.erase()
            record(PASS, names[0], True, f"joined with {names[1]}", joined, names[1:])
            return joined
        return None

    def _depth(self, first: KernelOp, second: KernelOp, *, reads: bool) -> int | str:
        """How many loops they have in common, or why they stay apart; loops of `second` may be split."""
        if not reads:
            return len(perfect_nest(first))
        splits = _align(first, second)
        depth = reader_depth(first, second)
        if not isinstance(depth, str) and not self._has_rows(first, second, depth):
            depth = "few iterations would have to do all"
        if isinstance(depth, str):
            _undo(second, splits)
        return depth

    def _has_rows(self, first: KernelOp, second: KernelOp, depth: int) -> bool:
        """Whether common loops keep all processors busy, if there are others in them."""
        inner = len(nest(first)) > depth or len(nest(second)) > depth
        rows = prod(trips(loop.extent.data) for loop in nest(first)[:depth])
        return not inner or rows >= max(ROWS, get_target(self.target).processors)


def drop_unread(kernel: KernelOp) -> None:
    """Have a kernel give only the outputs that somebody reads."""
    unread = [n for n, value in enumerate(kernel.outputs) if not value.uses]
    if not unread or len(unread) == len(kernel.outputs):
        return
    kept = [value for value in kernel.outputs if value.uses]
    arguments = [kernel.output_args[n] for n in unread]
    for store in [o for o in ops_in(kernel) if isinstance(o, StoreOp) and o.memref in arguments]:
        store.detach()
        store.erase()
    for argument in reversed(arguments):
        kernel.body.block.erase_arg(argument)
    smaller = KernelOp(
        kernel.sym_name.data,
        kernel.inputs,
        [value.type for value in kept],
        kernel.detach_region(kernel.body),
    )
    smaller.location = kernel.location
    assert kernel.parent is not None
    kernel.parent.insert_op_before(smaller, kernel)
    rename(kept, smaller.outputs)
    kernel.detach()
    kernel.erase()
