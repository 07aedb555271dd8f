"""Merging one loop kernel into another that reads its output; `fuse-loops` decides where that pays.

A load of the producer's output at some index solves for the producer's counters, because the producer
stores at its identity index. The statements of each level of the producer move to the shallowest scope
of the consumer that binds the counters of that level. What is only loaded and widened stays where it is
read, as an element of an input would: nests of loops stay perfect.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ...analysis.index import always_holds, never_holds, operand_ranges, simplify
from ...dialects.inside import ops_in
from ...dialects.loop import (
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ...dialects.loop_access import may_stop
from ...index.affine import replace_dims
from .dedup_loads import dedup_kernel


def checks(kernel: KernelOp) -> bool:
    """Whether a kernel may stop the program: then all of it must run, read or not."""
    return any(map(may_stop, ops_in(kernel)))


@dataclass
class Chain:
    """A producer taken apart: the statements of each level of its one chain of free loops.

    `checks` says that it stops the program where an index from data is out of range.
    """

    levels: list[list[Operation]]
    counters: list[SSAValue]
    store: StoreOp
    axis_of: dict[SSAValue, int]
    checks: bool

    @classmethod
    def of(cls, kernel: KernelOp) -> Chain | str:
        """The chain of a kernel, or the reason it has none."""
        if len(kernel.outputs) != 1:
            return "has several outputs"
        if sum(isinstance(o, StoreOp) for o in ops_in(kernel)) > 1:
            return "stores in several places"
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
        return cls(levels, counters, store, axis_of, checks(kernel))

    @property
    def statements(self) -> list[Operation]:
        """What it does, at all levels."""
        return [op for ops in self.levels for op in ops]


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


def shallowest(load: LoadOp, needed: set[SSAValue]) -> Operation:
    """The operation before which statements that read `needed` may stand, as far out as possible.

    Never outside an `scf.if` that guards the load, nor outside a loop that never runs: its index may be
    valid only inside.
    """
    path = _path(load)
    place = load
    for block, op in path:
        place = op
        defined_here = any(value.owner is block or _block_of(value) is block for value in needed)
        parent = block.parent_op()
        never_runs = isinstance(parent, ForOp) and parent.never_runs
        if defined_here or never_runs or isinstance(parent, scf.IfOp):
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
        return [simplify(replace_dims(e, dims), ranges) for e in exprs], space

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
        chooses = all(isinstance(use.operation, scf.IfOp) for use in op.result.uses)
        if chooses and (not open_ or any(never_holds(e, ranges) for e in open_)):
            self.known[op.result] = not open_
            return []
        return [self._finish(op, TestOp(open_ or exprs, space))]

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


def add_input(kernel: KernelOp, value: SSAValue, name: str | None) -> SSAValue:
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


def remove_input(kernel: KernelOp, argument: SSAValue) -> None:
    """Take the input away that a block argument without uses holds."""
    position = list(kernel.input_args).index(argument)  # pyright: ignore[reportArgumentType]
    kernel.operands = [v for i, v in enumerate(kernel.inputs) if i != position]
    kernel.body.block.erase_arg(kernel.body.block.args[position])


def drop_unused_inputs(kernel: KernelOp) -> None:
    """Drop what a kernel computes or loads for nobody, and inputs that it does not read."""
    dedup_kernel(kernel)
    for argument in list(kernel.input_args):
        if not argument.uses:
            remove_input(kernel, argument)


def _is_plain(op: Operation) -> bool:
    """Whether a statement only loads, or converts what is loaded: it may stand where it is used."""
    return isinstance(op, LoadOp | arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp)


def merge(producer: KernelOp, chain: Chain, consumer: KernelOp, argument: SSAValue) -> None:
    """Compute the producer's output in the consumer wherever it loads it."""
    buffers: dict[SSAValue, SSAValue] = {
        theirs: add_input(consumer, value, theirs.name_hint)
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
            place = load if all(map(_is_plain, chain.statements)) else shallowest(load, bound)
            for op in ops:
                for new in cloner.clone(op):
                    assert place.parent is not None
                    place.parent.insert_op_before(new, place)
        load.result.replace_all_uses_with(cloner.values[chain.store.value])
        load.detach()
        load.erase()
    remove_input(consumer, argument)
    dedup_kernel(consumer)
