"""`mask-tails`: what a loop has beyond whole vectors becomes a loop of its own, of vectors under a mask.

    %m = scf.for %j = %c0 to %c77 step %c1 iter_args(%so_far = %low) -> (f32) { ... }
becomes, with vectors of 16 elements,
    %s = scf.for %j = %c0 to %c64 step %c1 iter_args(%so_far = %low) -> (f32) { ... }
    %m = scf.for %j = %c64 to %c77 step %c1 iter_args(%so_far = %s) -> (f32) { ... }

LLVM would compute what is left one by one, which takes longer than all the rest where a row is short, or has
functions to compute. What it is told of a loop that begins at another constant than 0 (`loop_hints.py`) is
that its vectors come under a mask. A loop whose length is a size is cut at the end of as many whole vectors
as there are:

    %whole = arith.andi %length, %cm16
    scf.for %j = %c0 to %whole step %c1 { ... math.exp ... }
    scf.for %j = %whole to %length step %c1 { ... math.exp ... }

Declined are contractions, loops with another one inside, those that do not begin at 0, those of less than a
vector or that leave little, those that read every second element or fewer, of which each would be loaded
alone under a mask, reductions of which LLVM decides how many vectors it folds at once, and loops of vectors,
such as those of `tile-windows`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, VectorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.cost import FUNCTION_WORK, scalar_work
from ...analysis.index import constant_of
from ...analysis.windows import stride_along
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import schedule_of
from ...errors import counted
from ..decisions import record
from ..lower_loops import IndexConstants
from .cut_loops import piece_of
from .kernel_loops import NOT_CONCERNED, kernels_of

LEAST = 2
"""Elements beyond whole vectors that are worth a vector."""
LEAST_FOLDED = 7
"""The same where they are folded, as the elements of a vector are once more then."""


def _lanes(loop: scf.ForOp, bits: int) -> int:
    """Elements of a vector of the widest type that a loop reads, writes or folds."""
    carried = [value.type for value in loop.iter_args]
    types: list[Attribute] = [i64 if isinstance(type, IndexType) else type for type in carried]
    for op in ops_in(loop.body):
        if isinstance(op, LoadOp | StoreOp):
            assert isinstance(op.memref.type, MemRefType)
            types.append(op.memref.type.element_type)
    return bits // (8 * max(map(storage_bytes, types), default=1))


@dataclass(frozen=True)
class Whole:
    """As many iterations of a loop as are a multiple of some, a power of two, whatever its length is."""

    multiple: int


def _place(loop: scf.ForOp, bits: int, count: int) -> int | Whole | str:
    """Where a loop is to be cut that computes `count` vectors of so many bits at once, or why nowhere."""
    if any(isinstance(op, scf.ForOp) for op in ops_in(loop.body)):
        return NOT_CONCERNED
    length = constant_of(loop.ub)
    if (constant_of(loop.lb), constant_of(loop.step)) != (0, 1):
        return "it does not go one by one from 0 on"
    if any(isinstance(value.type, VectorType) for op in ops_in(loop) for value in op.results):
        return "it computes vectors"
    if loop.res and not count:
        return "LLVM decides how many vectors it folds at once"
    lanes = _lanes(loop, bits)
    functions = [op for op in ops_in(loop.body) if scalar_work(op) >= FUNCTION_WORK]
    if _skips(loop, computes=bool(functions)):
        return "it leaves out elements of what it reads"
    if length is None:
        # A bf16 is computed in f32: LLVM may take vectors of these.
        widest = max((storage_bytes(op.results[0].type) for op in functions), default=1)
        return Whole(min(lanes, bits // (8 * widest)) * max(count, 1))
    if length < lanes:
        return f"its {length} elements are less than a vector of {lanes}"
    if length % lanes < (LEAST_FOLDED if loop.res else LEAST):
        return f"{length % lanes} elements are left beyond vectors of {lanes}"
    at_once = lanes * max(count, 1)
    return length // at_once * at_once or length // lanes * lanes


def _skips(loop: scf.ForOp, *, computes: bool) -> bool:
    """Whether loads leave out elements: a mask would have each element loaded alone.

    Where other loads read these, vectors are shuffled, which is worth it in a loop that `computes` functions.
    """
    loads = ops_of(loop.body, LoadOp)
    strides = [(op.memref, stride_along(op, loop.body.block.args[0])) for op in loads]
    found = Counter((memref, stride) for memref, stride in strides if stride > 1)
    return any(not computes or count < stride for (_, stride), count in found.items())


def _cut(loop: scf.ForOp, place: int | Whole, constants: IndexConstants) -> None:
    """Replace a loop by one up to a place and one from there on."""
    before = Builder(InsertPoint.before(loop))
    values: list[SSAValue] = list(loop.iter_args)
    if isinstance(place, Whole):
        length = before.insert(arith.MaxSIOp(loop.ub, constants.get(0))).result
        mask = constants.get(-place.multiple)
        between: SSAValue = before.insert(arith.AndIOp(length, mask)).result
        between.name_hint = "whole"
    else:
        between = constants.get(place)
    for start, end in ((loop.lb, between), (between, loop.ub)):
        piece = piece_of(loop, start, end, values, {})
        before.insert(piece)
        values = list(piece.res)
    for old, new in zip(loop.res, values, strict=True):
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


@dataclass(frozen=True)
class MaskTailsPass(ModulePass):
    """Needs kernels as `scf` functions whose schedules say how wide vectors are."""

    name = "mask-tails"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every kernel."""
        for function in kernels_of(op):
            name, schedule = function.sym_name.data, schedule_of(function)
            if (bits := schedule.get("width")) is None:
                record(self.name, name, False, "its schedule has no `width` of vectors", function)
                continue
            place = partial(_place, bits=bits, count=schedule.get("interleave") or 0)
            loops = {o: place(o) for o in ops_in(function) if isinstance(o, scf.ForOp)}
            constants = IndexConstants(function.body.block)
            found = [(loop, at) for loop, at in loops.items() if isinstance(at, int | Whole)]
            for loop, at in found:
                _cut(loop, at, constants)
            reasons = dict.fromkeys(r for r in loops.values() if isinstance(r, str) and r)
            said = counted(len(found), "loop") if found else "; ".join(reasons)
            record(self.name, name, bool(found), said or "there is no loop", function)
