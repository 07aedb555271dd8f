"""The functions beside the bodies that `convert-to-llvm` converts: those declared, and what kernels take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import MemRefType, i64
from xdsl.ir import Operation

from ...dialects.inside import ops_of
from ...dialects.loop import INDEX
from ...dialects.schedule import KERNEL_ATTRIBUTE
from ...errors import DeploError
from .scalars import extremum_of_any_order

RANGE_ARGUMENTS = 3
"""The last arguments of each kernel: the first block, the block after the last, and the status word."""


def check_arguments(op: func.FuncOp) -> None:
    """Raise DeploError unless a kernel has the arguments by which it is run."""
    last = tuple(op.function_type.inputs.data[-RANGE_ARGUMENTS:])
    if last != (INDEX, INDEX, MemRefType(i64, [1])):
        raise DeploError(
            f"@{op.sym_name.data} is a kernel: its last arguments are the first block, the one after "
            "the last, and the status word, index, index, memref<1xi64>"
        )


def kept_declarations(functions: Sequence[func.FuncOp]) -> set[str]:
    """The names of functions that only others than kernels call: they stay as they are, like their callers.

    Raises DeploError for one that kernels call, too.
    """
    kernels = [each for each in functions if KERNEL_ATTRIBUTE in each.attributes]
    others = [each for each in functions if KERNEL_ATTRIBUTE not in each.attributes]
    converted = {each.sym_name.data for each in kernels} | _called(kernels)
    for op in others:
        if shared := converted & _called([op]):
            raise DeploError(
                f"@{op.sym_name.data} has no attribute `{KERNEL_ATTRIBUTE}` and stays a `func.func`, "
                f"but calls @{min(shared)}, which becomes an `llvm.func`"
            )
    return _called(others)


def _called(functions: Iterable[func.FuncOp]) -> set[str]:
    """The names of what functions call."""
    calls = [call for function in functions for call in ops_of(function, func.CallOp)]
    return {call.callee.string_value() for call in calls}


def declaration(function: func.FuncOp) -> llvm.FuncOp:
    """An external function as one of the `llvm` dialect."""
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    result = outputs[0] if outputs else llvm.LLVMVoidType()
    return llvm.FuncOp(
        function.sym_name,
        llvm.LLVMFunctionType(list(inputs), result),
        linkage=llvm.LinkageAttr("external"),
    )


def extremum_declaration(op: Operation) -> llvm.FuncOp | None:
    """The intrinsic that a step of a reduction calls as a function."""
    if (name := extremum_of_any_order(op)) is None:
        return None
    element = op.results[0].type
    signature = llvm.LLVMFunctionType([element, element], element)
    return llvm.FuncOp(name, signature, linkage=llvm.LinkageAttr("external"))
