"""Contractions that a merge would make slower: inside of a reduction, or beside others that are not alike.

    %c = loop.kernel @k_c(%a, %b) { ... store (for %k reduce(add) { a[%i, %k] * b[%k, %j] }), c[%i, %j] }
    %s = loop.kernel @k_s(%c) { ... store (for %j reduce(add) { tanh(c[%i, %j]) }), s[%i] }

A block of results of `@k_c` shares the rows and columns that it reads, in registers and scratchpads. Merged
into `@k_s`, each result would read a row and a column of its own, from wherever they lie. So would it beside
a reduction with other sweeps, as a 3 by 3 convolution beside one of 1 by 1, or beside the maxima of windows:
a block has one sweep. So would it beside a check of indices from data, which stops the program before all is
computed, where data says which row or column is read, and in one branch of a condition. And a kernel of many
sums has few registers for each: their blocks become small, and share little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...analysis.cost import elements, trips
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, LoadOp, YieldOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import Extent
from .merging import Chain, shallowest

Counters = frozenset[SSAValue]

NARROW_BYTES = 2
"""Of an element that is rounded when it is stored."""

MOST_SUMS = 4
"""Reductions of a kernel with a contraction: with eight, products take up to 1.7 times as long."""


def sums_in(kernel: KernelOp) -> int:
    """The reductions of a kernel that stand in no other."""
    folds = [o for o in ops_in(kernel) if isinstance(o, ForOp) and o.res]
    return sum(len(fold.res) for fold in folds if not reductions_around(fold))


def has_many_sums(chain: Chain, producer: KernelOp, consumer: KernelOp) -> bool:
    """Whether the contraction of a producer would have more reductions beside it than should be there."""
    many = sums_in(producer) + sums_in(consumer) > MOST_SUMS
    return many and _contracts(_folds_of(chain), chain.counters)


def meets_other_sweeps(chain: Chain, consumer: KernelOp) -> bool:
    """Whether a merge would put a contraction beside another reduction, with other sweeps."""
    mine, theirs = _folds_of(chain), _folds_in(consumer)
    if not mine or not theirs or len({_sweeps(fold) for fold in (*mine, *theirs)}) == 1:
        return False
    return _contracts(mine, chain.counters) or _contracts(theirs, _free_counters(consumer))


def meets_data_indices(chain: Chain, consumer: KernelOp, loads: Sequence[LoadOp]) -> bool:
    """Whether a merge would put a contraction beside indices from data.

    A batch axis may have an index from data that needs no check: rows and columns of a block are still boxes.
    """
    picks = [o for o in chain.statements for o in ops_in(o) if isinstance(o, CheckedIndexOp)]
    if picks or chain.checks:
        counters = _contracted(_folds_in(consumer), _free_counters(consumer))
        said = [_counters_in(load, chain) for load in loads]
        picked = (_origins(pick.result, each) for each in said for pick in picks)
        if counters and (chain.checks or any(map(counters.intersection, picked))):
            return True
    indexed = any(isinstance(o, CheckedIndexOp | AssertOp) for o in ops_in(consumer))
    return indexed and _contracts(_folds_of(chain), chain.counters)


def comes_under_condition(chain: Chain, load: LoadOp) -> bool:
    """Whether a contraction would be computed in one branch only, as a part of what is put together."""
    parent = load.parent_op()
    while not isinstance(parent, KernelOp | scf.IfOp):
        assert parent is not None
        parent = parent.parent_op()
    return isinstance(parent, scf.IfOp) and _contracts(_folds_of(chain), chain.counters)


def finishes_contraction(kernel: KernelOp) -> bool:
    """Whether a kernel rounds what it computes of each result of a contraction, and nothing else reads that.

    There may be other such kernels in between.
    """
    type = kernel.output_args[0].type
    assert isinstance(type, MemRefType)
    if storage_bytes(type.element_type) > NARROW_BYTES:
        return False
    count = elements(type)
    while not any(isinstance(o, ForOp) and o.res for o in ops_in(kernel)):
        for value, argument in zip(kernel.inputs, kernel.input_args, strict=True):
            before = value.owner
            alone = all(use.operation is kernel for use in value.uses)
            if alone and isinstance(before, KernelOp) and len(before.outputs) == 1:
                if elements(argument.type) == count and _reads_in_order(kernel, argument):
                    break
        else:
            return False
        kernel = before
    return is_contraction(kernel)


def is_contraction(kernel: KernelOp) -> bool:
    """Whether a kernel has a reduction of what depends on different ones of its free counters."""
    return _contracts(_folds_in(kernel), _free_counters(kernel))


def _reads_in_order(kernel: KernelOp, argument: SSAValue) -> bool:
    """Whether loops around loads of an argument count its axes in order: it is not transposed."""
    loops: list[SSAValue] = [o.induction_var for o in ops_in(kernel) if isinstance(o, ForOp)]
    for load in (use.operation for use in argument.uses):
        assert isinstance(load, LoadOp)
        used = [load.indices[d] for e in load.map.data.results for d in sorted(e.used_dims())]
        places = [loops.index(value) for value in used if value in loops]
        if places != sorted(places):
            return False
    return True


def is_repeated(places: Sequence[Operation]) -> bool:
    """Whether what some places compute is computed in several of them, or in each iteration of a sweep."""
    return len(places) > 1 or any(map(reductions_around, places))


def _folds_of(chain: Chain) -> list[ForOp]:
    """The reductions of a producer, of more than one element each."""
    return [o for o in chain.statements if isinstance(o, ForOp) and _is_long(o)]


def _folds_in(kernel: KernelOp) -> list[ForOp]:
    """The same of a kernel, those that stand in no other."""
    folds = [o for o in ops_in(kernel) if isinstance(o, ForOp) and o.res]
    return [fold for fold in folds if _is_long(fold) and not reductions_around(fold)]


def _is_long(fold: ForOp) -> bool:
    return any(extent != 1 for extent in _sweeps(fold))


def _free_counters(kernel: KernelOp) -> list[SSAValue]:
    return [o.induction_var for o in ops_in(kernel) if isinstance(o, ForOp) and not o.res]


def _sweeps(fold: Operation) -> tuple[Extent, ...]:
    """The extents of a reduction and of those in it, from outside."""
    return tuple(o.extent.data for o in ops_in(fold) if isinstance(o, ForOp) and o.res)


def loses_blocks(chain: Chain, load: LoadOp) -> bool:
    """Whether a contraction would no longer be one in the place of a load of its result.

    It still is where the reductions around that place do nothing but go on with its sum, and leave it
    operands that depend on different counters.
    """
    counters = {counter for counter in chain.counters if _repeats(counter)}
    folds = reductions_around(shallowest(load, set(load.indices)))
    mine = _folds_of(chain)
    if not folds or not _contracts(mine, counters):
        return False
    folding = {fold.induction_var for fold in folds}
    exprs = load.map.data.results
    for counter, axis in chain.axis_of.items():
        if folding.intersection(load.indices[d] for d in exprs[axis].used_dims()):
            counters.discard(counter)
    goes_on = (
        all(isinstance(use.operation, YieldOp) for use in load.result.uses)
        and isinstance(chain.store.value.owner, ForOp)
        and all(c.data == "add" for fold in folds for c in fold.combiners)
    )
    return not (goes_on and _contracts(mine, counters))


def _repeats(counter: SSAValue) -> bool:
    """Whether the loop of a counter has more than one iteration."""
    loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
    return isinstance(loop, ForOp) and trips(loop.extent.data) > 1


def reductions_around(op: Operation) -> list[ForOp]:
    """The reductions that an operation stands in."""
    found: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        if isinstance(parent, ForOp) and parent.res:
            found.append(parent)
        parent = parent.parent_op()
    return found


def _contracts(folds: Iterable[ForOp], counters: Iterable[SSAValue]) -> bool:
    """Whether one of some reductions reads operands that depend on different ones of some counters."""
    return bool(_contracted(folds, counters))


def _contracted(folds: Iterable[ForOp], counters: Iterable[SSAValue]) -> Counters:
    """The counters that some operands of a reduction depend on and others do not: its rows and columns."""
    repeated = {counter for counter in counters if _repeats(counter)}
    read = (_operands(fold, repeated) for fold in folds)
    apart = (a ^ b for each in read for a in each for b in each if a - b and b - a)
    return frozenset[SSAValue]().union(*apart)


def _operands(fold: ForOp, counters: set[SSAValue]) -> set[Counters]:
    """The counters that each operand of a reduction depends on, once elementwise producers are merged."""
    found: set[Counters] = set()
    seen: set[object] = set()
    whole = {counter: frozenset({counter}) for counter in counters}
    todo = [(load, whole) for load in _loads(fold)]
    while todo:
        load, said = todo.pop()
        places = [_origins(value, said) for value in load.indices]
        producer = _elementwise_producer(load)
        if producer is None:
            found.add(frozenset[SSAValue]().union(*places))
            continue
        kernel, chain = producer
        inner = {
            counter: frozenset[SSAValue]().union(
                *(places[d] for d in load.map.data.results[axis].used_dims())
            )
            for counter, axis in chain.axis_of.items()
        }
        if (key := (kernel, frozenset(inner.items()))) not in seen:
            seen.add(key)
            todo += [(each, inner) for each in _loads(kernel)]
    return found


def _origins(value: SSAValue, said: Mapping[SSAValue, Counters]) -> Counters:
    """The counters that an index depends on, also by what it is computed from; `said` has the known ones."""
    if value in said or isinstance(value.owner, Block):
        return said.get(value, frozenset())
    operands = (operand for op in ops_in(value.owner) for operand in op.operands)
    return frozenset[SSAValue]().union(*(_origins(operand, said) for operand in operands))


def _counters_in(load: LoadOp, chain: Chain) -> dict[SSAValue, Counters]:
    """The counters of a consumer that those of a producer stand for at a load of its result."""
    exprs = load.map.data.results
    return {
        counter: frozenset(load.indices[d] for d in exprs[axis].used_dims())
        for counter, axis in chain.axis_of.items()
    }


def _loads(op: Operation) -> list[LoadOp]:
    return ops_of(op, LoadOp)


def _elementwise_producer(load: LoadOp) -> tuple[KernelOp, Chain] | None:
    """The kernel that computes what a load reads, if it reduces nothing."""
    kernel = load.parent_op()
    while not isinstance(kernel, KernelOp):
        assert kernel is not None
        kernel = kernel.parent_op()
    for argument, value in zip(kernel.input_args, kernel.inputs, strict=True):
        if argument is load.memref and isinstance(producer := value.owner, KernelOp):
            chain = Chain.of(producer)
            if isinstance(chain, str) or any(isinstance(o, ForOp) for o in chain.statements):
                return None
            return producer, chain
    return None
