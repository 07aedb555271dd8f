"""Schedules that were measured: what a tuner found for a kernel stands in for what the model would decide.

Passes do not know where that is kept: whoever compiles says who answers.

    with tuned_by(answer):
        ...                           # passes ask `answer(canonical_text(kernels))`

What somebody asks for by a pass's options comes before both (`settle_choices`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects.loop import KernelOp
from .decisions import record

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Answer = Callable[[str], Mapping[str, int | str] | None]
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


def tuned_choices(
    kernels: Sequence[KernelOp], names: Collection[str]
) -> Mapping[str, int | str] | None:
    """What was found best for kernels that become one, if that was measured: choices of these names."""
    answer = _ANSWER.get()
    found = None if answer is None else answer(canonical_text(kernels))
    return found if found is not None and set(found) == set(names) else None


Choices = TypeVar("Choices", bound="DataclassInstance")


def settle_choices(
    by: ModulePass,
    kernels: Sequence[KernelOp],
    best: Choices,
    misfit: Callable[[Choices], str | None],
    anchor: Operation,
) -> tuple[Choices, str]:
    """What a pass takes: the model's `best`, then what was tuned, then what its options ask for, if it fits.

    The options are called like the fields of `best`; an absent one is None. Gives the choices and, for
    people, where they come from; what does not fit is recorded at `anchor` with `misfit`'s reason.
    """
    names = tuple(field.name for field in fields(best))
    asked = {name: value for name in names if (value := getattr(by, name)) is not None}
    why = ""
    for choices, said in (
        (tuned_choices(kernels, names), ", as tuned"),
        (asked, ", as asked"),
    ):
        if not choices:
            continue
        wanted = replace(best, **choices)
        if (reason := misfit(wanted)) is None:
            best, why = wanted, said
        else:
            record(by.name, kernels[-1].sym_name.data, False, reason, anchor)
    return best, why


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
