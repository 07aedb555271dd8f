"""Calls that a plan makes of plans of its own: a loop whose turns data decide, and a choice.

run_parts(step, programs)(test="loop_test", body="loop_body", carried=[i, x], shared=[w])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, cast

from ..errors import DeploError
from .plan_parts import CallStep, Ref

Program = Callable[..., Sequence[Any]]
"""A compiled part of a program, on the values carried and then those shared."""


def _while_loop(
    programs: Mapping[str, Program],
    test: str,
    body: str,
    carried: Sequence[Any],
    shared: Sequence[Any],
) -> Sequence[Any]:
    """What is carried when the test says no."""
    while programs[test](*carried, *shared)[0].item():
        carried = programs[body](*carried, *shared)
    return carried


def _choice(
    programs: Mapping[str, Program],
    predicate: Any,
    if_true: str,
    if_false: str,
    shared: Sequence[Any],
) -> Sequence[Any]:
    """What the branch gives that the predicate says."""
    return programs[if_true if predicate.item() else if_false](*shared)


SIZE = "deplo.size.default"
"""The operator by which a plan finds a size that one of its kernels has computed."""

_ROLES = {
    "deplo.while_loop.default": (_while_loop, ("test", "body")),
    "deplo.cond.default": (_choice, ("if_true", "if_false")),
}

LISTS = ("carried", "shared")
"""Their arguments that are several arrays."""


def check_call(step: CallStep) -> None:
    """Raise DeploError for a call of the runtime's own whose arguments are not what it takes."""
    function, roles = _ROLES.get(step.operator, (None, ()))
    if function is None and step.operator != SIZE:
        return
    names = {"count"} if function is None else {*signature(function).parameters} - {"programs"}
    for name in names | step.arguments.keys():
        value = step.arguments.get(name)
        items = cast(list[Any], value) if isinstance(value, list) else [value]
        kind = str if name in roles else Ref
        fits = isinstance(value, list) == (name in LISTS) and all(isinstance(v, kind) for v in items)
        if name not in names or not fits:
            raise DeploError(f"not a valid plan: {step.operator} cannot have {name} = {value}")


def parts_of(step: CallStep) -> list[str]:
    """The plans that a step runs, by name; none for an operator of PyTorch."""
    _, roles = _ROLES.get(step.operator, (None, ()))
    return [str(step.arguments.get(role)) for role in roles]


def run_parts(step: CallStep, programs: Mapping[str, Program]) -> Callable[..., Sequence[Any]]:
    """What runs a step that runs plans, of its arguments by name."""
    return partial(_ROLES[step.operator][0], programs)
