"""A program that stands in a `.mlir` file, for commands that take programs of PyTorch: `deplo run file.mlir`.

It is in Torch, Tensor, Loop or Tile IR, with tensors as arguments and results of `@main`, and is compiled
from there. Its meaning, in place of eager PyTorch's, is what the interpreter computes; its inputs are random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.utils.exceptions import ParseError, VerifyException

from .. import interpreter
from ..analysis.verify import verify_module
from ..dialects.sizes import shape_of
from ..errors import DeploError, UsageError
from ..frontend.capture import CPU, Argument, Captured
from ..frontend.dtypes import DTYPES
from ..frontend.sources import Program as Source
from ..frontend.view_outputs import Output
from ..interpreter.execute import main_function
from ..passes.levels import LEVELS, furthest, levels_in
from ..program_stages import make_context
from .check_each_pass import decomposed
from .diagnostics import describe, render
from .executors import array_of, run_in_pytorch, tensor_of
from .input_text import read_text
from .located_parser import LocatedParser
from .promises import Promises

COMPILED = ("torch", "tensor_ir", "loop", "tile")
"""The levels from which a program is compiled."""

SEED = 0


@dataclass(frozen=True)
class FileSource(Source):
    """A program of a file; `program` is the interpreter."""

    captured: Captured | None = None


def load_file(path: str) -> FileSource:
    """The program in a file. Raises UsageError if it cannot be read, DeploError if it is wrong."""
    text = read_text(path)
    try:
        module = LocatedParser(make_context(), text, path).parse_module()
        verify_module(module)
        for broken in Promises(module, set()).check():
            raise broken
    except (ParseError, VerifyException, DeploError) as error:
        message = render(describe(error), {path: text}).rstrip()
        raise DeploError(message.replace("error: ", "", 1)) from error
    main = _main_of(module, path)
    try:
        inputs = interpreter.random_inputs(module, SEED)[0]
    except interpreter.NotExecutable as error:
        raise DeploError(f"{path}: the arguments cannot be made: {error}") from error
    types = main.function_type.inputs.data
    tensors = tuple(tensor_of(value, type) for value, type in zip(inputs, types, strict=True))
    captured = captured_of(module, _arguments(main), {})
    return FileSource(partial(interpret, module), tensors, {}, path, "the interpreter", captured=captured)


def _main_of(module: ModuleOp, path: str) -> func.FuncOp:
    """The function `@main` of a program that can be compiled. Raises DeploError for another."""
    level = furthest(levels_in(module))
    if level is not None and level not in COMPILED:
        raise DeploError(
            f"{path} is {LEVELS[level].name}; programs are compiled from Torch, Tensor, Loop or Tile IR. "
            f"deplo-opt {path} --run executes it"
        )
    try:
        main = main_function(module)
    except interpreter.NotExecutable as error:
        raise UsageError(f"{path}: {error}") from error
    for type in (*main.function_type.inputs, *main.function_type.outputs):
        if not isinstance(type, TensorType) or type.element_type not in DTYPES:
            raise DeploError(f"{path}: arguments and results of @main are tensors, not {type}")
    return main


def _arguments(main: func.FuncOp) -> list[Argument]:
    """The arguments of a program, all of which are inputs."""
    arguments: list[Argument] = []
    for argument in main.body.block.args:
        type = argument.type
        assert isinstance(type, TensorType)
        name = argument.name_hint or f"arg_{argument.index}"
        dtype, shape = DTYPES[type.element_type], shape_of(type)
        arguments.append(Argument(name, "input", name, argument.index, shape, dtype, CPU))
    return arguments


def captured_of(
    module: ModuleOp, arguments: Sequence[Argument], tensors: dict[str, torch.Tensor]
) -> Captured:
    """A module as if it had been captured: its inputs one by one, its results as they are."""
    count = sum(argument.source == "input" for argument in arguments)
    results = len(main_function(module).function_type.outputs)
    outputs = tuple(Output("result", index) for index in range(results))
    spec = pytree.tree_structure(((None,) * count, {}))
    given: Any = None if results == 1 else (None,) * results
    out = pytree.tree_structure(given)
    return Captured(module, tuple(arguments), tensors, {}, outputs, spec, out, ())


def interpret(module: ModuleOp, *tensors: torch.Tensor) -> Any:
    """What the interpreter computes of a program."""
    arrays = [array_of(tensor) for tensor in tensors]
    types = main_function(module).function_type.outputs.data
    try:
        with np.errstate(all="ignore"):
            values = interpreter.execute(decomposed(module), arrays, call=run_in_pytorch)
    except (interpreter.NotExecutable, interpreter.ProgramError) as error:
        raise DeploError(f"the interpreter: {error}") from error
    results = [tensor_of(value, type) for value, type in zip(values, types, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)
