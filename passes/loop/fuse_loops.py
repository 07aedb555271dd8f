"""`fuse-loops`: a kernel that reads another one's output computes it in place, where that pays.

    %m = loop.kernel @k_m(%x) { for %i { for %j { store exp(x[%i, %j]), m[%i, %j] } } }
    %s = loop.kernel @k_s(%m) { for %i { store (for %j reduce(add) { m[%i, %j] }), s[%i] } }
becomes
    %s = loop.kernel @k_s(%x) { for %i { store (for %j reduce(add) { exp(x[%i, %j]) }), s[%i] } }

A load of the producer's output at some index solves for the producer's counters, because the producer
stores at its identity index. The producer's statements move to the shallowest scope of the consumer that
binds what they depend on, so the row statistics of a norm run once per row.

The cost gate: merging saves the round trip of the intermediate through memory, and costs the work that
is then done more than once (`analysis/cost.py`). A producer that does not pay stays a kernel, with the
numbers as the reason. Merged are producers of one output whose loops form one chain; index checks and
reductions shared by all rows stay in a kernel of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from ...analysis.cost import WORK_PER_BYTE, elements, executions, size_bytes, work
from ...analysis.index import always_holds, never_holds, operand_ranges, simplify
from ...dialects.loop import (
    AssertOp,
    CheckedIndexOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ..decisions import record
from .dedup_loads import dedup_kernel

PASS = "fuse-loops"

MAX_REPEATS = 4
"""How often one element may be computed in one kernel. A chain of cheap operations that is merged one by
one into the reduction of a matrix product would pass a gate on each of them, and slow the product."""


@dataclass
class Chain:
    """A producer taken apart: the statements of each level of its one chain of free loops."""

    levels: list[list[Operation]]
    counters: list[SSAValue]
    store: StoreOp
    axis_of: dict[SSAValue, int]

    @classmethod
    def of(cls, kernel: KernelOp) -> Chain | str:
        """The chain of a kernel, or the reason it has none."""
        if len(kernel.outputs) != 1:
            return "has several outputs"
        if any(isinstance(o, AssertOp | CheckedIndexOp) for o in kernel.walk()):
            return "checks indices from data"
        levels: list[list[Operation]] = []
        counters: list[SSAValue] = []
        block = kernel.body.block
        while True:
            ops = [o for o in block.ops if not isinstance(o, YieldOp)]
            free = [o for o in ops if isinstance(o, ForOp) and not o.res]
            levels.append(ops[:-1])
            if ops and isinstance(ops[-1], StoreOp) and not free:
                store = ops[-1]
                break
            if len(free) != 1 or ops[-1] is not free[0]:
                return "its loops are not one chain"
            counters.append(free[0].induction_var)
            block = free[0].body.block
        axis_of: dict[SSAValue, int] = {}
        for axis, expr in enumerate(store.map.data.results):
            match expr:
                case AffineDimExpr(position=position):
                    axis_of[store.indices[position]] = axis
                case AffineConstantExpr(value=0):
                    pass
                case _:
                    return "does not store at its identity index"
        if set(axis_of) != set(counters):
            return "does not store at its identity index"
        return cls(levels, counters, store, axis_of)


# --------------------------------------------------------------------------- placing


def _path(load: LoadOp) -> list[tuple[Block, Operation]]:
    """The blocks around a load, innermost first, each with the operation of it that holds the load."""
    path: list[tuple[Block, Operation]] = []
    op: Operation = load
    while not isinstance(op, KernelOp):
        block = op.parent
        assert block is not None
        path.append((block, op))
        parent = block.parent_op()
        assert parent is not None
        op = parent
    return path


def _shallowest(load: LoadOp, needed: set[SSAValue]) -> Operation:
    """The operation before which statements that read `needed` may stand, as far out as possible.

    Never outside an `scf.if` that guards the load: its index may be valid only inside.
    """
    path = _path(load)
    place = load
    for block, op in path:
        place = op
        defined_here = any(value.owner is block or _block_of(value) is block for value in needed)
        if defined_here or isinstance(block.parent_op(), scf.IfOp):
            break
    return place


def _block_of(value: SSAValue) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent


# --------------------------------------------------------------------------- cloning


class _Cloner:
    """Copies a producer's statements into a consumer at one load."""

    def __init__(self, chain: Chain, load: LoadOp, buffers: dict[SSAValue, SSAValue]):
        self.values: dict[SSAValue, SSAValue] = dict(buffers)
        self.exprs: dict[SSAValue, AffineExpr] = {}
        self.operands = list(load.indices)
        self.known: dict[SSAValue, bool] = {}
        for counter, axis in chain.axis_of.items():
            self.exprs[counter] = load.map.data.results[axis]

    def index(
        self, exprs: tuple[AffineExpr, ...], operands: list[SSAValue]
    ) -> tuple[list[AffineExpr], list[SSAValue]]:
        """An index of the producer as one over the consumer's values, simplified."""
        space = [*self.operands]
        dims: list[AffineExpr] = []
        for value in operands:
            if value in self.exprs:
                dims.append(self.exprs[value])
            else:
                dims.append(AffineExpr.dimension(len(space)))
                space.append(self.values[value])
        ranges = operand_ranges(space)
        return [simplify(e.replace_dims_and_symbols(dims, ()), ranges) for e in exprs], space

    def clone(self, op: Operation) -> list[Operation]:
        """The operations that `op` becomes."""
        new: Operation
        match op:
            case LoadOp():
                exprs, space = self.index(op.map.data.results, list(op.indices))
                new = LoadOp(self.values[op.memref], exprs, space)
            case IndexOp():
                exprs, space = self.index(op.map.data.results, list(op.operands_))
                new = IndexOp(exprs[0], space)
            case TestOp():
                return self._clone_test(op)
            case scf.IfOp() if op.cond in self.known:
                region = op.true_region if self.known[op.cond] else op.false_region
                return self._inline(op, region)
            case _ if op.regions:
                new = self._clone_nested(op)
            case _:
                new = op.clone(value_mapper=dict(self.values))
        return [self._finish(op, new)]

    def _finish(self, op: Operation, new: Operation) -> Operation:
        new.location = op.location
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            self.values[old] = result
        return new

    def _clone_test(self, op: TestOp) -> list[Operation]:
        exprs, space = self.index(op.exprs, list(op.operands_))
        ranges = operand_ranges(space)
        open_ = [e for e in exprs if not always_holds(e, ranges)]
        if not open_ or any(never_holds(e, ranges) for e in open_):
            self.known[op.result] = not open_
            return []
        return [self._finish(op, TestOp(open_, space))]

    def _inline(self, op: scf.IfOp, region: Region) -> list[Operation]:
        cloned: list[Operation] = []
        for inner in region.block.ops:
            if isinstance(inner, scf.YieldOp):
                for old, value in zip(op.output, inner.arguments, strict=True):
                    self.values[old] = self.values[value]
            else:
                cloned += self.clone(inner)
        return cloned

    def _clone_nested(self, op: Operation) -> Operation:
        regions: list[Region] = []
        # The bodies need their counters' ranges while they are simplified, so the
        # new operation is made first and filled afterwards.
        for region in op.regions:
            block = Block(arg_types=region.block.arg_types)
            for old, new in zip(region.block.args, block.args, strict=True):
                new.name_hint = old.name_hint
                self.values[old] = new
            regions.append(Region(block))
        created = type(op).create(
            operands=[self.values[v] for v in op.operands],
            result_types=[r.type for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=regions,
        )
        for region, target in zip(op.regions, regions, strict=True):
            for inner in region.block.ops:
                for cloned in self.clone(inner):
                    target.block.add_op(cloned)
        return created


# --------------------------------------------------------------------------- merging


def _add_input(kernel: KernelOp, value: SSAValue, name: str | None) -> SSAValue:
    """The block argument of `kernel` that holds `value`, added if it is not an input yet."""
    for argument, known in zip(kernel.input_args, kernel.inputs, strict=True):
        if known is value:
            return argument
    position = len(kernel.inputs)
    producer_type = KernelOp.buffer_type(value.type)
    argument = kernel.body.block.insert_arg(producer_type, position)
    argument.name_hint = name
    kernel.operands = [*kernel.inputs, value]
    return argument


def _remove_input(kernel: KernelOp, argument: SSAValue) -> None:
    position = list(kernel.input_args).index(argument)  # pyright: ignore[reportArgumentType]
    kernel.operands = [v for i, v in enumerate(kernel.inputs) if i != position]
    kernel.body.block.erase_arg(kernel.body.block.args[position])


def merge(producer: KernelOp, chain: Chain, consumer: KernelOp, argument: SSAValue) -> None:
    """Compute the producer's output in the consumer wherever it loads it."""
    buffers: dict[SSAValue, SSAValue] = {
        theirs: _add_input(consumer, value, theirs.name_hint)
        for theirs, value in zip(producer.input_args, producer.inputs, strict=True)
    }
    for load in [u.operation for u in list(argument.uses)]:
        assert isinstance(load, LoadOp)
        cloner = _Cloner(chain, load, buffers)
        bound: set[SSAValue] = set()
        for level, ops in enumerate(chain.levels):
            if level:
                expr = cloner.exprs[chain.counters[level - 1]]
                bound |= {load.indices[d] for d in expr.used_dims()}
            place = _shallowest(load, bound)
            for op in ops:
                for new in cloner.clone(op):
                    assert place.parent is not None
                    place.parent.insert_op_before(new, place)
        load.result.replace_all_uses_with(cloner.values[chain.store.value])
        load.detach()
        load.erase()
    _remove_input(consumer, argument)
    dedup_kernel(consumer)


# --------------------------------------------------------------------------- interchange


def _perfect_nest(kernel: KernelOp) -> list[ForOp]:
    """The free loops around the whole body of a kernel, outermost first."""
    loops: list[ForOp] = []
    block = kernel.body.block
    while True:
        ops = [o for o in block.ops if not isinstance(o, YieldOp)]
        if len(ops) != 1 or not isinstance(ops[0], ForOp) or ops[0].res:
            return loops
        loops.append(ops[0])
        block = ops[0].body.block


def _permute(loops: list[ForOp], order: list[int]) -> None:
    """Reorder a perfect nest: position p gets the loop that stood at `order[p]`."""
    old = [loop.induction_var for loop in loops]
    uses = [list(counter.uses) for counter in old]
    facts = [(loop.extent, counter.name_hint) for loop, counter in zip(loops, old, strict=True)]
    for place, source in enumerate(order):
        loops[place].extent, old[place].name_hint = facts[source]
        for use in uses[source]:
            use.operation.operands[use.index] = old[place]


def _bind_first(consumer: KernelOp, argument: SSAValue) -> list[int] | None:
    """Move the loops that loads of `argument` depend on outwards; gives the order that undoes it.

    Then what the loads stand for need not run once per iteration of the others: the statistics of a
    column run once per column. Iterations of free loops are independent, so any order is right.
    """
    loops = _perfect_nest(consumer)
    if any(loop.static_extent is None for loop in loops):
        return None
    needed = {
        v for u in argument.uses if isinstance(u.operation, LoadOp) for v in u.operation.indices
    }
    first = [i for i, loop in enumerate(loops) if loop.induction_var in needed]
    order = first + [i for i in range(len(loops)) if i not in first]
    if order == list(range(len(loops))) or not first:
        return None
    _permute(loops, order)
    return [order.index(i) for i in range(len(loops))]


# --------------------------------------------------------------------------- the cost gate


def _decline_reason(
    producer: KernelOp, chain: Chain, consumer: KernelOp, argument: SSAValue
) -> str | None:
    """Why the merge does not pay or is not possible, or None."""
    loads = [u.operation for u in argument.uses if isinstance(u.operation, LoadOp)]
    result = producer.outputs[0]
    readers = {u.operation for u in result.uses}
    if any(not isinstance(reader, KernelOp) for reader in readers):
        return "its value is a result of the program"
    for load in loads:
        place = _shallowest(load, set(load.indices))
        parallel = any(isinstance(o, ForOp) and not o.res for o in consumer.body.block.ops)
        shared = place.parent is consumer.body.block and parallel
        if shared and any(isinstance(o, ForOp) for ops in chain.levels for o in ops):
            return "a reduction that all rows share is computed once, in a kernel of its own"
    count = elements(producer.output_args[0].type)
    per_element = work(producer) / max(count, 1)
    runs = _runs(loads)
    # Each reader pays for itself; the first run of each element replaces the producer's own.
    others = len(readers) - 1
    extra = per_element * max(runs + others * count - count, 0)
    saved = size_bytes(producer.output_args[0].type) * (1 + len(readers))
    repeats = (runs + others * count) / max(count, 1)
    if extra > WORK_PER_BYTE * saved or (per_element and runs > MAX_REPEATS * count):
        return (
            f"would recompute {_si(extra)}FLOP, each element {repeats:.4g} times, to save "
            f"{_si(saved)}B of traffic ({extra / max(saved, 1):.1f} per byte, "
            f"{WORK_PER_BYTE:g} pays)"
        )
    return None


def _runs(loads: list[LoadOp]) -> int:
    """How often the producer's innermost statements would run if they replaced `loads`.

    Loads of one element that move to one scope become one, so they count once.
    """
    seen: dict[object, int] = {}
    for load in loads:
        place = _shallowest(load, set(load.indices))
        seen[(place.parent, load.map, tuple(load.indices))] = executions(place)
    return sum(seen.values())


def _si(number: float) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.1f} {prefix}"
    return f"{number:.0f} "


def _erase_unused(kernel: KernelOp) -> None:
    """Erase a kernel whose outputs nobody reads, unless it checks something."""
    checks = any(isinstance(o, AssertOp | CheckedIndexOp) for o in kernel.walk())
    if not checks and not any(result.uses for result in kernel.outputs):
        kernel.detach()
        kernel.erase()


def fuse_into(consumer: KernelOp, position: dict[KernelOp, int]) -> None:
    """Merge every producer of `consumer` that pays, and theirs in turn, the latest one first.

    By the time a producer is judged, the kernels between it and the consumer are merged or stay.
    """
    dedup_kernel(consumer)
    declined: set[SSAValue] = set()
    while True:
        candidates = [
            (position[value.owner], argument, value.owner)
            for argument, value in zip(consumer.input_args, consumer.inputs, strict=True)
            if isinstance(value.owner, KernelOp) and value not in declined
        ]
        if not candidates:
            return
        _, argument, producer = max(candidates, key=lambda c: c[0])
        name, into = producer.sym_name.data, consumer.sym_name.data
        chain = Chain.of(producer)
        reason = chain if isinstance(chain, str) else None
        if not isinstance(chain, str):
            reason = _decline_reason(producer, chain, consumer, argument)
            undo = None
            if reason is not None and any(
                isinstance(o, ForOp) for ops in chain.levels for o in ops
            ):
                undo = _bind_first(consumer, argument)
            if undo is not None:
                if _decline_reason(producer, chain, consumer, argument) is None:
                    reason = None
                else:
                    _permute(_perfect_nest(consumer), undo)
            if reason is None:
                merge(producer, chain, consumer, argument)
                _erase_unused(producer)
                record(PASS, name, True, f"merged into {into}", consumer)
                continue
        declined.add(producer.outputs[0])
        record(PASS, name, False, f"not merged into {into}: {reason}", consumer)


@dataclass(frozen=True)
class FuseLoopsPass(ModulePass):
    """Merge producers into consumers where the cost model says that it pays, last consumers first."""

    name = PASS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [o for o in op.walk() if isinstance(o, KernelOp)]
        position = {kernel: i for i, kernel in enumerate(kernels)}
        for kernel in reversed(kernels):
            if kernel.parent is not None:
                _erase_unused(kernel)
            if kernel.parent is not None:
                fuse_into(kernel, position)
