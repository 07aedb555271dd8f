"""Which launches depend on each other, and which groups of them may run at once.

A group is neighbouring launches with one number, none of which touches what another writes:

    kernel.launch @f(%x, %a) blocks(1) threads(1) {group = 0 : i64, writes = array<i64: 1>} : …
    kernel.launch @g(%x, %b) blocks(1) threads(1) {group = 0 : i64, writes = array<i64: 1>} : …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryEffectKind, SymbolTable, get_effects

from ..dialects.kernel import CallOp, LaunchOp, TensorMapOp
from ..errors import DeploError

GROUP = "group"
"""The attribute of a launch that says which group it is in."""
WRITES = "writes"
"""That which says, by number, which of its arguments it writes."""


def written_arguments(module: ModuleOp, launch: LaunchOp) -> tuple[int, ...]:
    """The arguments that a launch may write, by number: all, if its kernel is not there to be read."""
    kernel = SymbolTable.lookup_symbol(module, launch.kernel)
    blocks = [] if kernel is None or not kernel.regions else list(kernel.regions[0].blocks)
    if not blocks or len(blocks[0].args) < len(launch.arguments):
        return tuple(range(len(launch.arguments)))
    entry = blocks[0].args
    return tuple(i for i in range(len(launch.arguments)) if _is_written(entry[i]))


def _is_written(buffer: SSAValue) -> bool:
    """Whether anything that uses a buffer may write it."""
    return any(_writes(use.operation, buffer) for use in buffer.uses)


def _writes(op: Operation, buffer: SSAValue) -> bool:
    effects = get_effects(op)
    if effects is None or any(isinstance(result.type, MemRefType) for result in op.results):
        return True  # what it does with the buffer is not known here
    if not any(effect.kind is MemoryEffectKind.WRITE for effect in effects):
        return False
    destination = getattr(op, "destination", None)
    return destination is None or destination is buffer


def array_of(value: SSAValue) -> SSAValue:
    """The array that a launch's argument is, or is a map of."""
    return value.owner.tensor if isinstance(value.owner, TensorMapOp) else value


def users_of(array: SSAValue) -> Iterator[Operation]:
    """What uses an array; what uses a map of it does."""
    for use in array.uses:
        if isinstance(use.operation, TensorMapOp):
            yield from users_of(use.operation.result)
        else:
            yield use.operation


class Touches:
    """The arrays that a launch reads and writes, all of them and those."""

    def __init__(self, launch: LaunchOp, writes: Sequence[int]):
        arrays = [array_of(value) for value in launch.arguments]
        self.all = frozenset(arrays)
        self.written = frozenset(arrays[i] for i in writes)

    def must_wait_for(self, other: Touches) -> bool:
        """Whether one of the two writes what the other touches."""
        return bool(self.written & other.all or other.written & self.all)


def mark_group(launches: Sequence[LaunchOp], number: int, writes: Sequence[Sequence[int]]) -> None:
    """Say that launches are one group."""
    for launch, written in zip(launches, writes, strict=True):
        launch.attributes[GROUP] = IntegerAttr(number, i64)
        launch.attributes[WRITES] = DenseArrayBase.from_list(i64, list(written))


def marked_writes(launch: LaunchOp) -> tuple[int, ...] | None:
    """What a launch in a group says that it writes; None of one that says nothing."""
    said = launch.attributes.get(WRITES)
    return tuple(map(int, said.iter_values())) if isinstance(said, DenseArrayBase) else None


def groups_of(steps: Sequence[LaunchOp | CallOp]) -> list[list[LaunchOp | CallOp]]:
    """The steps of a host function, those that may run at once together.

    Raises DeploError for a group in which one launch depends on another.
    """
    groups: list[list[LaunchOp | CallOp]] = []
    touched: list[Touches] = []
    for step in steps:
        number = step.attributes.get(GROUP)
        before = groups[-1][-1].attributes.get(GROUP) if groups else None
        if not isinstance(step, LaunchOp) or number is None or number != before:
            groups.append([])
            touched = []
        groups[-1].append(step)
        if isinstance(step, LaunchOp):
            writes = marked_writes(step)
            own = Touches(step, range(len(step.arguments)) if writes is None else writes)
            if any(own.must_wait_for(other) for other in touched):
                raise DeploError(f"{step.kernel} is in a group with a launch that it depends on")
            touched.append(own)
    return groups
