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
sums of neighbours without conditions, of which LLVM makes vectors. Where windows are two elements apart,
elements that are become neighbours (`phases 2`).

Declined are GPUs, windows of more than two axes or that overlap little, and copies that do not fit a cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...analysis.conditions import terms
from ...analysis.index import always_holds, operand_ranges, simplify
from ...analysis.launches import open_kernels
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, IndexOp, KernelOp, LoadOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import extent_expr, shape_of
from ...dialects.syntax import scalar_attr
from ...dialects.tile import LaunchOp
from ...dialects.tile_pack import SHARED, PackOp, PackYieldOp
from ...errors import counted
from ...index.affine import ZERO, replace_dims
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
    exprs: list[AffineExpr]
    """What is at least zero where there is an element, as the test or a condition around its loops says."""
    operands: list[SSAValue]
    axes: tuple[Sum, ...]
    """At most two, rows and columns; the innermost loop that reduces nothing counts in the last."""
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
            break
        parent = parent.parent_op()
    known = all(isinstance(loop.extent.data, int) for loop in found)
    if not plain or not found[0].res or not known:
        return "it is in no reduction inside of a loop, all of known lengths"
    return found


def _find(value: scf.IfOp) -> _Window | str:
    """The window that a value under a condition is of, or why there is none."""
    test, outside = value.cond.owner, value.false_region.block.last_op
    assert outside is not None
    constant = all(isinstance(v.owner, arith.ConstantOp) for v in outside.operands)
    inside = [op for op in ops_in(value) if op is not value]
    if not isinstance(test, TestOp) or not constant or not all(map(_is_plain, inside)):
        return "a condition chooses something else than a value or a constant"
    loops = _loops(value)
    if isinstance(loops, str):
        return loops
    across = next(loop for loop in loops if not loop.res)
    sums = _sums([test, *inside], loops)
    if None in sums:
        return "an index is no sum of counters"
    axes = _axes([each for each in sums if each], across.induction_var)
    found = _inside(value, test, loops)
    if found is None:
        return "a condition in it says what it reads"
    exprs, operands = found
    tested = _sums([TestOp(exprs, operands)], loops)
    if axes is None or not all(t and _number(axes, t) == 1 for t in tested):
        return "its elements are not told apart by rows and columns"
    used = {counter for axis in axes for counter in axis}
    around = next(loop for loop in reversed(loops) if not loop.res and loop.induction_var in used)
    made = {*ops_in(around)} - {*inside, test}
    if any(operand.owner in made for op in (test, *inside) for operand in op.operands):
        return "it reads what a loop around it computes"
    stride = axes[-1][across.induction_var]
    window = _Window(value, test, exprs, operands, axes, stride, around)
    windows = prod(_extent(loop.induction_var) for loop in loops if loop.induction_var in used)
    if prod(window.shape) * OVERLAP > windows:
        return "windows hardly overlap"
    widening = _widening(value)
    copied = (value if widening is None else widening).results[0].type
    if prod(window.shape) * storage_bytes(copied) > MOST_BYTES:
        return "a copy of what a block reads is too large"
    return window


def _is_plain(op: Operation) -> bool:
    """Whether an operation only computes, or loads an element."""
    plain = isinstance(op, LoadOp | IndexOp | TestOp | scf.IfOp | scf.YieldOp)
    return plain or op.dialect_name() in ("arith", "math")


def _sums(ops: Iterable[Operation], loops: list[ForOp]) -> list[Sum | None]:
    """What index expressions add up of the counters of some loops; None for one that does something else."""
    counters: set[SSAValue] = {loop.induction_var for loop in loops}
    found: list[Sum | None] = []
    for op in ops:
        exprs, operands = index_of(op) or ((), list(op.operands))
        if not counters.intersection(operands):
            continue
        found += [_sum(expr, operands, counters) for expr in exprs] or [None]
    return found


def _sum(expr: AffineExpr, operands: list[SSAValue], counters: set[SSAValue]) -> Sum | None:
    found = terms(expr, operands)
    if found is None:
        return None
    return {v: c for v, c in found[0].items() if isinstance(v, SSAValue) and v in counters}


def _inside(
    value: scf.IfOp, test: TestOp, loops: list[ForOp]
) -> tuple[list[AffineExpr], list[SSAValue]] | None:
    """What a test says, and that loads read inside of their arrays where it leaves that to a loop's guard.

    None if some load is not made whenever the test holds, and nothing says where it is.
    """
    exprs, operands = list(test.exprs), list(test.operands_)
    for load in ops_of(value, LoadOp):
        used = list(load.indices)
        ranges = operand_ranges(used)
        moved = _take_in(used, operands)
        held = [
            replace_dims(expr, dims)
            for inner in _tests_around(load, value)
            for dims in [_take_in(inner.operands_, operands)]
            for expr in inner.exprs
        ]
        assert isinstance(load.memref.type, MemRefType)
        for expr, extent in zip(load.map.data.results, shape_of(load.memref.type), strict=True):
            for bound in (expr, expr * -1 + extent_expr(extent - 1)):
                here = replace_dims(bound, moved)
                local = _sum(bound, used, {loop.induction_var for loop in loops})
                if local == {} or always_holds(simplify(bound, ranges), ranges):
                    continue
                if _follows(here, (*exprs, *held), operands):
                    continue
                if load.parent_op() is not value:
                    return None
                exprs.append(here)
    return exprs, operands


def _take_in(used: Sequence[SSAValue], operands: list[SSAValue]) -> list[AffineExpr]:
    """Add values to operands; gives the dimension of each."""
    start = len(operands)
    operands += used
    return [AffineExpr.dimension(start + i) for i in range(len(used))]


def _tests_around(load: LoadOp, value: scf.IfOp) -> list[TestOp]:
    """The tests of the branches in a value that a load stands in because they hold."""
    found: list[TestOp] = []
    op: Operation = load
    while (parent := op.parent_op()) is not value:
        assert parent is not None
        if isinstance(parent, scf.IfOp) and op.parent is parent.true_region.block:
            if isinstance(test := parent.cond.owner, TestOp):
                found.append(test)
        op = parent
    return found


def _follows(bound: AffineExpr, held: Iterable[AffineExpr], operands: list[SSAValue]) -> bool:
    """Whether a sum is at least zero where others are: it is made of multiples of these, and more."""
    found = terms(bound, operands)
    if found is None:
        return False
    left, constant = found
    known = [each for expr in held if (each := terms(expr, operands)) is not None]
    for parts, least in sorted(known, key=lambda each: each[1]):
        factors = {left.get(term, 0) / c for term, c in parts.items()}
        if len(factors) == 1 and (factor := factors.pop()) > 0:
            left = {term: c for term, c in left.items() if term not in parts}
            constant -= factor * least
    return not left and constant >= 0


def _number(axes: tuple[Sum, ...], total: Sum) -> int:
    """Of how many axes a sum is."""
    return sum(bool(axis.keys() & total.keys()) for axis in axes)


def _axes(sums: list[Sum], across: SSAValue) -> tuple[Sum, ...] | None:
    """One or two sums without a common counter of which all others are made, that of `across` last."""
    axes: list[Sum] = []
    for each in sorted(sums, key=len):
        rest = each
        for axis in axes:
            rest = _without(rest, axis)
        if any(axis.keys() & rest.keys() for axis in axes):
            return None
        if rest:
            factor = gcd(*rest.values()) * (1 if min(rest.values()) > 0 else -1)
            axes.append({value: c // factor for value, c in rest.items()})
    # A window is read forwards, and no element between the first and the last one is left out.
    if any(min(axis.values()) < 0 or 1 not in axis.values() for axis in axes):
        return None
    axes.sort(key=lambda axis: across in axis)
    return tuple(axes) if 1 <= len(axes) <= 2 and across in axes[-1] else None


def _without(total: Sum, axis: Sum) -> Sum:
    """A sum less the multiple of another one that is in it."""
    factors = {total.get(value, 0) / c for value, c in axis.items()}
    if len(factors) > 1:
        return total
    return {value: c for value, c in total.items() if value not in axis}


def stage(window: _Window) -> None:
    """Copy what a window reads in front of the loops over it, and read the copy."""
    value, axes = window.value, window.axes
    type = value.output[0].type
    shape = (1,) * (2 - len(axes)) + window.shape
    body = Block(arg_types=[IndexType(), IndexType()])
    row, column = body.args
    row.name_hint, column.name_hint = "r", "c"
    copied: dict[SSAValue, SSAValue] = {}
    test = TestOp(window.exprs, window.operands)
    copied[window.test.result] = test.result
    body.add_ops([test, value.clone(copied), PackYieldOp()])
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
    for op in ops_in(pack.body):
        rewrite_index(op, old, [row, column])
    counters = [counter for axis in axes for counter in axis]
    dims = {counter: AffineExpr.dimension(n) for n, counter in enumerate(counters)}
    exprs = [_expr({dims[v]: c for v, c in axis.items()}) for axis in axes]
    replace(value, LoadOp(pack.packed, [ZERO] * (2 - len(axes)) + exprs, counters))
    if window.test.result.first_use is None:
        window.test.detach()
        window.test.erase()


def _widening(value: scf.IfOp) -> arith.ExtFOp | None:
    """What makes a value wider, if that is all that is done with it."""
    match [use.operation for use in value.output[0].uses]:
        case [arith.ExtFOp() as widening]:
            return widening
        case _:
            return None


def _widen(value: scf.IfOp) -> scf.IfOp | None:
    """The value after it is made wider, in its place, if it is: copied is what is wide already."""
    widening = _widening(value)
    if widening is None:
        return None
    type = widening.result.type
    regions = [value.detach_region(region) for region in list(value.regions)]
    for region in regions:
        end = region.block.last_op
        assert isinstance(end, scf.YieldOp)
        (narrow,) = end.operands
        wide: Operation = arith.ExtFOp(narrow, type)
        if isinstance(narrow.owner, arith.ConstantOp) and isinstance(narrow.owner.value, FloatAttr):
            wide = arith.ConstantOp(scalar_attr(narrow.owner.value.value.data, type))
        region.block.insert_op_before(wide, end)
        end.operands = wide.results
        if isinstance(narrow.owner, arith.ConstantOp) and narrow.first_use is None:
            Rewriter.erase_op(narrow.owner)
    made = scf.IfOp(value.cond, [type], regions[0], regions[1])
    replace(widening, made)
    value.detach()
    value.erase()
    return made


def _expr(terms: dict[AffineExpr, int]) -> AffineExpr:
    total = ZERO
    for dim, coefficient in terms.items():
        total = total + dim * coefficient
    return total


@dataclass(frozen=True)
class StageWindowsPass(ModulePass):
    """Give the blocks of a CPU copies of what their windows read."""

    name = "stage-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            count, why = _stage_all(kernel)
            said = f"{counted(count, 'operand')} of windows" if count else why
            record(self.name, kernel.sym_name.data, count > 0, said, kernel, steps=[self])


def _stage_all(kernel: KernelOp) -> tuple[int, str]:
    """Stage the windows of a kernel; how many, and why not others."""
    reasons: dict[str, None] = {}
    count = 0
    for op in [o for o in ops_in(kernel) if isinstance(o, scf.IfOp) and len(o.output) == 1]:
        launch = op.parent_op()
        while launch is not None and not isinstance(launch, LaunchOp | PackOp):
            launch = launch.parent_op()
        found = "it is packed already" if isinstance(launch, PackOp) else _find(op)
        if isinstance(found, str):
            reasons[found] = None
            continue
        wide = _find(widened) if (widened := _widen(op)) is not None else found
        assert isinstance(wide, _Window)
        stage(wide)
        count += 1
    return count, "; ".join(reasons) or "no reduction has a condition"
