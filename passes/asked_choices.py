"""What a pass's options ask for, in place of what its model chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from xdsl.ir import Operation
from xdsl.passes import ModulePass

from .decisions import record

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Choices = TypeVar("Choices", bound="DataclassInstance")


def asked_choices(
    by: ModulePass,
    kernel: str,
    best: Choices,
    misfit: Callable[[Choices], str | None],
    anchor: Operation,
) -> tuple[Choices, str]:
    """The model's `best` choices with what the options of `by` ask for, if that fits.

    The options are called like the fields of `best`; an absent one is None. Gives the choices and, for
    people, where they come from; what does not fit is recorded at `anchor` with `misfit`'s reason.
    """
    names = [field.name for field in fields(best)]
    asked = {name: value for name in names if (value := getattr(by, name)) is not None}
    if not asked:
        return best, ""
    wanted = replace(best, **asked)
    if (reason := misfit(wanted)) is None:
        return wanted, ", as asked"
    record(by.name, kernel, False, reason, anchor)
    return best, ""
