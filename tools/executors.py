"""Executes the two ends of the road that the interpreters do not know: PyTorch and native code.

The program as it was captured means what eager PyTorch computes; the LLVM stage is compiled and run.
Everything between is the interpreters', to whom a call of PyTorch is just that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from xdsl.dialects import llvm
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute

from .. import interpreter
from ..analysis.equivalence import equivalent
from ..analysis.plan import call_data
from ..analysis.sizes import instantiate, sizes_of, solve_sizes
from ..dialects.calls import TensorCallOp
from ..dialects.kernel import CallOp
from ..dialects.torch_ops import ScaledDotProductAttentionOp
from ..errors import DeploError
from ..frontend.capture import Captured
from ..frontend.complex_graphs import parts_of
from ..frontend.dtypes import DTYPES
from ..frontend.sources import Program as Source
from ..frontend.tensor_parts import with_parts
from ..interpreter.execute import main_function
from ..runtime.arrays import TORCH_DTYPES, torch_library
from ..runtime.calls import bind
from ..runtime.cpu import CpuProgram
from ..runtime.plan import Plan
from ..runtime.plan_parts import Ref, read_call
from ..runtime.sizes import EmptySize
from .check_each_pass import SEED, Array, Execute, PassChecker, decomposed
from .native import native_plan, run_plan


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor as the interpreters hold it: bfloat16 as float32."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.numpy())


def make_checker(captured: Captured, source: Source, target: str) -> PassChecker:
    """A checker of the passes on one captured program, which tells on stderr what it passes over."""
    return PassChecker(
        lambda line: print(line, file=sys.stderr),
        execute=make_executor(captured, source.program, target),
        inputs=_input_sets(captured, source),
    )


def _input_sets(captured: Captured, source: Source) -> list[list[Array]]:
    """The program's own inputs, then adversarial ones where they are floats, then its own at other sizes."""
    flat = captured.flatten_inputs(source.args, source.kwargs)
    own = [
        array_of(parts_of(captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index]))
        for a in captured.arguments
    ]
    types = main_function(captured.module).function_type.inputs.data
    sizes = solve_sizes(types, [value.shape for value in own])
    found = sizes_of(main_function(captured.module))[len(sizes) :]
    sizes += [size.hint.data for size in found]  # the inputs do not depend on these
    adversarial = interpreter.random_inputs(instantiate(captured.module, sizes), seed=1)[1]
    mixed = [
        theirs if a.flat_index is not None and a.dtype.is_floating_point else mine
        for a, mine, theirs in zip(captured.arguments, own, adversarial, strict=True)
    ]
    if captured.has_transforms or _attention_is_undetermined(captured, source, mixed):
        mixed = [_finite(value) if value.dtype.kind == "f" else value for value in mixed]
    return [own, mixed, *_resized(captured, own)]


def _attention_is_undetermined(captured: Captured, source: Source, inputs: Sequence[Array]) -> bool:
    """Whether PyTorch's own kernels for attention disagree about where these inputs give NaN."""
    if not any(isinstance(op, ScaledDotProductAttentionOp) for op in captured.module.walk()):
        return False
    with torch.random.fork_rng(devices=()):
        fused = _run_eager(captured, source.program, inputs)
        with sdpa_kernel(SDPBackend.MATH):
            plain = _run_eager(captured, source.program, inputs)
    pairs = zip(fused, plain, strict=True)
    return any(a.dtype.kind == "f" and np.any(np.isnan(a) != np.isnan(b)) for a, b in pairs)


def _finite(value: Array) -> Array:
    """An array with 0 for NaN and infinities."""
    return np.where(np.isfinite(value), value, np.zeros((), value.dtype))


def _resized(captured: Captured, own: Sequence[Array]) -> list[list[Array]]:
    """The program's own inputs repeated and cut off, so that its dynamic sizes are primes, if it has any."""
    shapes = [each.shape for each in interpreter.random_inputs(captured.module, seed=2)[1]]
    if shapes == [each.shape for each in own]:
        return []
    return [[np.resize(value, shape) for value, shape in zip(own, shapes, strict=True)]]


def make_executor(
    captured: Captured, program: torch.nn.Module | Callable[..., Any], target: str
) -> Execute:
    """An executor of every stage of one captured program."""

    def execute(
        module: ModuleOp, inputs: Sequence[Array], history: interpreter.History
    ) -> Sequence[Array]:
        # Random numbers come from PyTorch's generator for the CPU: every stage starts with the same ones.
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(SEED)
            if equivalent(module, captured.module):
                return _run_eager(captured, program, inputs)
            if any(isinstance(op, llvm.FuncOp) for op in module.walk()):
                return run_native(module, target, inputs)
            return interpreter.execute(decomposed(module), inputs, history, run_in_pytorch)

    return execute


def run_in_pytorch(op: TensorCallOp | CallOp, inputs: Sequence[Array]) -> list[Array]:
    """What PyTorch makes of a call of any IR. Raises `interpreter.ProgramError` where it fails."""
    given = [tensor_of(value, v.type) for value, v in zip(inputs, op.inputs, strict=True)]
    results = op.outputs if isinstance(op, CallOp) else op.results
    step = read_call(
        {
            "call": op.callee.data,
            "arguments": call_data(op.call_arguments, [{"argument": i} for i in range(len(given))]),
            "results": [{"buffer": i} for i in range(len(results))],
        }
    )
    tensors: dict[Ref, Any] = {Ref("argument", i): tensor for i, tensor in enumerate(given)}
    try:
        made = bind(step, torch_library("cpu")).run(tensors)
    except (RuntimeError, IndexError) as error:
        raise interpreter.ProgramError(str(error).splitlines()[0]) from error
    for tensor, value in zip(made, results, strict=True):
        if tensor.dtype != (expected := _dtype(value.type)):
            raise DeploError(f"{op.callee.data} gave {tensor.dtype}, the program says {expected}")
    return [array_of(tensor) for tensor in made]


def tensor_of(value: Array, type: Attribute) -> torch.Tensor:
    """An interpreter's array as a tensor of the dtype that its IR type says."""
    return torch.from_numpy(np.array(value)).to(_dtype(type))


def _dtype(type: Attribute) -> torch.dtype:
    assert isinstance(type, TensorType | MemRefType)
    return DTYPES[type.element_type]


def _run_eager(
    captured: Captured, program: torch.nn.Module | Callable[..., Any], inputs: Sequence[Array]
) -> list[Array]:
    """The results of `@main` as eager PyTorch computes them on the inputs and parameters given."""
    tensors = [
        torch.view_as_complex(torch.from_numpy(np.array(value)))
        if argument.dtype.is_complex
        else torch.from_numpy(np.array(value)).to(argument.dtype)
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
                result = functional_call(with_parts(program), held, args, kwargs, tie_weights=False)
            else:
                result = program(*args, **kwargs)
    except (RuntimeError, IndexError) as error:
        raise interpreter.ProgramError(str(error).splitlines()[0]) from error
    results: dict[int, torch.Tensor] = {}
    for leaf, output in zip(pytree.tree_leaves(result), captured.outputs, strict=True):
        if output.source == "result":
            assert output.index is not None
            result_of = output.source_of(leaf, tensors)
            if result_of is None:
                raise interpreter.NotExecutable("an output is a view here, and none in eager")
            results[output.index] = result_of
    for update in captured.updates:
        output = update.value
        if output.source == "result" and output.index is not None:
            new = None if update.owner is not None else tensors[update.argument]
            result_of = None if new is None else output.source_of(new, tensors)
            if result_of is None:
                raise interpreter.NotExecutable("an argument's new value is a view, or assigned")
            results[output.index] = result_of
    return [array_of(parts_of(results[i])) for i in range(len(results))]


def run_native(module: ModuleOp, target: str, inputs: Sequence[Array]) -> list[Array]:
    """The results of a module at the LLVM stage, compiled and run on this CPU.

    Raises `interpreter.ProgramError` where the program fails.
    """
    plan = native_plan(module, target)
    return _run_native_on_tensors(plan, inputs) if plan.calls else run_plan(plan, inputs)


def _run_native_on_tensors(plan: Plan, inputs: Sequence[Array]) -> list[Array]:
    """The same for a plan that calls PyTorch, which takes tensors."""
    arguments = [
        torch.from_numpy(np.array(value)).to(getattr(torch, TORCH_DTYPES[a.array.dtype]))
        for value, a in zip(inputs, plan.arguments, strict=True)
    ]
    try:
        return [array_of(value) for value in CpuProgram(plan, "torch")(*arguments)]
    except EmptySize as error:
        raise interpreter.NotExecutable(f"it is compiled apart where {error}") from error
    except (IndexError, ZeroDivisionError, RuntimeError) as error:
        raise interpreter.ProgramError(str(error).splitlines()[0]) from error
