"""A program that stands in a `.onnx` file, for commands that take programs: `deplo run model.onnx`.

Its meaning is what the interpreter computes of its Torch IR; its inputs are random, integers among them 0
or 1, which are indices of most axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from xdsl.dialects.builtin import ModuleOp, TensorType

from ..analysis.sizes import sizes_of
from ..dialects.sizes import evaluate, shape_of
from ..errors import UsageError
from ..frontend.capture import CPU, Argument
from ..frontend.dtypes import DTYPES
from ..interpreter.execute import main_function
from ..onnx_import.entry import load_model
from .file_source import FileSource, captured_of, interpret

SEED = 0
EXAMPLE = 4
"""The extent of what calls choose, in the inputs that are made."""
MAX_ELEMENTS = 1 << 28
"""Elements of an input that is made at random."""


def load_onnx(path: str, fixed: Mapping[str, int]) -> FileSource:
    """The program in a model file, with the extents of dimensions that have names.

    Raises UsageError, UnsupportedOpError and MissingEnvironmentError.
    """
    model = load_model(path, fixed)
    main = main_function(model.module)
    sizes = [EXAMPLE] * len(sizes_of(main))
    rng = np.random.default_rng(SEED)
    arguments: list[Argument] = []
    inputs: list[torch.Tensor] = []
    tensors: dict[str, torch.Tensor] = {}
    for index, argument in enumerate(main.body.block.args):
        type = argument.type
        assert isinstance(type, TensorType)
        dtype, shape = DTYPES[type.element_type], shape_of(type)
        if index < len(model.inputs):
            name = model.inputs[index].name
            inputs.append(_random(rng, name, [evaluate(n, sizes) for n in shape], dtype))
            arguments.append(Argument(f"input_{index}", "input", name, index, shape, dtype, CPU))
            continue
        name, _, array = model.held[index - len(model.inputs)]
        tensors[name] = _tensor(array, dtype)
        arguments.append(Argument(name, "parameter", name, None, shape, dtype, CPU))
    captured = captured_of(model.module, arguments, tensors)
    program = partial(_run, model.module, list(tensors.values()))
    return FileSource(program, tuple(inputs), {}, path, "the interpreter", captured=captured)


def _run(module: ModuleOp, held: list[torch.Tensor], *inputs: torch.Tensor) -> Any:
    """What the interpreter computes of a model on inputs."""
    return interpret(module, *inputs, *held)


def _tensor(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """The tensor of an array as it is stored: bfloat16 is its bits."""
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def _random(
    rng: np.random.Generator, name: str, shape: list[int], dtype: torch.dtype
) -> torch.Tensor:
    if np.prod(shape, dtype=float) > MAX_ELEMENTS:
        raise UsageError(f"input '{name}' of shape {shape} is too large to be made at random")
    if dtype.is_floating_point:
        return torch.from_numpy(np.asarray(rng.standard_normal(shape))).to(dtype)
    return torch.from_numpy(np.asarray(rng.integers(0, 2, shape))).to(dtype)
