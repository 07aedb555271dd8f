"""What is inside: every operation that another one, a region or a block holds."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Block, Operation, Region


def ops_in(root: Operation | Region | Block) -> list[Operation]:
    """The operations of `root.walk()`, itself first if it is one, as they are now.

    xDSL's generators hand each operation up through every level around it; passes look through kernels so
    often that a list is worth it.
    """
    found: list[Operation] = []
    match root:
        case Block():
            _collect(root, found)
        case Region():
            _collect_all(root, found)
        case _:
            found.append(root)
            for region in root.regions:
                _collect_all(region, found)
    return found


Kind = TypeVar("Kind", bound=Operation)


class _Kinds(dict[type[Operation], bool]):
    """Whether classes are subclasses of some others."""

    def __init__(self, kinds: tuple[type[Operation], ...]):
        super().__init__()
        self._kinds = kinds

    def __missing__(self, kind: type[Operation]) -> bool:
        self[kind] = issubclass(kind, self._kinds)
        return self[kind]


_KINDS: dict[tuple[type[Operation], ...], _Kinds] = {}


def ops_of(root: Operation | Region | Block, *kinds: type[Kind]) -> list[Kind]:
    """Those of `ops_in(root)` that are of one of the classes.

    `isinstance` takes five times as long, for operations are abstract base classes.
    """
    if kinds not in _KINDS:
        _KINDS[kinds] = _Kinds(kinds)
    is_one = _KINDS[kinds]
    return [op for op in ops_in(root) if is_one[type(op)]]  # pyright: ignore[reportReturnType]


def _collect_all(region: Region, found: list[Operation]) -> None:
    block = region.first_block
    while block is not None:
        _collect(block, found)
        block = block.next_block


def _collect(block: Block, found: list[Operation]) -> None:
    op = block.first_op
    while op is not None:
        found.append(op)
        for region in op.regions:
            _collect_all(region, found)
        op = op._next_op  # pyright: ignore[reportPrivateUsage] (a property takes twice as long)


def has_flat_addresses(op: Operation) -> bool:
    """Whether an operation stands in a `cuda.func`: there all memory is one row, and an index its offset.

    The pass that made them so had proofs of their alignment, which an offset does not show.
    """
    parent = op.parent_op()
    while parent is not None and parent.name != "cuda.func":
        parent = parent.parent_op()
    return parent is not None
