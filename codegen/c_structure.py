"""What the C printer asks of a program: values that are parts of expressions, loops that fold, its arrays.

A value that is used once, in the block where it is computed, is a part of the expression that uses it, if
nothing in between changes what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.arith import FastMathFlag  # pyright: ignore[reportPrivateImportUsage]
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.inside import ops_in
from ..dialects.sizes import static_shape
from ..errors import DeploError
from .c_values import c_type, is_expression

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


def shape_in_c(type: Attribute) -> tuple[int, ...]:
    """The extents of an array in C, which has at least one dimension and one element."""
    assert isinstance(type, MemRefType)
    return tuple(max(extent, 1) for extent in static_shape(type)) or (1,)


def parameter_in_c(type: Attribute, name: str, *, is_written: bool) -> str:
    """The declaration of an argument."""
    if not isinstance(type, MemRefType):
        return f"{c_type(type)} {name}"
    first, *rest = shape_in_c(type)
    const = "" if is_written else "const "
    inner = "".join(f"[{n}]" for n in rest)
    return f"{const}{c_type(type.element_type)} {name}[restrict {first}]{inner}"


def written_arrays(op: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> set[SSAValue]:
    """The arrays that a function writes to, itself or by calling one of `functions`."""
    written: set[SSAValue] = set()
    for each in ops_in(op):
        match each:
            case memref.StoreOp():
                written.add(each.memref)
            case memref.CopyOp():
                written.add(each.destination)
            case func.CallOp():
                name = each.callee.root_reference.data
                if name not in functions:
                    raise DeploError(f"@{name} is called before it is defined")
                callee = functions[name]
                inner = written_arrays(callee, functions)
                for argument, value in zip(callee.body.block.args, each.arguments, strict=True):
                    if argument in inner:
                        written.add(value)
            case _:
                pass
    return written
