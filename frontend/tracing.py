"""What happens to each function of PyTorch that a program calls while it is exported.

* Its results get the user's line that calls it. Export would walk, format and later read a stack of a hundred
  frames for each node of the graph, which is a quarter of its time.
* `torch.lstm` and its kin become operators of our own (see `recurrent`).
* What sets the gradient mode to what it is does nothing. Export would keep the call and cut the graph at it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import traceback as fx_traceback
from torch.overrides import TorchFunctionMode

from .recurrent import whole_operator
from .unsupported import is_internal

_SET_GRAD_MODE: Any = torch._C._set_grad_enabled  # pyright: ignore[reportPrivateUsage]


class _Watching(TorchFunctionMode):
    """Sees every call of the program before export's own modes do."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is _SET_GRAD_MODE and args == (torch.is_grad_enabled(),):
            return None
        _note_line()
        operator = whole_operator(func, args)
        return func(*args, **(kwargs or {})) if operator is None else operator(*args)


def _note_line() -> None:
    """Make the innermost line outside PyTorch the one that nodes from here on come from, if there is any."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    line = None if frame is None else f'File "{frame.f_code.co_filename}", line {frame.f_lineno}'
    fx_traceback.set_stack_trace([] if line is None else [line])


@contextmanager
def watching(module: torch.nn.Module) -> Generator[None]:
    """Watch what `module` calls, as long as it runs, and only then."""
    forward = module.forward
    own = "forward" in vars(module)

    @functools.wraps(forward)
    def watched(*args: Any, **kwargs: Any) -> Any:
        with _Watching():
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
