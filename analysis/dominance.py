"""Does every value's definition reach its uses?

xDSL's verifier checks neither dominance nor scope. `check_dominance` does, in time linear in the
number of operands (and near-linear in the number of blocks of a region that has several):

* in a block, a value is defined above its use, unless the block is in a graph region;
* across the blocks of a region, the defining block dominates the block of the use;
* a value of an enclosing region is visible, unless an `IsolatedFromAbove` op lies between;
* a value never leaves the region that defines it.

A graph region is one where MLIR lets ops stand in any order: the body of a module, and each region of an
op that MLIR does not know. In all others dominance is demanded.

Code in blocks that no path from the entry reaches is not checked, as in MLIR.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

_GRAPHS = ("hw.module", "equivalence.graph")
"""Further ops whose regions are graphs: CIRCT's circuits, and xDSL's e-graphs, which have cycles."""
_UNKNOWN_DIALECT = "test."
"""xDSL's dialect of ops for tests; MLIR takes them for unregistered ones."""


class DominanceError(VerifyException):
    """An operand whose definition does not reach it; `op` is the op that uses it."""

    def __init__(self, op: Operation, operand: SSAValue, index: int):
        self.op = op
        super().__init__(f"operand #{index}{_name(operand)} {_reason(op, operand)}")


def check_dominance(op: Operation) -> None:
    """Raise `DominanceError` at the first use in `op`'s regions that its definition does not reach.

    `op`'s own operands are not looked at; values from above `op` count as undefined.
    """
    for region in op.regions:
        _check_region(region, set())


def _check_region(region: Region, visible: set[SSAValue]) -> None:
    """Walk the dominator tree; on entry to a block `visible` holds exactly what its ops may use."""
    if (entry := region.first_block) is None:
        return
    children: dict[Block, list[Block]] = {entry: []}
    if entry.next_block is not None:
        children = _dominator_tree(entry)
    stack: list[tuple[Block, list[SSAValue] | None]] = [(entry, None)]
    is_graph = _is_graph(region.parent)
    while stack:
        block, to_hide = stack.pop()
        if to_hide is not None:
            visible.difference_update(to_hide)
            continue
        stack.append((block, _check_block(block, visible, is_graph)))
        stack.extend((child, None) for child in children[block])


def _is_graph(op: Operation | None) -> bool:
    """Are the regions of `op` graph regions?"""
    if op is None or isinstance(op, ModuleOp | UnregisteredOp):
        return True
    return op.name in _GRAPHS or op.name.startswith(_UNKNOWN_DIALECT)


def _check_block(block: Block, visible: set[SSAValue], is_graph: bool) -> list[SSAValue]:
    """Check the ops of `block` and leave its values in `visible`; returns those values."""
    defined: list[SSAValue] = list(block.args)
    if is_graph:
        defined.extend(result for op in block.ops for result in op.results)
    visible.update(defined)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                raise DominanceError(op, operand, index)
        if op.regions:
            inner: set[SSAValue] = set() if op.has_trait(IsolatedFromAbove) else visible
            for region in op.regions:
                _check_region(region, inner)
        if not is_graph:
            defined.extend(op.results)
            visible.update(op.results)
    return defined


def _dominator_tree(entry: Block) -> dict[Block, list[Block]]:
    """Children in the dominator tree of every reachable block.

    K. D. Cooper, T. J. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
    """
    order = _reverse_postorder(entry)
    number = {block: position for position, block in enumerate(order)}
    predecessors: dict[Block, list[int]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            predecessors[successor].append(number[block])
    parent = [0] + [-1] * (len(order) - 1)
    changed = True
    while changed:
        changed = False
        for position in range(1, len(order)):
            known = [p for p in predecessors[order[position]] if parent[p] >= 0]
            best = _common_ancestor(known, parent)
            if parent[position] != best:
                parent[position] = best
                changed = True
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for position in range(1, len(order)):
        children[order[parent[position]]].append(order[position])
    return children


def _common_ancestor(positions: Iterable[int], parent: list[int]) -> int:
    first, *others = positions
    for other in others:
        while first != other:
            if first > other:
                first = parent[first]
            else:
                other = parent[other]
    return first


def _reverse_postorder(entry: Block) -> list[Block]:
    seen = {entry}
    order: list[Block] = []
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        if (fresh := next((s for s in successors if s not in seen), None)) is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(_successors(fresh))))
    order.reverse()
    return order


def _successors(block: Block) -> Iterable[Block]:
    return () if block.last_op is None else block.last_op.successors


def _name(value: SSAValue) -> str:
    return f" (%{value.name_hint})" if value.name_hint else ""


def _reason(user: Operation, operand: SSAValue) -> str:
    """Why the definition of `operand` does not reach `user`, in words."""
    owner = operand.owner
    block = owner if isinstance(owner, Block) else owner.parent
    if block is None:
        return "is defined by an op that is not part of the program"
    ancestor: Operation | None = user
    wall: Operation | None = None
    while ancestor is not None and ancestor.parent_region() is not block.parent:
        ancestor = ancestor.parent_op()
        if ancestor is not None and ancestor.has_trait(IsolatedFromAbove):
            wall = ancestor
    if ancestor is None:
        return "is defined in a region that does not enclose this use"
    if wall is not None:
        return f"is defined outside '{wall.name}', whose body cannot see it"
    if ancestor.parent is block:
        return "is used before it is defined"
    return "is defined in a block that does not dominate this use"
