"""`invert-divisors`: divisions of a loop by what it does not change become products with the inverse.

    scf.for %j = %c0 to %c512 step %c1 {
      %e = loop.load %x[%i, %j]
      %p = arith.divf %e, %s
      loop.store %p, %y[%i, %j]
    }
becomes
    %inverse = arith.divf %one, %s
    scf.if (1 <= |%s| <= 2**60) {
      scf.for %j = ... {
        %e = loop.load %x[%i, %j]
        %q = arith.mulf %e, %inverse
        %rest = math.fma %q, %s, -%e
        %corrected = math.fma -%rest, %inverse, %q
        %p = %q where %rest is 0 or no number, else %corrected      // of zeros and infinities
        loop.store %p, %y[%i, %j]
      }
    } else {
      scf.for ...                                            // as it was
    }

A core divides a vector in the time of some ten multiplications. The rest is exact, so that the corrected
product is the quotient, rounded once (Peter Markstein, "Computation of elementary functions on the IBM RISC
System/6000 processor", 1990); only of a quotient below 2**-103 the rest may be subnormal, and the quotient
one unit off. Divisors below 1 stay, as the product could be infinite where the quotient is not.

A core that has much else to multiply divides in the meantime: declined are kernels whose schedule says
`divide`, loops that reduce something or have loops in them, divisors that are constants, and other types
than f32.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in
from ...dialects.schedule import schedule_of
from .kernel_loops import change_loops, function_of
from .math_builder import MathBuilder

MOST = 2.0**60
"""The largest divisor whose inverse is taken: far from one whose inverse is subnormal."""


def _divisions(loop: scf.ForOp) -> list[arith.DivfOp]:
    """The divisions in a loop by what is known in front of it."""
    ops = ops_in(loop.body)
    inside = set(ops)
    return [
        op
        for op in ops
        if isinstance(op, arith.DivfOp)
        and isinstance(op.result.type, Float32Type)
        and not isinstance(op.rhs.owner, arith.ConstantOp)
        and _is_known_before(op.rhs, loop, inside)
    ]


def _is_known_before(value: SSAValue, loop: scf.ForOp, inside: set[Operation]) -> bool:
    owner = value.owner
    return owner not in inside if isinstance(owner, Operation) else owner is not loop.body.block


def _reason(loop: scf.ForOp) -> str | None:
    """Why a loop stays as it is."""
    if loop.res:
        return "the loop reduces something"
    if schedule_of(function_of(loop)).get("divide"):
        return "the schedule says to divide"
    if any(isinstance(op, scf.ForOp) for op in ops_in(loop.body)):
        return "a loop is left inside"
    divisors = {op.rhs for op in _divisions(loop)}
    if not divisors:
        return "nothing is divided by what the loop does not change"
    return None if len(divisors) == 1 else "there are several divisors"


def _invert(loop: scf.ForOp) -> str | None:
    """Replace a loop by two, of which the first multiplies; gives None, or why not."""
    if (reason := _reason(loop)) is not None:
        return reason
    m = MathBuilder(loop)
    divisor = _divisions(loop)[0].rhs
    inverse = m.div(m.float(1.0), divisor)
    inverse.name_hint = "inverse"
    size = m.abs(divisor)
    fits = m.insert(arith.AndIOp(m.test(size, "oge", 1.0), m.test(size, "ole", MOST)))
    fits.name_hint = "fits"
    as_it_was = loop.clone()
    choice = scf.IfOp(fits, [], Region(Block()), Region(Block([as_it_was, scf.YieldOp()])))
    m.builder.insert(choice)
    loop.detach()
    choice.true_region.block.add_ops([loop, scf.YieldOp()])
    for division in _divisions(loop):
        _multiply(division, inverse)


def _multiply(division: arith.DivfOp, inverse: SSAValue) -> None:
    """A division as a product, which is corrected by what it lacks."""
    m = MathBuilder(division)
    dividend, divisor = division.lhs, division.rhs
    product = m.mul(dividend, inverse)
    rest = m.fma(product, divisor, m.negative(dividend))
    corrected = m.fma(m.negative(rest), inverse, product)
    # A product that lacks nothing keeps the sign of its zero, and its infinity has no rest.
    quotient = m.select(m.test(rest, "ueq", 0.0), product, corrected)
    quotient.name_hint = division.result.name_hint
    division.result.replace_all_uses_with(quotient)
    division.detach()
    division.erase()


@dataclass(frozen=True)
class InvertDivisorsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops that divide by what changes."""

    name = "invert-divisors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every loop of every kernel."""
        change_loops(self.name, op, _invert)
