"""LLVM's own text of each kernel, for llvmlite: one module per kernel, with what it calls."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.plan import KERNEL_ATTRIBUTE
from ...dialects.schedule import SCHEDULE_ATTRIBUTE, ScheduleAttr


def llvm_sources(module: ModuleOp) -> dict[str, str]:
    """The LLVM IR of each kernel of `module` by its symbol, after `convert-to-llvm`."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, llvm.FuncOp)}
    return {
        name: _text(function, functions)
        for name, function in functions.items()
        if KERNEL_ATTRIBUTE in function.attributes
    }


def _text(kernel: llvm.FuncOp, functions: dict[str, llvm.FuncOp]) -> str:
    from xdsl.backend.llvm.convert import convert_module  # imports llvmlite

    called = {
        op.callee.root_reference.data: None
        for op in kernel.walk()
        if isinstance(op, llvm.CallOp) and op.callee is not None
    }
    place = InsertPoint.after(kernel)
    kernel.detach()  # it is moved there and back: to copy it would take longer than to print it
    alone = ModuleOp([*(functions[name].clone() for name in called), kernel])
    made = convert_module(alone, fallback_target_triple="")
    _widen(made, kernel)
    kernel.detach()
    Rewriter.insert_op(kernel, place)
    for block in (b for f in made.functions for b in f.blocks):
        for instruction in block.instructions:
            instruction.flags = sorted(instruction.flags)  # from sets: in another order each time
    return str(made)


def _widen(made: Any, kernel: llvm.FuncOp) -> None:
    """Tell LLVM how wide the vectors are to be that it makes of the kernel's loops, if its schedule does."""
    schedule = kernel.attributes.get(SCHEDULE_ATTRIBUTE)
    width = schedule.get("width") if isinstance(schedule, ScheduleAttr) else None
    if width is None:
        return
    (function,) = [f for f in made.functions if f.name == kernel.sym_name.data]
    # llvmlite knows the attributes without a value; this one is text that LLVM reads.
    set.add(function.attributes, f'"prefer-vector-width"="{width}"')
