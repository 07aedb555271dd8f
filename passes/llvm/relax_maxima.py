"""`relax-maxima`: a maximum that only shifts exponents need not say whether one of them is no number.

    %m = scf.for %j = ... iter_args(%so_far = %low) -> (f32) {
      %next = arith.maximumf %so_far, %x fastmath<reassoc> ...
    }
    %s = scf.for %j = ... iter_args(%so_far = %zero) -> (f32) {
      %d = arith.subf %x, %m     %e = math.exp %d     %next = arith.addf %so_far, %e ...
    }
    scf.for %j = ... { ... %p = arith.divf %e, %s    loop.store %p, %y[%i, %j] }
becomes
    %m = scf.for ... { %next = arith.maximumf %so_far, %x fastmath<reassoc,nnan> ... }
    %any = llvm.inline_asm "", "=x,0" %m                 // some number, whichever it is
    ... %d = arith.subf %x, %any     %e = math.exp %d {at_most_zero} ...

If an exponent is NaN, so is the sum of the powers, whatever they were shifted by, and with it all that is
stored: sums, differences, products and quotients of it, their exponentials and logarithms. Then one
instruction takes the maximum; to keep NaN it would take three. No exponent is above the largest one, so
`expand-math` looks for no infinite power.

`nnan` lets LLVM take any value for the maximum where a NaN was among its operands, even another one at each
use (poison); what passes through an empty piece of assembly is one value.

Declined are maxima on which anything else depends, such as a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp
from ...machine.cpus import Cpu
from ...machine.targets import get_cpu
from .kernel_loops import NOT_CONCERNED, change_loops, function_of
from .loop_code import through_register
from .loop_names import Names

AT_MOST_ZERO = "at_most_zero"
"""Marks a power whose exponent is not above 0, or one of several that are added up to NaN anyway."""

ANY_NUMBER = arith.FastMathFlagsAttr((FastMathFlag.REASSOC, FastMathFlag.NO_NANS))

_KEEPS_NAN = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp),
    *(arith.ExtFOp, arith.TruncFOp, math.ExpOp, math.LogOp, math.FmaOp, math.SqrtOp),
)
"""Operations that give NaN if an operand is."""


def _folded(loop: scf.ForOp, kind: type[Operation]) -> SSAValue | None:
    """What a loop that carries one value folds by operations of one kind; None if it does not."""
    end = loop.body.block.last_op
    if len(loop.res) != 1 or end is None or not isinstance(fold := end.operands[0].owner, kind):
        return None
    so_far = loop.body.block.args[1]
    if so_far not in fold.operands or so_far.uses.get_length() != 1:
        return None
    return next((value for value in fold.operands if value is not so_far), None)


def _range(loop: scf.ForOp) -> tuple[SSAValue, ...]:
    return loop.lb, loop.ub, loop.step


@dataclass
class _Shift:
    """A maximum, and what is made of it."""

    loop: scf.ForOp
    contribution: SSAValue
    powers: list[Operation] = field(default_factory=list[Operation])
    """Exponentials of differences to it."""
    sums: list[SSAValue] = field(default_factory=list[SSAValue])
    """Of all of them."""
    stores: list[StoreOp] = field(default_factory=list[StoreOp])

    def __post_init__(self):
        self.name = Names(self.loop, columns=False).of.get(self.contribution)

    def find(self) -> str | None:
        """Look at all that depends on the maximum; gives why it must be exact, or None."""
        if self.name is None:
            return "its operands are not only computed"
        if self._reads_what_is_written():
            return "its operands may change"
        waiting: list[SSAValue] = list(self.loop.res)
        seen = set[SSAValue]()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            for op in [use.operation for use in value.uses]:
                if isinstance(op, StoreOp) and op.value is value:
                    self.stores.append(op)
                elif isinstance(op, scf.YieldOp) and (sum := self._sum_of(op)) is not None:
                    waiting.append(sum)
                elif isinstance(op, _KEEPS_NAN):
                    self._note(op)
                    waiting += op.results
                else:
                    return f"{op.name} depends on it"
        if not self.sums:
            return "no sum of powers is shifted by it"
        lost = [store for store in self.stores if not self._is_nan_with_sum(store.value)]
        return "what is stored may be no NaN where one of its operands is" if lost else None

    def _reads_what_is_written(self) -> bool:
        function = function_of(self.loop)
        written = {op.memref for op in ops_in(function) if isinstance(op, StoreOp)}
        read = {op.memref for op in ops_in(self.loop.body) if isinstance(op, LoadOp)}
        return not written.isdisjoint(read)

    def _sum_of(self, end: scf.YieldOp) -> SSAValue | None:
        """The result of a loop that adds up what it yields the sum of; noted if these are the powers."""
        loop = end.parent_op()
        if not isinstance(loop, scf.ForOp) or (added := _folded(loop, arith.AddfOp)) is None:
            return None
        if added.owner in self.powers and loop.parent is self.loop.parent:
            self.sums.append(loop.res[0])
        return loop.res[0]

    def _note(self, op: Operation) -> None:
        """Note a power of e whose exponent is one of the maximum's operands less the maximum."""
        if not isinstance(op, math.ExpOp):
            return
        difference, loop = op.operand.owner, op.parent_op()
        if not isinstance(difference, arith.SubfOp) or difference.rhs not in self.loop.res:
            return
        if isinstance(loop, scf.ForOp) and _range(loop) == _range(self.loop):
            if Names(loop, columns=False).of.get(difference.lhs) == self.name:
                self.powers.append(op)

    def _is_nan_with_sum(self, value: SSAValue) -> bool:
        """Whether a value is NaN if the sum is."""
        if value in self.sums:
            return True
        op = value.owner
        return isinstance(op, _KEEPS_NAN) and any(map(self._is_nan_with_sum, op.operands))


def _relax(cpu: Cpu, loop: scf.ForOp) -> str | None:
    """Take any maximum of numbers in a loop; gives None, or why not."""
    if (contribution := _folded(loop, arith.MaximumfOp)) is None:
        return NOT_CONCERNED
    shift = _Shift(loop, contribution)
    if (reason := shift.find()) is not None:
        return reason
    end = loop.body.block.last_op
    assert end is not None
    fold = end.operands[0].owner
    assert isinstance(fold, arith.MaximumfOp)
    if FastMathFlag.REASSOC not in fold.fastmath.data:
        return "it is folded in order"
    fold.fastmath = ANY_NUMBER
    uses = [(use.operation, use.index) for use in loop.res[0].uses]
    number = through_register(Builder(InsertPoint.after(loop)), loop.res[0], cpu.float_letter)
    number.name_hint = loop.res[0].name_hint
    for op, index in uses:
        op.operands[index] = number
    for power in shift.powers:
        power.attributes[AT_MOST_ZERO] = UnitAttr()
    return None


@dataclass(frozen=True)
class RelaxMaximaPass(ModulePass):
    """Needs kernels as `scf` functions; leaves maxima that LLVM takes in one instruction.

    `target` says for which CPU.
    """

    name = "relax-maxima"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every loop of every kernel."""
        relax = partial(_relax, get_cpu(self.target))
        change_loops(self.name, op, relax, none="nothing is the maximum of a row")
