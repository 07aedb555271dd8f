"""What must come before what among operations that follow each other; a part of `roll-registers`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ...dialects.kernel import MmaOp, ShuffleOp, VectorLoadOp, VectorStoreOp
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.loop_access import in_registers
from .families import indices_of

_CONVERGENT = (MmaOp, ShuffleOp)
"""What all threads of a warp do at one time, and which touches no memory."""


@dataclass(frozen=True)
class _Access:
    """An access to memory: what its place is besides constants, those, and how many elements it has."""

    op: Operation
    kind: tuple[Hashable, tuple[SSAValue, ...]]
    place: tuple[int, ...]
    width: int
    writes: bool

    def meets(self, other: _Access) -> bool:
        """Whether two accesses to one memory may touch one element, and one of them writes it."""
        if not (self.writes or other.writes):
            return False
        if self.kind != other.kind:
            return True
        *mine, first = self.place
        *others, start = other.place
        return mine == others and first < start + other.width and start < first + self.width


def _access(op: Operation) -> tuple[SSAValue, _Access] | None:
    """The memory of a load or a store and where it is; None of another operation."""
    match op:
        case LoadOp() | StoreOp():
            width, writes = 1, isinstance(op, StoreOp)
        case VectorLoadOp() | VectorStoreOp():
            width, writes = len(op.values), isinstance(op, VectorStoreOp)
        case _:
            return None
    ((exprs, place),) = indices_of(op)
    return op.memref, _Access(op, (exprs, tuple(op.indices)), place, width, writes)


@dataclass
class _Order:
    """The accesses so far, those since the last operation that all memory waits for, and that one."""

    accesses: dict[SSAValue, dict[tuple[int, ...] | None, list[_Access]]] = field(
        default_factory=dict[SSAValue, dict[tuple[int, ...] | None, list[_Access]]]
    )
    since: list[Operation] = field(default_factory=list[Operation])
    fence: Operation | None = None

    def before(self, op: Operation) -> Iterator[Operation]:
        """What an operation must come after because of memory; notes the operation."""
        found = _access(op)
        if found is None:
            if is_side_effect_free(op) or isinstance(op, _CONVERGENT):
                return
            yield from self.since
            if self.fence is not None:
                yield self.fence
            self.fence, self.since = op, []
            return
        memory, access = found
        if not in_registers(memory):
            if self.fence is not None:
                yield self.fence
            self.since.append(op)
        by_place = self.accesses.setdefault(memory, {})
        # an element of registers that a number names meets itself and those that no number names
        key = access.place if in_registers(memory) and not access.kind[1] else None
        groups = [by_place.get(key, []), *([by_place.get(None, [])] if key is not None else [])]
        if key is None:
            groups = list(by_place.values())
        for group in groups:
            yield from (each.op for each in group if each.meets(access))
        by_place.setdefault(key, []).append(access)


def dependences(ops: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """What each of some operations that follow each other must come after, among them."""
    known = {*ops}
    order = _Order()
    found: dict[Operation, list[Operation]] = {}
    for op in ops:
        made = [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner in known]
        found[op] = [*dict.fromkeys([*made, *order.before(op)])]
    return found


def components(after: Sequence[Sequence[int]]) -> list[int]:
    """The strongly connected component of each node of a graph, of node i to `after[i]` (Tarjan 1972).

    Components come after those that they lead to, else in the order of the nodes.
    """
    count = len(after)
    number, low, component = [-1] * count, [0] * count, [-1] * count
    stack: list[int] = []
    taken = made = 0
    for root in range(count):
        if number[root] >= 0:
            continue
        path = [(root, iter(after[root]))]
        number[root] = low[root] = taken
        taken += 1
        stack.append(root)
        while path:
            node, rest = path[-1]
            for following in rest:
                if number[following] < 0:
                    number[following] = low[following] = taken
                    taken += 1
                    stack.append(following)
                    path.append((following, iter(after[following])))
                    break
                if component[following] < 0:
                    low[node] = min(low[node], number[following])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == number[node]:
                    while (member := stack.pop()) != node:
                        component[member] = made
                    component[node] = made
                    made += 1
    return component
