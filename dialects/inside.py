"""What is inside: every operation that another one, a region or a block holds."""

from __future__ import annotations

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
