"""Execute a module's `@main` on arrays, whatever IR it is in, and judge results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IntegerType,
    MemRefType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue

from ..dialects import cuda
from ..dialects.kernel import AllocOp, LaunchOp
from ..dialects.loop import KernelOp
from .cuda import CudaMachine
from .loop import evaluate_kernel
from .numpy_types import Array, convert, numpy_dtype
from .poison import poisoned
from .scalar_ops import NotExecutable
from .simt import SimtMachine, find_kernel, run_on
from .tensor_ir import evaluate_tensor_op


def main_function(module: ModuleOp) -> func.FuncOp:
    """The function `@main` of a module; NotExecutable if it has none."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main" and op.body.blocks:
            return op
    raise NotExecutable("the module has no function @main")


def execute(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    """The results of `@main` on `inputs`, arrays as `numpy_types` describes.

    Raises NotExecutable where an operation has no interpreter, ProgramError where the program fails.
    """
    main = main_function(module)
    block = main.body.block
    values: dict[SSAValue, Array] = {
        # Kernels store through their arguments, so the caller's arrays are not handed out.
        argument: np.array(value)
        for argument, value in zip(block.args, inputs, strict=True)
    }
    for op in block.ops:
        match op:
            case func.ReturnOp():
                return [values[v] for v in op.arguments]
            case KernelOp():
                outputs = evaluate_kernel(op, [values[v] for v in op.inputs])
                values.update(zip(op.outputs, outputs, strict=True))
            case AllocOp():
                memref = op.result.type
                assert isinstance(memref, MemRefType)
                values[op.result] = poisoned(memref.element_type, memref.get_shape())
            case LaunchOp():
                function = find_kernel(module, op)
                if isinstance(function, cuda.FuncOp):
                    machine = CudaMachine(function)
                else:
                    machine = SimtMachine(op.blocks.value.data, op.threads.value.data)
                run_on(machine, function, [values[v] for v in op.arguments])
            case _:
                result = evaluate_tensor_op(op, [values[v] for v in op.operands])
                if result is None:
                    raise NotExecutable(f"'{op.name}' in @main")
                values[op.results[0]] = result
    raise NotExecutable("@main has no return")


# --------------------------------------------------------------------------- inputs

_SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 100.0, -100.0, 1e-4]
"""100 overflows `exp` in f32 and its cube overflows f16. Larger values would make a softmax of their sums so
ill-conditioned that another order of summation is another result."""


def _random_array(type: Attribute, rng: np.random.Generator, adversarial: bool) -> Array:
    if not isinstance(type, TensorType | MemRefType):
        raise NotExecutable(f"no random input of type {type}")
    shape, element = type.get_shape(), type.element_type
    if any(extent < 0 for extent in shape):
        raise NotExecutable(f"no random input of dynamic type {type}")
    if isinstance(element, IntegerType):
        if element.width.data == 1:
            return rng.integers(0, 2, shape).astype(np.bool_)
        low, high = (-5, 6) if adversarial else (0, 2)
        return rng.integers(low, high, shape).astype(numpy_dtype(element))
    values = rng.standard_normal(shape)
    if adversarial and values.size:
        chosen = rng.random(shape) < min(0.1, 3 / values.size)
        values = np.where(chosen, rng.choice(_SPECIAL, shape), values)
    return convert(values.astype(np.float64), element)


def random_inputs(module: ModuleOp, seed: int = 0) -> list[list[Array]]:
    """Sets of inputs for `@main`: an ordinary one, then one with special values."""
    main = main_function(module)
    rng = np.random.default_rng(seed)
    return [
        [_random_array(t, rng, adversarial) for t in main.body.block.arg_types]
        for adversarial in (False, True)
    ]


# --------------------------------------------------------------------------- judging

RELATIVE_TOLERANCE = {8: 1e-10, 4: 2e-5, 2: 2e-3}
"""By bytes of the float type. Reductions may re-associate between stages and functions such as `exp` may
differ by a few units in the last place, so a stage is compared with the one above to this tolerance,
relative to the element and to the root mean square of the result."""


def compare(expected: Array, actual: Array, element: Attribute | None = None) -> str | None:
    """What differs between two results of one output, or None if they agree.

    Shapes, dtypes, integers, bools, NaN and infinities must be equal.
    """
    if expected.shape != actual.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if expected.dtype != actual.dtype:
        return f"dtype {actual.dtype} instead of {expected.dtype}"
    if expected.dtype.kind != "f":
        wrong = expected != actual
    else:
        size = 2 if isinstance(element, BFloat16Type | Float16Type) else expected.dtype.itemsize
        tolerance = 1e-2 if isinstance(element, BFloat16Type) else RELATIVE_TOLERANCE[size]
        a, b = expected.astype(np.float64), actual.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        scale = np.sqrt(np.mean(np.square(a[finite]))) if finite.any() else 0.0
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= tolerance * (np.abs(a) + scale)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = ~(same | (finite & close))
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{count} of {wrong.size} elements differ; the first at {list(where)}: "
        f"{actual[where]!r} instead of {expected[where]!r}"
    )
