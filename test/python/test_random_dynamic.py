"""Random PyTorch programs, each axis dynamic that can be, agree with eager at other sizes than captured.

`DEPLO_RANDOM_CASES=2000 pytest test/python/test_random_dynamic.py` runs more of them.
"""

from __future__ import annotations

import os
import re

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from random_torch import RandomProgram, programs
from torch.export import Dim
from torch.utils import _pytree as pytree

from deplo.analysis.sizes import sizes_of, types_at
from deplo.dialects.sizes import static_shape
from deplo.errors import UnsupportedOpError
from deplo.frontend.capture import Captured, capture
from deplo.interpreter import ProgramError, execute
from deplo.interpreter.execute import main_function
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context

REFUSED = (
    "this program was captured for sizes with these properties only:"
    "|these operations cannot be lowered to Tensor IR:\n.* is known only at run time"
)
"""What a program may be refused with: what export takes for granted, and what an operator must know."""

CASES = int(os.environ.get("DEPLO_RANDOM_CASES", "24"))


def array_of(tensor: torch.Tensor) -> np.ndarray:
    return np.array(tensor.float() if tensor.dtype is torch.bfloat16 else tensor)


def lowered(captured: Captured):
    """The program in the primitives of Tensor IR."""
    module, context = captured.module.clone(), make_context()
    for each in (*make_pipeline("torch-to-tensor", "cpu"), *make_pipeline("tensor-to-loop", "cpu")):
        if each.name == "lift-to-loops":
            break
        each.apply(context, module)
        module.verify()
    return module


def resized(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The elements, repeated and cut off, in another shape."""
    if tensor.shape == shape:
        return tensor
    return torch.from_numpy(np.resize(array_of(tensor), shape)).to(tensor.dtype)


@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # to shrink a program takes many exports
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_a_random_program_agrees_with_eager_at_other_sizes(program: RandomProgram) -> None:
    dims = tuple({axis: Dim.AUTO for axis in range(x.ndim)} for x in program.inputs)
    refusal = None
    try:
        captured = capture(program, program.inputs, dynamic_shapes=(dims,))
        module = lowered(captured)
    except UnsupportedOpError as error:
        refusal = str(error)
    if refusal is not None:
        assert re.match(REFUSED, refusal), f"{program}: {refusal}"
        return
    main = main_function(captured.module)
    sizes = sizes_of(main)
    assume(sizes)
    for choice in (
        [size.hint.data for size in sizes],
        [min(size.hint.data + 2, size.largest) for size in sizes],
        [min(2 * size.hint.data + i, size.largest) for i, size in enumerate(sizes)],
    ):
        types = types_at(main.function_type.inputs.data, choice)
        inputs = [resized(x, static_shape(t)) for x, t in zip(program.inputs, types, strict=True)]
        try:
            with torch.no_grad():
                eager = pytree.tree_leaves(program(*inputs))
        except (RuntimeError, IndexError):  # an index that is outside of another axis
            continue
        try:
            results = execute(module, [array_of(x) for x in inputs])
        except ProgramError as error:
            raise AssertionError(f"{program} at {choice}: {error}") from error
        got = captured.unflatten_outputs([torch.from_numpy(r) for r in results], inputs)
        for mine, theirs in zip(pytree.tree_leaves(got), eager, strict=True):
            assert mine.shape == theirs.shape, program
            torch.testing.assert_close(mine.to(theirs.dtype), theirs, equal_nan=True)
