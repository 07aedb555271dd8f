"""`small-angles`: loops take sines, cosines, tangents of what is not large; if something is, they run again.

    scf.for %j = %c0 to %c512 step %c1 {
      %v = loop.load %x[%i, %j]
      %s = math.sin %v : f32
      loop.store %s, %y[%i, %j]
    }
becomes
    %large = scf.for %j = ... iter_args(%any = %false) -> (i1) {
      %v = loop.load %x[%i, %j]
      %s = func.call @deplo_sin_small_f32(%v)     // right if |%v| <= 65536, or no number
      loop.store %s, %y[%i, %j]
      %is_large = func.call @deplo_is_large_angle_f32(%v)
      %any_next = arith.ori %any, %is_large
      scf.yield %any_next
    }
    scf.if %large { scf.for ... }                 // as it was

What is left after multiples of pi / 2 is found by few multiply-adds, for arguments up to some size; all
floats need many more digits of pi, a branch or a call, and with these LLVM makes no vectors of the loop. So
the last bit of a sine may depend on whether another angle of its loop is large, but on nothing else.

Declined are loops that have loops in them, those that read what they store, which cannot run again, and
functions in a branch. Angles of f64 are large from 2**30 on; its tangent is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp
from .kernel_loops import change_loops
from .math_builder import MathBuilder
from .math_functions import call, library_name

_FUNCTIONS: dict[type[Operation], tuple[str, tuple[type[Float32Type | Float64Type], ...]]] = {
    math.SinOp: ("sin", (Float32Type, Float64Type)),
    math.CosOp: ("cos", (Float32Type, Float64Type)),
    math.TanOp: ("tan", (Float32Type,)),
}
"""Operation class -> the function's name, and the types for which the library has it."""


def _is_function(op: Operation) -> bool:
    _, types = _FUNCTIONS.get(op.__class__, ("", ()))
    return isinstance(op.results[0].type, types) if op.results else False


def _reason(loop: scf.ForOp) -> str | None:
    """Why a loop stays as it is."""
    ops = ops_in(loop.body)
    found = [op for op in ops if _is_function(op)]
    if not found:
        return "there is no sine or cosine of a float, or tangent of f32"
    if any(isinstance(op, scf.ForOp) for op in ops):
        return "a loop is left inside"
    if any(op.parent is not loop.body.block for op in found):
        return "a sine, cosine or tangent is in a branch"
    stored = {op.memref for op in ops if isinstance(op, StoreOp)}
    if any(isinstance(op, LoadOp) and op.memref in stored for op in ops):
        return "the loop reads what it stores"
    return None


def _speculate(loop: scf.ForOp) -> str | None:
    """Replace a loop by one for small angles, and by itself where that was not enough; or say why not."""
    if (reason := _reason(loop)) is not None:
        return reason
    m = MathBuilder(loop)
    again = loop.clone()
    nothing = m.int(0, i1)
    block = loop.body.block
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    seen: SSAValue = block.insert_arg(i1, len(block.args))
    seen.name_hint = "any"
    angles: dict[SSAValue, None] = {}
    for op in [op for op in block.ops if _is_function(op)]:
        angle = op.operands[0]
        name = library_name(_FUNCTIONS[type(op)][0], angle.type, "small")
        value = call(op, name, [angle], angle.type)
        angles[angle] = None
        value.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(value)
        op.detach()
        op.erase()
    inside = MathBuilder(end)
    for angle in angles:
        is_large = call(end, library_name("is_large_angle", angle.type), [angle], i1)
        seen = inside.insert(arith.OrIOp(seen, is_large))
    inside.builder.insert(scf.YieldOp(*end.operands, seen))
    end.detach()
    end.erase()
    first = scf.ForOp(
        loop.lb, loop.ub, loop.step, [*loop.iter_args, nothing], loop.detach_region(0)
    )
    m.builder.insert(first)
    first.res[-1].name_hint = "large"
    types = [result.type for result in loop.res]
    choice = scf.IfOp(
        first.res[-1],
        types,
        Region(Block([again, scf.YieldOp(*again.res)])),
        Region(Block([scf.YieldOp(*first.res[:-1])])),
    )
    m.builder.insert(choice)
    for old, new in zip(loop.res, choice.output, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


@dataclass(frozen=True)
class SmallAnglesPass(ModulePass):
    """Needs kernels as `scf` functions; leaves sin, cos and tan where all may be any float."""

    name = "small-angles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every loop of every kernel."""
        change_loops(self.name, op, _speculate)
