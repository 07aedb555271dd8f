"""Which results of functions may take the places of arguments in memory."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, SSAValue

from ..dialects.inside import ops_in
from ..dialects.tensor_ir_indexed import ScatterOp

BECOMES = "deplo.becomes"
"""An argument of `main` with attribute `deplo.becomes = 2 : i64` may be result 2, too, when it is over."""


def becomes(function: func.FuncOp, argument: int) -> int | None:
    """The result that may take the place of an argument, if one may."""
    if function.arg_attrs is None:
        return None
    result = function.arg_attrs.data[argument].data.get(BECOMES)
    return result.value.data if isinstance(result, IntegerAttr) else None


def takes_place(value: SSAValue, start: SSAValue) -> bool:
    """Whether a value may be computed in the memory of `start`, as far as callers are concerned.

    It may where it is what the argument `start` of `main` becomes, or of a function of which all calls give
    it such an argument that they alone read; it may also be a step from the one to the other.
    """
    while isinstance(start.owner, ScatterOp):
        start = start.owner.input
    while (user := value.get_user_of_unique_use()) and isinstance(user, ScatterOp):
        if user.input is not value:
            return False
        value = user.result
    if not isinstance(start, BlockArgument):
        return False
    function = start.block.parent_op()
    if not isinstance(function, func.FuncOp):
        return False
    end = function.body.block.last_op
    assert end is not None
    places = [i for i, returned in enumerate(end.operands) if returned is value]
    if len(places) != 1:
        return False
    if function.sym_name.data == "main":
        return becomes(function, start.index) == places[0]
    module = function.parent_op()
    assert module is not None
    calls = [
        op
        for op in ops_in(module)
        if isinstance(op, func.CallOp) and op.callee.root_reference.data == function.sym_name.data
    ]
    return bool(calls) and all(
        call.operands[start.index].has_one_use()
        and takes_place(call.results[places[0]], call.operands[start.index])
        for call in calls
    )
