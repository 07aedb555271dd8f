"""Contractions that a merge would make slower: inside of a reduction, or beside too many others.

    %c = loop.kernel @k_c(%a, %b) { ... store (for %k reduce(add) { a[%i, %k] * b[%k, %j] }), c[%i, %j] }
    %s = loop.kernel @k_s(%c) { ... store (for %j reduce(add) { tanh(c[%i, %j]) }), s[%i] }

A block of results of `@k_c` shares the rows and columns that it reads, in registers and scratchpads. Merged
into `@k_s`, each result would read a row and a column of its own, from wherever they lie. And a kernel of
many sums has few registers for each: their blocks become small, and share little.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ...analysis.cost import trips
from ...dialects.loop import ForOp, KernelOp, LoadOp, YieldOp
from .merging import Chain, shallowest

Counters = frozenset[SSAValue]

MOST_SUMS = 4
"""Reductions of a kernel with a contraction: with eight, products take up to 1.7 times as long."""


def sums_in(kernel: KernelOp) -> int:
    """The reductions of a kernel that stand in no other."""
    folds = [o for o in kernel.walk() if isinstance(o, ForOp) and o.res]
    return sum(len(fold.res) for fold in folds if not _reductions_around(fold))


def has_many_sums(chain: Chain, producer: KernelOp, consumer: KernelOp) -> bool:
    """Whether the contraction of a producer would have more reductions beside it than should be there."""
    counters = {counter for counter in chain.counters if _repeats(counter)}
    many = sums_in(producer) + sums_in(consumer) > MOST_SUMS
    return many and _contracts(chain, counters)


def loses_blocks(chain: Chain, load: LoadOp) -> bool:
    """Whether a contraction would no longer be one in the place of a load of its result.

    It still is where the reductions around that place do nothing but go on with its sum, and leave it
    operands that depend on different counters.
    """
    counters = {counter for counter in chain.counters if _repeats(counter)}
    folds = _reductions_around(shallowest(load, set(load.indices)))
    if not folds or not _contracts(chain, counters):
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
    return not (goes_on and _contracts(chain, counters))


def _repeats(counter: SSAValue) -> bool:
    """Whether the loop of a counter has more than one iteration."""
    loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
    return isinstance(loop, ForOp) and trips(loop.extent.data) > 1


def _reductions_around(op: Operation) -> list[ForOp]:
    """The reductions that an operation stands in."""
    found: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        if isinstance(parent, ForOp) and parent.res:
            found.append(parent)
        parent = parent.parent_op()
    return found


def _contracts(chain: Chain, counters: set[SSAValue]) -> bool:
    """Whether a reduction of a producer reads operands that depend on different ones of its counters."""
    for fold in (o for o in chain.statements if isinstance(o, ForOp)):
        read = _operands(fold, counters)
        if any(a - b and b - a for a in read for b in read):
            return True
    return False


def _operands(fold: ForOp, counters: set[SSAValue]) -> set[Counters]:
    """The counters that each operand of a reduction depends on, once elementwise producers are merged."""
    found: set[Counters] = set()
    seen: set[object] = set()
    whole = {counter: frozenset({counter}) for counter in counters}
    todo = [(load, whole) for load in _loads(fold)]
    while todo:
        load, said = todo.pop()
        places = [said.get(value, frozenset[SSAValue]()) for value in load.indices]
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


def _loads(op: Operation) -> list[LoadOp]:
    return [each for each in op.walk() if isinstance(each, LoadOp)]


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
