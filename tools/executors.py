"""Executes the two ends of the road that the interpreters do not know: PyTorch and native code.

Torch IR means what eager PyTorch computes; the LLVM stage is compiled and run. Everything between is
the interpreters'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.func import functional_call
from torch.utils import _pytree as pytree
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp

from .. import interpreter
from ..analysis.plan import build_plan
from ..dialects.torch_base import TorchOp
from ..frontend.capture import Captured
from ..passes.llvm.translate import llvm_sources
from ..runtime.cpu import CpuProgram
from ..runtime.plan import Plan
from .check_each_pass import Array, Execute


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor as the interpreters hold it: bfloat16 as float32."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.numpy())


def _bits_of_bfloat16(values: Array) -> Array:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def _from_bits(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32)


def make_executor(
    captured: Captured, program: torch.nn.Module | Callable[..., Any], target: str
) -> Execute:
    """An executor of every stage of one captured program."""

    def execute(module: ModuleOp, inputs: Sequence[Array]) -> Sequence[Array]:
        if any(isinstance(op, TorchOp) for op in module.walk()):
            return _run_eager(captured, program, inputs)
        if any(isinstance(op, llvm.FuncOp) for op in module.walk()):
            return run_native(module, target, inputs)
        return interpreter.execute(module, inputs)

    return execute


def _run_eager(
    captured: Captured, program: torch.nn.Module | Callable[..., Any], inputs: Sequence[Array]
) -> list[Array]:
    """The results of `@main` as eager PyTorch computes them on the inputs and parameters given."""
    tensors = [
        torch.from_numpy(np.array(value)).to(argument.dtype)
        for value, argument in zip(inputs, captured.arguments, strict=True)
    ]
    held: dict[str, torch.Tensor] = {}
    flat: dict[int, Any] = dict(captured.constants)
    for argument, tensor in zip(captured.arguments, tensors, strict=True):
        if argument.flat_index is not None:
            flat[argument.flat_index] = tensor
        elif argument.source in ("parameter", "buffer"):
            held[argument.target] = tensor
    args, kwargs = pytree.tree_unflatten(
        [flat[i] for i in range(captured.in_spec.num_leaves)], captured.in_spec
    )
    try:
        with torch.no_grad():
            if isinstance(program, torch.nn.Module):
                result = functional_call(program, held, args, kwargs, tie_weights=False)
            else:
                result = program(*args, **kwargs)
    except (RuntimeError, IndexError) as error:
        raise interpreter.ProgramError(str(error).splitlines()[0]) from error
    leaves = pytree.tree_leaves(result)
    return [
        array_of(leaf)
        for leaf, output in zip(leaves, captured.outputs, strict=True)
        if output.source == "result"
    ]


def run_native(module: ModuleOp, target: str, inputs: Sequence[Array]) -> list[Array]:
    """The results of a module at the LLVM stage, compiled and run on this CPU.

    Raises `interpreter.ProgramError` where the program fails.
    """
    plan = Plan.from_data(build_plan(module, target, llvm_sources(module)))
    arguments = [
        _bits_of_bfloat16(value) if argument.array.dtype == "bf16" else value
        for value, argument in zip(inputs, plan.arguments, strict=True)
    ]
    try:
        results = CpuProgram(plan, "numpy")(*arguments)
    except (IndexError, ZeroDivisionError) as error:
        raise interpreter.ProgramError(str(error)) from error
    return [
        _from_bits(value) if plan.array(ref).dtype == "bf16" else value
        for value, ref in zip(results, plan.results, strict=True)
    ]
