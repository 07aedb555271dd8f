"""What happens to each function of PyTorch that a program calls while it is exported.

* Its results get the user's line that calls it. Export would walk, format and later read a stack of a hundred
  frames for each node of the graph, which is a quarter of its time.
* `torch.lstm` and its kin become operators of our own (see `recurrent`).
* What export would leave out without a word, such as an assignment to `.data`, is refused with its line.
* What sets the gradient mode to what it is does nothing. Export would keep the call and cut the graph at it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import traceback as fx_traceback
from torch.overrides import TorchFunctionMode

from ..errors import UnsupportedOpError
from .constants import Constants
from .effects import Effects
from .embedding_bags import embedding_bag
from .recurrent import whole_operator
from .unsupported import SourceLine, is_internal

_SET_GRAD_MODE: Any = torch._C._set_grad_enabled  # pyright: ignore[reportPrivateUsage]
_DATA: Any = torch.Tensor.data
_GET_DATA = _DATA.__get__

_REFUSED: Mapping[Any, str] = {
    _DATA.__set__: "an assignment to .data",
}
"""What torch.export leaves out of the program, and does not tell."""


_BY_STRIDES = {
    "contiguous",
    "data_ptr",
    "flatten",
    "is_contiguous",
    "ravel",
    "reshape",
    "reshape_as",
    "storage_offset",
    "stride",
    "to",
    "unflatten",
    "view",
    "view_as",
}
"""Functions that give memory of their argument, or tell of it, as its strides are."""


class _Watching(TorchFunctionMode):
    """Sees every call of the program before export's own modes do."""

    def __init__(self, effects: Effects, constants: Constants) -> None:
        super().__init__()
        self._effects = effects
        self._constants = constants
        self._seed = torch.default_generator.initial_seed()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.compiler.is_dynamo_compiling():  # it traces this for the branches of torch.cond
            return func(*args, **(kwargs or {}))
        if func is _SET_GRAD_MODE and args == (torch.is_grad_enabled(),):
            return None
        if func is _GET_DATA:
            return args[0].detach()
        if getattr(func, "__name__", "") in _BY_STRIDES:
            self._effects.depends_on_strides = True
        self._constants.see(func, (*args, *(kwargs or {}).values()))
        line = _note_line()
        if torch.default_generator.initial_seed() != self._seed:
            raise UnsupportedOpError(
                f"this program sets the seed of PyTorch's random numbers before this line:\n  {line}\n"
                "Set it outside of what is compiled."
            )
        if func in _REFUSED or (kwargs or {}).get("generator") is not None:
            what = _REFUSED.get(func, "a torch.Generator of its own")
            raise UnsupportedOpError(f"deplo does not support {what}, which this program uses:\n  {line}")
        if func is F.embedding_bag:
            func = embedding_bag
        operator = whole_operator(func, args)
        return func(*args, **(kwargs or {})) if operator is None else operator(*args)


def _note_line() -> SourceLine | None:
    """Make the innermost line outside PyTorch the one that nodes from here on come from, if there is any."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        fx_traceback.set_stack_trace([])
        return None
    line = SourceLine(frame.f_code.co_filename, frame.f_lineno)
    fx_traceback.set_stack_trace([f'File "{line.file}", line {line.line}'])
    return line


@contextmanager
def watching(module: torch.nn.Module, effects: Effects) -> Generator[None]:
    """Watch what `module` calls, as long as it runs, and only then."""
    constants = Constants()
    forward = module.forward
    own = "forward" in vars(module)

    @functools.wraps(forward)
    def watched(*args: Any, **kwargs: Any) -> Any:
        with effects.noted(), constants.kept(), _Watching(effects, constants):
            result = forward(*args, **kwargs)
        fx_traceback.set_stack_trace([])
        return result

    module.forward = watched
    try:
        with fx_traceback.preserve_node_meta():
            yield
    finally:
        if own:
            module.forward = forward
        else:
            del module.forward
