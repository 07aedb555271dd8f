"""`stage-windows`: what the windows of a CPU block read, the block copies first, with what lies around it.

    loop.for %k = 0 to 56 {
      loop.for %l = 0 to 56 {
        %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
            %in = loop.test[%k + %n >= 1, %k + %n < 57, %l + %m >= 1, %l + %m < 57]
            %v = scf.if %in -> (f32) { ... %x[%j, %k + %n - 1, %l + %m - 1] ... } else { ... 0 ... }
            ...
becomes
    %window = tile.pack (%r = 58, %c = 58) : memref<58x58xf32, "shared"> {
      %in = loop.test[%r >= 1, %r < 57, %c >= 1, %c < 57]
      %v = scf.if %in -> (f32) { ... %x[%j, %r - 1, %c - 1] ... } else { ... 0 ... }
      tile.yield %v : f32
    }
    loop.for %k = 0 to 56 { ... %v = loop.load %window[%k + %n, %l + %m] ...

So each element is tested, and computed, once, not once for each window that it is in, and what is left are
sums of neighbours without conditions, of which LLVM makes vectors. Where windows are two elements apart, those
are made neighbours that are two elements apart (`phases 2`).

Declined are GPUs, windows of more than two axes or that overlap little, and copies that do not fit a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.conditions import Linear, linear
from ...analysis.targets import get_target
from ...dialects.affine import ZERO
from ...dialects.loop import ForOp, KernelOp, LoadOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.tile import LaunchOp
from ...dialects.tile_pack import SHARED, PackOp, PackYieldOp
from ...errors import counted
from ..decisions import record
from ..replacing import replace
from .rewrite_indices import index_of, rewrite_index

MOST_BYTES = 128 << 10
"""Of a copy: half of a small second-level cache."""

OVERLAP = 2
"""Windows that an element is in, at least, for its copy to be worth it."""

Sum = dict[SSAValue, int]
"""Multiples of counters, added up."""


@dataclass(frozen=True)
class _Window:
    """A value that depends on two sums of counters alone, by which it can be told where it stands."""

    value: scf.IfOp
    test: TestOp
    axes: tuple[Sum, ...]
    """At most two, rows and columns; the counter of the innermost loop that reduces nothing is in the last."""
    stride: int
    """Columns from a window to the next one."""
    around: ForOp
    """The loop in front of which it can be copied."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each of the sums has."""
        return tuple(1 + sum(c * (_extent(v) - 1) for v, c in axis.items()) for axis in self.axes)


def _extent(counter: SSAValue) -> int:
    loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
    assert isinstance(loop, ForOp) and isinstance(loop.extent.data, int)
    return loop.extent.data


def _loops(op: Operation) -> list[ForOp] | str:
    """The reducing loops around an operation, and the one or two around these; innermost first."""
    found: list[ForOp] = []
    plain = 0
    parent = op.parent_op()
    while plain < 2 and not isinstance(parent, LaunchOp):
        if isinstance(parent, ForOp):
            if plain and parent.res:
                break
            plain += not parent.res
            found.append(parent)
        elif not isinstance(parent, scf.IfOp) or parent.output:
            return "it is part of a branch"
        assert parent is not None
        parent = parent.parent_op()
    if not found or not found[0].res or not plain:
        return "it is in no reduction inside of a loop"
    if any(not isinstance(loop.extent.data, int) for loop in found):
        return "a loop's length is not known"
    return found


def _find(value: scf.IfOp) -> _Window | str:
    """The window that a value under a condition is of, or why there is none."""
    test = value.cond.owner
    if not isinstance(test, TestOp) or len(value.output) != 1 or not value.false_region.blocks:
        return "a condition chooses no value"
    loops = _loops(value)
    if isinstance(loops, str):
        return loops
    inside = [op for op in value.walk() if op is not value]
    if any(not isinstance(op.owner, arith.ConstantOp) for op in _yielded(value.false_region)):
        return "outside of the image is no constant"
    across = next(loop for loop in loops if not loop.res)
    sums = _sums([test, *inside], loops)
    if isinstance(sums, str):
        return sums
    axes = _axes([each for each, _ in sums], across.induction_var)
    if isinstance(axes, str):
        return axes
    if any(test is op and sum(bool(axis.keys() & s.keys()) for axis in axes) > 1 for s, op in sums):
        return "a condition is one of rows and columns"
    used = {counter for axis in axes for counter in axis}
    around = next(loop for loop in reversed(loops) if not loop.res and loop.induction_var in used)
    made = {*around.walk()} - {*inside, test}
    if any(operand.owner in made for op in (test, *inside) for operand in op.operands):
        return "it reads what a loop around it computes"
    window = _Window(value, test, axes, axes[-1][across.induction_var], around)
    windows = prod(_extent(loop.induction_var) for loop in loops if loop.induction_var in used)
    if prod(window.shape) * OVERLAP > windows:
        return "windows hardly overlap"
    if prod(window.shape) * storage_bytes(value.output[0].type) > MOST_BYTES:
        return "a copy of what a block reads is too large"
    return window


def _yielded(region: Region) -> list[SSAValue]:
    end = region.block.last_op
    return [] if end is None else list(end.operands)


def _sums(ops: Iterable[Operation], loops: list[ForOp]) -> list[tuple[Sum, Operation]] | str:
    """What the index expressions of operations add up of the counters of some loops."""
    counters = {loop.induction_var for loop in loops}
    found: list[tuple[Sum, Operation]] = []
    for op in ops:
        index = index_of(op)
        if index is None:
            if counters.intersection(op.operands):
                return "it computes with a counter"
            continue
        exprs, operands = index
        for parts in map(linear, exprs):
            if parts is None:
                if counters.intersection(operands):
                    return "an index is no sum"
                continue
            local = _local(parts, operands, counters)
            if local:
                found.append((local, op))
    return found


def _local(parts: Linear, operands: list[SSAValue], counters: set[SSAValue]) -> Sum:
    found: Sum = {}
    for dim, coefficient in parts.coefficients.items():
        if operands[dim] in counters:
            found[operands[dim]] = found.get(operands[dim], 0) + coefficient
    return {value: coefficient for value, coefficient in found.items() if coefficient}


def _axes(sums: list[Sum], across: SSAValue) -> tuple[Sum, ...] | str:
    """One or two sums without a common counter of which all others are made, that of `across` last."""
    axes: list[Sum] = []
    for each in sorted(sums, key=len):
        rest = each
        for axis in axes:
            rest = _without(rest, axis)
            if isinstance(rest, str):
                return rest
        if rest:
            factor = gcd(*rest.values()) * (1 if min(rest.values()) > 0 else -1)
            axes.append({value: c // factor for value, c in rest.items()})
    if any(min(axis.values()) < 0 for axis in axes):
        return "a window is read backwards"
    if any(1 not in axis.values() for axis in axes):
        return "elements are left out"
    axes.sort(key=lambda axis: across in axis)
    if not axes or len(axes) > 2 or across not in axes[-1]:
        return "a window has not one or two axes"
    return tuple(axes)


def _without(total: Sum, axis: Sum) -> Sum | str:
    """A sum less the multiple of another that is in it; why not if it is something else of its counters."""
    common = total.keys() & axis.keys()
    if not common:
        return total
    factors = {total.get(value, 0) / c for value, c in axis.items()}
    if len(factors) > 1:
        return "rows and columns are counted in more than one way"
    return {value: c for value, c in total.items() if value not in common}


def stage(window: _Window) -> None:
    """Copy what a window reads in front of the loops over it, and read the copy."""
    value, axes = window.value, window.axes
    type = value.output[0].type
    shape = (1,) * (2 - len(axes)) + window.shape
    body = Block(arg_types=[IndexType(), IndexType()])
    row, column = body.args
    row.name_hint, column.name_hint = "r", "c"
    copied: dict[SSAValue, SSAValue] = {}
    body.add_ops([window.test.clone(copied), value.clone(copied), PackYieldOp()])
    end = body.last_op
    assert end is not None
    end.operands = [copied[value.output[0]]]
    old: dict[SSAValue, AffineExpr] = {}
    for number, axis in enumerate(axes, 2 - len(axes)):
        carrier = next(counter for counter, c in axis.items() if c == 1)
        old |= dict.fromkeys(axis, ZERO) | {carrier: AffineExpr.dimension(number)}
    phases = window.stride if window.stride > 1 else None
    pack = PackOp(MemRefType(type, shape, memory_space=SHARED), Region(body), phases=phases)
    pack.packed.name_hint = value.output[0].name_hint
    pack.location = value.location
    block = window.around.parent
    assert block is not None
    block.insert_op_before(pack, window.around)
    for op in list(pack.body.walk()):
        rewrite_index(op, old, [row, column])
    counters = [counter for axis in axes for counter in axis]
    dims = {counter: AffineExpr.dimension(n) for n, counter in enumerate(counters)}
    exprs = [_expr({dims[v]: c for v, c in axis.items()}) for axis in axes]
    replace(value, LoadOp(pack.packed, [ZERO] * (2 - len(axes)) + exprs, counters))
    if window.test.result.first_use is None:
        window.test.detach()
        window.test.erase()


def _expr(terms: dict[AffineExpr, int]) -> AffineExpr:
    total = ZERO
    for dim, coefficient in terms.items():
        total = total + dim * coefficient
    return total


@dataclass(frozen=True)
class StageWindowsPass(ModulePass):
    """Give the blocks of a CPU copies of what their windows read."""

    name = "stage-windows"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = get_target(self.target).is_gpu
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            count, why = (0, "on a GPU each thread has a window") if gpu else _stage_all(kernel)
            said = f"{counted(count, 'operand')} of windows" if count else why
            record(self.name, kernel.sym_name.data, count > 0, said, kernel)


def _stage_all(kernel: KernelOp) -> tuple[int, str]:
    """Stage the windows of a kernel; how many, and why not others."""
    reasons: dict[str, None] = {}
    count = 0
    for op in [o for o in kernel.walk() if isinstance(o, scf.IfOp) and o.output]:
        launch = op.parent_op()
        while launch is not None and not isinstance(launch, LaunchOp | PackOp):
            launch = launch.parent_op()
        found = "it is packed already" if isinstance(launch, PackOp) else _find(op)
        if isinstance(found, str):
            reasons[found] = None
        else:
            stage(found)
            count += 1
    return count, "; ".join(reasons) or "no reduction has a condition"
