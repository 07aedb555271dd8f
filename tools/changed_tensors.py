"""The tensors that a program changes, for commands that run it several times from the same state."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..frontend.sources import Program as Source
from ..program import Program


@contextmanager
def kept(program: Program, source: Source) -> Generator[Callable[[], list[torch.Tensor]]]:
    """Have what a program changes as it was when this is over; gives what copies the values that it has."""
    updates = program.captured.updates
    set_back = setter(program, source)

    def values() -> list[torch.Tensor]:
        now = program.arguments(source.args, source.kwargs) if updates else ()
        return [now[update.argument].detach().clone() for update in updates]

    try:
        yield values
    finally:
        set_back()


def setter(program: Program, source: Source) -> Callable[[], None]:
    """A function that sets what a program changes to what it is now."""
    updates = program.captured.updates
    arguments = program.arguments(source.args, source.kwargs) if updates else ()
    tensors = [arguments[update.argument] for update in updates]
    copies = [tensor.detach().clone() for tensor in tensors]

    def set_back() -> None:
        for update, tensor, copy in zip(updates, tensors, copies, strict=True):
            if update.owner is not None:
                setattr(*update.owner, tensor)
            tensor.detach().copy_(copy)

    return set_back


def with_changes(
    program: Program, source: Source, call: Callable[..., Any]
) -> tuple[Any, list[torch.Tensor]]:
    """The result of a call on the source's inputs, and the values of what it changes, which is set back."""
    with kept(program, source) as values:
        result = call(*source.args, **source.kwargs)
        if program.captured.updates:  # results may be memory of what is set back
            result = pytree.tree_map(_own, result)
        return result, values()


def _own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
