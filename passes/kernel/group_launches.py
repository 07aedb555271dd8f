"""`group-launches`: launches that do not depend on each other may run at once.

    kernel.launch @f(%x, %a) …        kernel.launch @f(%x, %a) … {group = 0 : i64, writes = array<i64: 1>}
    kernel.launch @h(%a, %c) …        kernel.launch @g(%y, %b) … {group = 0 : i64, writes = array<i64: 1>}
    kernel.launch @g(%y, %b) …        kernel.launch @h(%a, %c) …

Kahn's algorithm: a group are the launches all of whose predecessors are in earlier groups. Which those are,
the arrays say that kernels read and write. What PyTorch runs and loops stay where they are, and nothing
passes them; the launches of a loop run one after the other.

Buffers of launches that run at once are alive at once. So a launch stays out of a group if more than a tenth
more memory were needed than where one runs after the other, and more than four mebibytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of, trips
from ...analysis.launch_groups import (
    GROUP,
    WRITES,
    Touches,
    array_of,
    mark_group,
    users_of,
    written_arguments,
)
from ...analysis.plan import buffer_bytes
from ...dialects.inside import ops_in
from ...dialects.kernel import AllocOp, CallOp, LaunchOp, LoopOp
from ..decisions import record

HostStep = LaunchOp | CallOp | LoopOp
HOST_STEPS = (LaunchOp, CallOp, LoopOp)

MORE_MEMORY = 1.1
"""What groups may need over what single launches do."""
SMALL_MEMORY = 4 << 20
"""Bytes that are always there."""


@dataclass(frozen=True)
class GroupLaunchesPass(ModulePass):
    """Needs host functions; leaves launches that may run at once as neighbours, in marked groups."""

    name = "group-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order and mark the launches of every host function."""
        with hints_of(op):
            for function in op.ops:
                if isinstance(function, func.FuncOp) and function.body.blocks:
                    _group(op, function)


def _group(module: ModuleOp, function: func.FuncOp) -> None:
    steps = [op for op in function.body.block.ops if isinstance(op, HOST_STEPS)]
    for step in steps:
        step.attributes.pop(GROUP, None)
        step.attributes.pop(WRITES, None)
    if not any(isinstance(step, LaunchOp) for step in steps):
        return
    name = function.sym_name.data
    writes = {s: written_arguments(module, s) for s in steps if isinstance(s, LaunchOp)}
    order = _Order(steps, writes)
    if max(map(len, order.groups)) == 1:
        record(GroupLaunchesPass.name, name, False, order.reason, function)
        return
    _place(function, [step for group in order.groups for step in group])
    marked = [[s for s in group if isinstance(s, LaunchOp)] for group in order.groups]
    several = [group for group in marked if len(group) > 1]
    for number, group in enumerate(several):
        mark_group(group, number, [writes[launch] for launch in group])
    count = sum(map(len, several))
    reason = f"{count} of {len(writes)} launches run at once, in {len(several)} groups"
    record(GroupLaunchesPass.name, name, True, reason, function)


class _Order:
    """The steps of a host function in groups."""

    def __init__(
        self, steps: Sequence[HostStep], writes: Mapping[LaunchOp, Sequence[int]]
    ):
        self._steps = steps
        self._touches = [Touches(s, writes[s]) if isinstance(s, LaunchOp) else None for s in steps]
        self.reason = "each launch depends on the one before it"
        if len(writes) == 1:
            self.reason = "there is but one launch"
        self.groups = [[steps[i] for i in group] for group in self._chosen()]

    def _chosen(self) -> list[list[int]]:
        single = [[i] for i in range(len(self._steps))]
        free = self._kahn(None)
        if len(free) == len(single):
            return single
        most = max(SMALL_MEMORY, int(MORE_MEMORY * self._peak(single)))
        if (needed := self._peak(free)) <= most:
            return free
        limited = self._kahn(most)
        if len(limited) < len(single) and self._peak(limited) <= most:
            return limited
        self.reason = f"run at once they would need {needed} bytes, which is more than {most}"
        return single

    @cached_property
    def _predecessors(self) -> list[set[int]]:
        """The steps that must be over before each: all before it, where PyTorch runs one of the two."""
        found: list[set[int]] = []
        for position, own in enumerate(self._touches):
            others = enumerate(self._touches[:position])
            found.append(
                {
                    i
                    for i, other in others
                    if own is None or other is None or own.must_wait_for(other)
                }
            )
        return found

    def _kahn(self, most: int | None) -> list[list[int]]:
        """Groups of launches; one takes what is ready, in order, as long as it fits in `most` bytes."""
        left = [len(before) for before in self._predecessors]
        ready = [position for position, count in enumerate(left) if not count]
        memory = _Memory(self._steps)
        groups: list[list[int]] = []
        while ready:
            group: list[int] = []
            for position in ready:
                made = memory.made_by([*group, position])
                if not group or most is None or memory.alive + made <= most:
                    group.append(position)
            memory.run(group)
            groups.append(group)
            ready = [position for position in ready if position not in group]
            for position in group:
                for after in self._successors[position]:
                    left[after] -= 1
                    if not left[after]:
                        ready.append(after)
            ready.sort()
        return groups

    @cached_property
    def _successors(self) -> list[list[int]]:
        """The steps that must wait for each."""
        found: list[list[int]] = [[] for _ in self._steps]
        for position, before in enumerate(self._predecessors):
            for other in before:
                found[other].append(position)
        return found

    def _peak(self, groups: Iterable[Sequence[int]]) -> int:
        """The bytes of all buffers that are alive at once, at most."""
        memory = _Memory(self._steps)
        return max(memory.run(group) for group in groups)


class _Memory:
    """The bytes of buffers in the arena that are alive while steps run, sizes as hinted.

    Those that are returned, or that PyTorch is called with, are not in the arena.
    """

    def __init__(self, steps: Sequence[Operation]):
        self.alive = 0
        self._touched = [
            {v for v in map(array_of, s.operands) if isinstance(v.owner, AllocOp)} for s in steps
        ]
        self._users: dict[SSAValue, set[int]] = {}
        for position, values in enumerate(self._touched):
            for value in values:
                self._users.setdefault(value, set()).add(position)
        self._made: set[SSAValue] = set()
        known = {step for step in steps if isinstance(step, LaunchOp)}
        self._stays = {value for value in self._users if not known.issuperset(users_of(value))}

    def made_by(self, group: Sequence[int]) -> int:
        """The bytes of what steps touch first."""
        new = {value for position in group for value in self._touched[position]} - self._made
        return sum(map(_bytes, new - self._stays))

    def run(self, group: Sequence[int]) -> int:
        """Run steps at once; gives the bytes that are alive meanwhile."""
        self.alive += self.made_by(group)
        most = self.alive
        for position in group:
            for value in self._touched[position]:
                self._made.add(value)
                self._users[value].discard(position)
                if not self._users[value] and value not in self._stays:
                    self.alive -= _bytes(value)
        return most


def _bytes(value: SSAValue) -> int:
    return trips(buffer_bytes(value.type))


def _place(function: func.FuncOp, order: Sequence[Operation]) -> None:
    """Put steps in an order, each behind what makes its operands."""
    block = function.body.block
    end = block.last_op
    assert end is not None
    placed: set[Operation] = set()

    def place(op: Operation) -> None:
        if op in placed:
            return
        placed.add(op)
        for value in (value for inner in ops_in(op) for value in inner.operands):
            if isinstance(value.owner, Operation) and value.owner.parent is block:
                place(value.owner)
        op.detach()
        block.insert_op_before(op, end)

    for op in order:
        place(op)
