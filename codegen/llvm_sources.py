"""LLVM's own text of each kernel: one module per kernel, with what it calls."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..dialects.inside import ops_in
from ..dialects.schedule import KERNEL_ATTRIBUTE, schedule_of
from .llvm_independence import independent_accesses
from .llvm_loop_hints import loop_options
from .llvm_printer import Notes, llvm_text


def llvm_sources(
    module: ModuleOp, *, named: bool = False, comments: Mapping[Operation, str] | None = None
) -> dict[str, str]:
    """The LLVM IR of each kernel of `module` by its symbol, after `convert-to-llvm`.

    Its values have the program's names if that is asked for, as for those who read it; `comments` stand
    behind the lines of operations.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, llvm.FuncOp)}
    return {
        name: _text(function, functions, named, comments or {})
        for name, function in functions.items()
        if KERNEL_ATTRIBUTE in function.attributes
    }


def llvm_module_text(module: ModuleOp) -> str:
    """The LLVM IR of all functions of `module`, after `convert-to-llvm`, for those who read it."""
    functions = [op for op in module.ops if isinstance(op, llvm.FuncOp)]
    return llvm_text([(function, _notes(function)) for function in functions])


def _text(
    kernel: llvm.FuncOp,
    functions: dict[str, llvm.FuncOp],
    named: bool,
    comments: Mapping[Operation, str],
) -> str:
    called = {
        op.callee.root_reference.data: None
        for op in ops_in(kernel)
        if isinstance(op, llvm.CallOp) and op.callee is not None
    }
    others = [(functions[name], _notes(functions[name])) for name in called]
    return llvm_text([*others, (kernel, _notes(kernel))], named=named, comments=comments)


def _notes(function: llvm.FuncOp) -> Notes:
    """What LLVM is told of a function.

    A loop that copies stays one: it is short, and takes less time than a call of memcpy. Vectors of a kernel
    are as wide as its schedule says, and so many of them are computed side by side, if it does.
    """
    attributes, options = ['"no-builtins"'], {}
    if KERNEL_ATTRIBUTE not in function.attributes:
        return Notes(attributes)
    said = schedule_of(function)
    if (width := said.get("width")) is not None:
        attributes.append(f'"prefer-vector-width"="{width}"')
        options = loop_options(function, said.get("interleave") or 0)
    return Notes(attributes, options, independent_accesses(function, options))
