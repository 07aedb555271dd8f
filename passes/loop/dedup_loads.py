"""`dedup-loads`: what a kernel has loaded or computed, it does not load or compute again.

    %a = loop.load %x[%i] : memref<8xf32>
    %b = loop.load %x[%i] : memref<8xf32>
    %y = arith.mulf %a, %b : f32
becomes
    %a = loop.load %x[%i] : memref<8xf32>
    %y = arith.mulf %a, %a : f32

Kernels read their inputs only, so a load, a scalar operation or a whole reduction may stand for any later
one that is the same and sees the same values. Unused ones are erased. Works on loop and tile IR.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure, is_side_effect_free

from ...dialects.inside import ops_of
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, LoadOp, YieldOp
from ...dialects.loop_access import may_stop
from ...dialects.tile import StageOp
from ..decisions import record

_COMMUTATIVE: frozenset[type[Operation]] = frozenset(
    {
        arith.AddfOp,
        arith.MulfOp,
        arith.AddiOp,
        arith.MuliOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
    }
)


def is_reusable(op: Operation) -> bool:
    """Whether a second run of `op` would give the same results."""
    if not op.regions and _is_pure(type(op)):
        return True
    if isinstance(op, LoadOp | StageOp):
        # A scratchpad is filled before it is read and not written after.
        return True
    if isinstance(op, CheckedIndexOp):
        return not may_stop(op)
    if isinstance(op, ForOp):
        return bool(op.res) and all(is_reusable(o) or isinstance(o, YieldOp) for o in op.body.ops)
    if op.regions:
        return bool(op.results) and all(
            is_reusable(o) or o.next_op is None for r in op.regions for b in r.blocks for o in b.ops
        )
    return is_side_effect_free(op)


@functools.cache
def _is_pure(kind: type[Operation]) -> bool:
    """Whether all operations of a kind do nothing but compute; asking each one takes ten times as long."""
    return kind.has_trait(Pure)


def _key(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    """Equal for operations that compute the same; values defined inside are numbered by position."""

    def number(value: SSAValue) -> int:
        return numbers.setdefault(value, len(numbers))

    operands = [number(v) for v in op.operands]
    if type(op) in _COMMUTATIVE:
        operands.sort()
    parts: list[Hashable] = [
        op.name,
        tuple(operands),
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(op.attributes.items()),
        tuple(r.type for r in op.results),
    ]
    if not op.regions:
        return tuple(parts)
    inside: dict[SSAValue, Hashable] = {}
    for region in op.regions:
        for block in region.blocks:
            parts.append(_block_key(block, numbers, inside))
    return tuple(parts)


def _block_key(
    block: Block, numbers: dict[SSAValue, int], inside: dict[SSAValue, Hashable]
) -> Hashable:
    for argument in block.args:
        inside[argument] = ("local", len(inside))
    rows: list[Hashable] = []
    for op in block.ops:
        operands = tuple(
            inside[v] if v in inside else numbers.setdefault(v, len(numbers)) for v in op.operands
        )
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        nested = tuple(_block_key(b, numbers, inside) for r in op.regions for b in r.blocks)
        for result in op.results:
            inside[result] = ("local", len(inside))
        types = tuple(r.type for r in op.results)
        rows.append((op.name, operands, properties, types, nested))
    return tuple(rows)


class _Scope:
    """Removes duplicates block by block; what an enclosing block computed stays known inside."""

    def __init__(self) -> None:
        self.numbers: dict[SSAValue, int] = {}
        self.removed = 0

    def visit(self, block: Block, known: dict[Hashable, Operation]) -> None:
        known = dict(known)
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.visit(inner, known)
            if not is_reusable(op) and not isinstance(op, CheckedIndexOp | AssertOp):
                continue
            earlier = known.setdefault(_key(op, self.numbers), op)
            if earlier is not op:
                for mine, theirs in zip(op.results, earlier.results, strict=True):
                    mine.replace_all_uses_with(theirs)
                op.detach()
                op.erase()
                self.removed += 1


def _erase_unused(block: Block) -> int:
    """Erase reusable operations whose results nobody reads, innermost and last first."""
    erased = 0
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                erased += _erase_unused(inner)
        if op.results and not any(r.uses for r in op.results) and is_reusable(op):
            op.detach()
            op.erase()
            erased += 1
    return erased


def dedup_kernel(kernel: KernelOp) -> int:
    """Remove duplicate and unused operations of one kernel; gives how many."""
    scope = _Scope()
    scope.visit(kernel.body.block, {})
    return scope.removed + _erase_unused(kernel.body.block)


@dataclass(frozen=True)
class DedupLoadsPass(ModulePass):
    """Remove duplicate loads, scalar operations and reductions from every kernel."""

    name = "dedup-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            removed = dedup_kernel(kernel)
            reason = f"removed {removed} operations" if removed else "nothing is computed twice"
            record(self.name, kernel.sym_name.data, removed > 0, reason, kernel)
