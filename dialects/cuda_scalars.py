"""The C++ form of an operation on scalars in a `cuda.func`: a row of `machine/cuda_scalars.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ..machine.cuda_scalars import FORMS, ScalarForm
from .loop_access import LoadOp, StoreOp, in_registers


def form_of(op: Operation) -> ScalarForm | None:
    """The form of an operation on scalars; None if C++ has none for its types."""
    if not op.operands or len(op.results) != 1:
        return None
    return _form(_case(op), op.operands[-1].type, op.results[0].type)


@cache
def _form(case: str, operand: Attribute, result: Attribute) -> ScalarForm | None:
    of_pair = FORMS.get((case, str(operand), str(result)))
    return of_pair or FORMS.get((case, str(operand), ""))


def is_number(op: Operation) -> bool:
    """Whether an operation is a literal of C++: one number."""
    return isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr | FloatAttr)


def describe(op: Operation) -> str:
    """What is said of an operation without a form: its name, and the types that have none."""
    types = dict.fromkeys(str(v.type) for v in (*op.operands[-1:], *op.results))
    return f"{_case(op)} of {' to '.join(types)}" if types else op.name


def _case(op: Operation) -> str:
    """The operation of a row: a name, and what makes it another than the name alone."""
    match op:
        case arith.CmpiOp():
            return f"{op.name} {arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]}"
        case arith.CmpfOp():
            return f"{op.name} {arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]}"
        case math.Exp2Op() if FastMathFlag.APPROX_FUNC in op.fastmath.data:
            return f"{op.name} afn"  # right to 2 units in the last place, 0 for what is subnormal
        case arith.SubfOp() if any(_may_be_product(value, set()) for value in op.operands):
            return f"{op.name} product"
        case arith.DivfOp() if divides_by_zero(op) is not None:
            return f"{op.name} zero"  # a product with an infinity, about which no compiler warns
        case _:
            return op.name


def divides_by_zero(op: arith.DivfOp) -> float | None:
    """The constant zero, 0.0 or -0.0, that an operation divides by; None if it is none."""
    match op.rhs.owner:
        case arith.ConstantOp(value=FloatAttr(value=number)) if number.data == 0:
            return number.data
        case _:
            return None


def _may_be_product(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Whether a compiler may find that `value` is what a multiplication has just given.

    The difference of a product and its rounding is 0: `x * s - max(x * s)` of the largest `x`, as in PyTorch.
    """
    sources: Sequence[SSAValue] = ()
    match value.owner:
        case arith.MulfOp():
            return True
        case arith.SelectOp() as op:
            sources = op.operands[1:]
        case scf.IfOp() as op:
            position = op.results.index(value)
            ends = (region.block.last_op for region in op.regions)
            sources = [end.operands[position] for end in ends if end is not None]
        case LoadOp(memref=array) if in_registers(array):
            sources = [u.operation.value for u in array.uses if isinstance(u.operation, StoreOp)]
        case _:
            return False
    new = [source for source in sources if source not in seen]
    seen.update(new)
    return any(_may_be_product(source, seen) for source in new)
