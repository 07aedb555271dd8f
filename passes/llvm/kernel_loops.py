"""What passes over the loops of a CPU's kernels share: the walk, and the record of what came of it."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects.inside import ops_of
from ...dialects.schedule import KERNEL_ATTRIBUTE
from ...errors import counted
from ..decisions import record

ORDERED_ATTRIBUTE = "deplo.ordered"
"""Marks a kernel whose loops, but the one over blocks, run in the order they stand in."""

NOT_CONCERNED = ""
"""Why a loop is not changed that is no loop of the kind that a pass is about."""


def kernels_of(module: ModuleOp) -> list[func.FuncOp]:
    """The kernels of a module whose loops may be changed, as functions."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    return [
        function
        for function in functions
        if KERNEL_ATTRIBUTE in function.attributes and ORDERED_ATTRIBUTE not in function.attributes
    ]


def function_of(op: Operation) -> func.FuncOp:
    """The function that an operation stands in."""
    parent = op.parent_op()
    while not isinstance(parent, func.FuncOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent


def change_loops(
    name: str,
    module: ModuleOp,
    change: Callable[[scf.ForOp], str | None],
    *,
    inner_first: bool = False,
    none: str = "there is no loop",
) -> None:
    """Let the pass `name` change every loop of every kernel, and record how many it did, or why none.

    `change` gives None if it changed a loop, else why not; `none` is why if there was no loop that it
    concerned. Loops are those there were before the first was changed.
    """
    for function in kernels_of(module):
        loops = ops_of(function, scf.ForOp)
        reasons = [change(loop) for loop in (reversed(loops) if inner_first else loops)]
        count = reasons.count(None)
        why = "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or none
        said = counted(count, "loop") if count else why
        record(name, function.sym_name.data, count > 0, said, function)
