"""Schedules that were measured: what a tuner found for a kernel stands in for what the model would decide.

Passes do not know where that is kept: whoever compiles says who answers.

    with tuned_by(answer):
        ...                           # passes ask `answer(canonical_text(kernels))`
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import StringAttr

from ..dialects.loop import KernelOp

Answer = Callable[[str], Mapping[str, int] | None]
"""From the canonical text of kernels to the choices that were found best for them."""

_ANSWER: ContextVar[Answer | None] = ContextVar("deplo_tuned", default=None)


@contextmanager
def tuned_by(answer: Answer | None) -> Generator[None]:
    """Let passes inside the `with` block ask `answer`; None means that nothing was tuned."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


def tuned_choices(kernels: Sequence[KernelOp], names: Collection[str]) -> Mapping[str, int] | None:
    """What was found best for kernels that become one, if that was measured: choices of these names."""
    answer = _ANSWER.get()
    found = None if answer is None else answer(canonical_text(kernels))
    return found if found is not None and set(found) == set(names) else None


def canonical_text(kernels: Sequence[KernelOp]) -> str:
    """The text of kernels without the names in it: those that compute the same have the same."""
    return "\n".join(map(_text, kernels))


def _text(kernel: KernelOp) -> str:
    copy = kernel.clone()
    copy.sym_name = StringAttr("kernel")
    for op in copy.walk():
        for result in op.results:
            result.name_hint = None
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument.name_hint = None
    text = _without_outer_names(copy)
    copy.erase()
    return text


def _without_outer_names(copy: KernelOp) -> str:
    """The text of a kernel whose inputs are named where they are made, outside of it."""
    held = [value.name_hint for value in copy.inputs]
    try:
        for value in copy.inputs:
            value.name_hint = None
        return str(copy)
    finally:
        for value, name in zip(copy.inputs, held, strict=True):
            value.name_hint = name
