"""`merge-guards`: what stands under the same condition one after the other stands under it together.

    %a = loop.test[%j * 96 + %lane * 2 < 2048]
    scf.if %a { loop.store %x, %y[%i, %j * 96 + %lane * 2] ... }
    %u = arith.truncf %z : f32 to bf16
    %b = loop.test[%j * 96 + %lane * 2 < 2047]
    scf.if %b { loop.store %u, %y[%i, %j * 96 + %lane * 2 + 1] ... }
becomes
    %a = loop.test[%j * 48 + %lane < 1024]
    %u = arith.truncf %z : f32 to bf16
    scf.if %a {
      loop.store %x, %y[%i, %j * 96 + %lane * 2] ...
      loop.store %u, %y[%i, %j * 96 + %lane * 2 + 1] ...
    }

so that `merge-accesses` makes a vector of them. A condition is what it says once the factor that all counters
have in common is divided out. What stands between has no effect and reads no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
)
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import FuncOp
from ...dialects.loop import TestOp
from ...errors import counted
from ...index.affine import ZERO, summands
from ..decisions import record


def tightened(expr: AffineExpr) -> AffineExpr:
    """What is at least 0 where an expression is, without the factor that all its terms but one have."""
    terms = [_split(term) for term in summands(expr)]
    factor = gcd(*(number for rest, number in terms if rest is not None))
    if factor < 2:
        return expr
    total, constant = ZERO, 0
    for rest, number in terms:
        if rest is None:
            constant += number
        else:
            total = total + rest * (number // factor)
    return total + constant // factor


def _split(term: AffineExpr) -> tuple[AffineExpr | None, int]:
    """A term without its constant factor, and that; None and the number if it is one."""
    match term:
        case AffineConstantExpr(value=value):
            return None, value
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=value)
        ):
            return lhs, value
        case _:
            return term, 1


def tighten(function: FuncOp) -> None:
    """Divide common factors out of the conditions of a kernel, and let equal ones of a block be one."""
    known: dict[tuple[Block | None, object, tuple[SSAValue, ...]], TestOp] = {}
    for test in ops_of(function, TestOp):
        new = TestOp([tightened(expr) for expr in test.exprs], test.operands_)
        first = known.setdefault((test.parent, new.set, tuple(new.operands_)), new)
        if first is new:
            new.location, new.result.name_hint = test.location, test.result.name_hint
            assert test.parent is not None
            test.parent.insert_op_before(new, test)
        else:
            new.drop_all_references()
        test.result.replace_all_uses_with(first.result)
        test.detach()
        test.erase()


def _is_guard(op: Operation) -> bool:
    """Whether an operation does something under a condition and nothing else."""
    if not isinstance(op, scf.IfOp) or op.output:
        return False
    return not op.false_region.blocks or len(list(op.false_region.block.ops)) == 1


def merge(block: Block) -> int:
    """Move what is under a condition to the next that is under the same; gives how often that was done."""
    merged = 0
    last: scf.IfOp | None = None
    for op in list(block.ops):
        if not _is_guard(op):
            if not is_side_effect_free(op):
                last = None
            continue
        assert isinstance(op, scf.IfOp)
        if last is not None and last.cond is op.cond:
            first = op.true_region.block.first_op
            assert first is not None
            for inner in [o for o in last.true_region.block.ops if not isinstance(o, scf.YieldOp)]:
                inner.detach()
                op.true_region.block.insert_op_before(inner, first)
            last.detach()
            last.erase()
            merged += 1
        last = op
    return merged


@dataclass(frozen=True)
class MergeGuardsPass(ModulePass):
    """Merge the conditions of kernels of a GPU (`kernel.func`)."""

    name = "merge-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            tighten(function)
            blocks = [
                block
                for inner in (function, *ops_in(function))
                for region in inner.regions
                for block in region.blocks
            ]
            count = sum(merge(block) for block in blocks)
            name = function.sym_name.data
            if count:
                said = f"{counted(count, 'condition')} stood behind the same"
                record(self.name, name, True, said, function)
            else:
                record(self.name, name, False, "no condition follows the same", function)
