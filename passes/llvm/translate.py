"""LLVM's own text of each kernel, for llvmlite: one module per kernel, with what it calls."""

from __future__ import annotations

from xdsl.backend.llvm.convert import convert_module
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp

from ...analysis.plan import KERNEL_ATTRIBUTE


def llvm_sources(module: ModuleOp) -> dict[str, str]:
    """The LLVM IR of each kernel of `module` by its symbol, after `convert-to-llvm`."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, llvm.FuncOp)}
    return {
        name: _text(function, functions)
        for name, function in functions.items()
        if KERNEL_ATTRIBUTE in function.attributes
    }


def _text(kernel: llvm.FuncOp, functions: dict[str, llvm.FuncOp]) -> str:
    called = {
        op.callee.root_reference.data: None
        for op in kernel.walk()
        if isinstance(op, llvm.CallOp) and op.callee is not None
    }
    alone = ModuleOp([*(functions[name].clone() for name in called), kernel.clone()])
    return str(convert_module(alone, fallback_target_triple=""))
