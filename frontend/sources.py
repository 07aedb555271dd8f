"""What the command line may name as a program: code, an object in a file, a Hugging Face architecture.

-c "nn.RMSNorm(2048)(torch.randn(1, 32, 2048))"
model.py:MLP
hf:llama --config hidden_size=256 --layer 0 --seq-len 32
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import UsageError
from .expressions import program_of_code
from .huggingface import HUB_NAMES, program_of_architecture
from .unsupported import raised_at


@dataclass(frozen=True)
class Program:
    """A program to capture and the inputs to capture it with."""

    program: torch.nn.Module | Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    title: str = ""
    meaning: str = "eager"
    """Who says what it computes."""
    notes: tuple[str, ...] = ()
    """What is left out of the code that it was given by."""


def load_source(
    name: str | None = None,
    *,
    code: str | None = None,
    config: str = "",
    layer: int | None = None,
    seq_len: int = 128,
) -> Program:
    """The program that `-c` code or a name stands for.

    `config`, `layer` and `seq_len` are for `hf:` names only. Runs the user's code for `-c` and for a
    file, nothing else. Random inputs and weights are the same at each call. Raises UsageError.
    """
    torch.manual_seed(0)
    if (name is None) == (code is None):
        raise UsageError("name one program: -c CODE, FILE.py:NAME or hf:ARCHITECTURE")
    if name in HUB_NAMES:
        name = f"hf:{name}"
    if (config or layer is not None) and not (name or "").startswith("hf:"):
        raise UsageError("--config and --layer describe an hf: architecture")
    if code is not None:
        (program, args, kwargs), notes = program_of_code(code)
        return Program(program, args, kwargs, code.strip(), notes=tuple(notes))
    assert name is not None
    if name.startswith("hf:"):
        program, args, kwargs = program_of_architecture(
            name.removeprefix("hf:"), config=config, layer=layer, seq_len=seq_len
        )
        where = "" if layer is None else f", layer {layer}"
        return Program(program, args, kwargs, f"{name}{where}")
    return program_of_file(name)


def program_of_file(name: str) -> Program:
    """The module, class or function `NAME` of `FILE.py:NAME`, on the inputs the file gives.

    The inputs are `NAME_args` or else `example_inputs` of the same file: a tuple or list of positional
    arguments, a dict of keyword arguments, one tensor, or a function of no arguments that makes one of
    these. A class is instantiated without arguments.
    """
    file, separator, attribute = name.rpartition(":")
    path = Path(file)
    if not separator or path.suffix != ".py":
        raise UsageError(
            f"{name!r} is not a program: give FILE.py:NAME, hf:ARCHITECTURE or -c CODE"
        )
    if not path.is_file():
        raise UsageError(f"no file {file}")
    module = _import_file(path)
    if not hasattr(module, attribute):
        raise UsageError(f"{file} has no {attribute}")
    program: Any = getattr(module, attribute)
    if isinstance(program, type):
        with _running(f"{attribute} of {file} cannot be made without arguments"):
            program = program()
    if not callable(program):
        raise UsageError(f"{attribute} of {file} is a {type(program).__name__}, not a program")
    args, kwargs = _example_inputs(module, attribute, file)
    return Program(program, args, kwargs, name)


def _import_file(path: Path) -> Any:
    """The module of a file, which is known by its name: dataclasses and Dynamo look modules up."""
    file = str(path.resolve())
    known = sys.modules.get(path.stem)
    is_taken = known is not None and getattr(known, "__file__", None) != file
    name = f"{path.stem} of {file}" if is_taken else path.stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with _running(f"{path} cannot be imported"):
            spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    finally:
        sys.path.pop(0)
    return module


@contextmanager
def _running(what: str) -> Generator[None]:
    """Run code of the user, of which an error is the user's, too."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{what}: {reason}{raised_at(error)}") from error


def _example_inputs(
    module: Any, attribute: str, file: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for name in (f"{attribute}_args", "example_inputs"):
        if not hasattr(module, name):
            continue
        inputs: Any = getattr(module, name)
        if callable(inputs) and not isinstance(inputs, torch.Tensor):
            with _running(f"the inputs {name} of {file} cannot be made"):
                inputs = inputs()
        if isinstance(inputs, dict):
            return (), dict(inputs)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(inputs, (tuple, list)):
            return tuple(inputs), {}  # pyright: ignore[reportUnknownArgumentType]
        return (inputs,), {}
    raise UsageError(
        f"{file} gives no inputs for {attribute}: define {attribute}_args = (torch.randn(…), …)"
    )
