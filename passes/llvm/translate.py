"""LLVM's own text of each kernel, for llvmlite: one module per kernel, with what it calls."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.plan import KERNEL_ATTRIBUTE
from ...dialects.inside import ops_in
from .independence import tell_independent
from .kernel_loops import schedule_of
from .loop_hints import hint


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
        for op in ops_in(kernel)
        if isinstance(op, llvm.CallOp) and op.callee is not None
    }
    place = InsertPoint.after(kernel)
    kernel.detach()  # it is moved there and back: to copy it would take longer than to print it
    alone = ModuleOp([*(functions[name].clone() for name in called), kernel])
    made = convert_module(alone, fallback_target_triple="")
    _tell(made, kernel)
    kernel.detach()
    Rewriter.insert_op(kernel, place)
    for block in (b for f in made.functions for b in f.blocks):
        for instruction in block.instructions:
            instruction.flags = sorted(instruction.flags)  # from sets: in another order each time
    return str(made)


def _tell(made: Any, kernel: llvm.FuncOp) -> None:
    """Tell LLVM what the types of a module do not: attributes with text, which llvmlite does not know.

    A loop that copies stays one: it is short, and takes less time than a call of memcpy. Vectors are as wide
    as the kernel's schedule says, and so many of them are computed side by side, if it does.
    """
    said = schedule_of(kernel)
    width, count = said.get("width"), said.get("interleave")
    for function in made.functions:
        if function.is_declaration:
            continue
        set.add(function.attributes, '"no-builtins"')
        if function.name != kernel.sym_name.data:
            continue
        if width is not None:
            set.add(function.attributes, f'"prefer-vector-width"="{width}"')
            hint(function, count or 0)
        tell_independent(function, kernel)
