"""Compile a module for this CPU and run it on arrays, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from .. import interpreter
from ..analysis.plan import build_plan
from ..codegen.llvm_sources import llvm_sources
from ..errors import DeploError
from ..passes.levels import LEVELS, furthest, levels_in
from ..passes.pipelines import expand, get_all_available_passes
from ..runtime.cpu import CpuProgram
from ..runtime.plan import Plan
from .check_each_pass import Array
from .pipeline_text import parse_passes

_TO_LLVM = {
    "torch": "torch-to-llvm",
    "tensor_ir": "tensor-to-llvm",
    "loop": "loop-to-llvm",
    "tile": "tile-to-llvm",
    "scf": f"inline-calls,group-launches,assign-arena,{LEVELS['llvm'].pipeline}",
    "llvm": "",
}
"""The level of a program -> the passes that make code for a CPU of it."""


def lower_for_cpu(ctx: Context, module: ModuleOp) -> ModuleOp:
    """A copy of a program at the LLVM stage. Raises DeploError for one that is for a GPU."""
    level = furthest(levels_in(module))
    if level not in _TO_LLVM:
        at = (
            "of no level of deplo's"
            if level is None
            else f"{LEVELS[level].name}, which is not for a CPU"
        )
        raise DeploError(f"the program is {at}; without --target cpu the interpreter executes it")
    copy = module.clone()
    for each in expand(parse_passes(_TO_LLVM[level], get_all_available_passes())):
        each.apply(ctx, copy)
    return copy


def run_native(module: ModuleOp, target: str, inputs: Sequence[Array]) -> list[Array]:
    """The results of a module at the LLVM stage that calls nothing of PyTorch, compiled and run on this CPU.

    Raises `interpreter.ProgramError` where the program fails.
    """
    return run_plan(native_plan(module, target), inputs)


def native_plan(module: ModuleOp, target: str) -> Plan:
    """A module at the LLVM stage as a program's data."""
    return Plan.from_data(build_plan(module, target, llvm_sources(module)))


def run_plan(plan: Plan, inputs: Sequence[Array]) -> list[Array]:
    """The results of a plan that calls nothing of PyTorch on arrays, bfloat16 as float32."""
    if plan.calls:
        raise interpreter.NotExecutable("PyTorch runs a part of the program")
    arguments = [
        _bits_of_bfloat16(value) if argument.array.dtype == "bf16" else np.array(value)
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


def _bits_of_bfloat16(values: Array) -> Array:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def _from_bits(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32)
