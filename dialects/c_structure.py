"""What the C printer asks of a program: which values are parts of expressions, and how loops fold.

A value that is used once, in the block where it is computed, is a part of the expression that uses it, if
nothing in between changes what it reads.
"""

from __future__ import annotations

from xdsl.dialects import arith, cf, memref, scf
from xdsl.dialects.arith import FastMathFlag  # pyright: ignore[reportPrivateImportUsage]
from xdsl.ir import Operation

from .c_values import is_expression
from .inside import ops_in

SUMS = {arith.AddfOp: "+", arith.MulfOp: "*"}
"""What OpenMP may fold in any order."""


def is_constant(op: Operation) -> bool:
    """Whether an operation is a number."""
    return isinstance(op, arith.ConstantOp)


def only_user(op: Operation) -> Operation | None:
    """What uses a value, if that is once and in the block where it is computed."""
    (result,) = op.results
    user = result.get_user_of_unique_use()
    return user if user is not None and user.parent is op.parent else None


def statement_of(op: Operation) -> Operation | None:
    """The statement, or the variable, that a value ends up in; none if it must be a variable itself."""
    end = only_user(op)
    while end is not None and is_expression(end) and (user := only_user(end)) is not None:
        end = user
    return end


def reads_memory(op: Operation) -> bool:
    """Whether a value depends on what is in memory, by the expression that it is."""
    if isinstance(op, memref.LoadOp | scf.IfOp):
        return True
    if not is_expression(op):
        return False
    return any(
        isinstance(v.owner, Operation) and v.owner.parent is op.parent and reads_memory(v.owner)
        for v in op.operands
    )


def is_inlined(op: Operation) -> bool:
    """Whether what uses a value is reached with nothing that could change it in between."""
    end = statement_of(op)
    if end is None:
        return False
    if not isinstance(op, memref.LoadOp) and not reads_memory(op):
        return True
    between = op.next_op
    while between is not end:
        assert between is not None
        if not is_expression(between) and not isinstance(between, memref.LoadOp):
            return False
        between = between.next_op
    return True


def reduction(op: scf.ForOp) -> list[str] | None:
    """How a loop folds what it carries, if in any order: `+` or `*` of each."""
    end = op.body.block.last_op
    assert end is not None
    if not op.res or any(isinstance(each, cf.AssertOp) for each in ops_in(op.body)):
        return None
    operators: list[str] = []
    for value, following in zip(op.body.block.args[1:], end.operands, strict=True):
        fold = following.owner
        operator = SUMS.get(type(fold))  # pyright: ignore[reportArgumentType]
        if operator is None or not isinstance(fold, arith.AddfOp | arith.MulfOp):
            return None
        flags = fold.fastmath
        if (
            FastMathFlag.REASSOC not in flags.data
            or fold.lhs is not value
            or not value.has_one_use()
        ):
            return None
        operators.append(operator)
    return operators
