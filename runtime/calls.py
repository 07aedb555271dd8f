"""Operators that PyTorch runs, as steps of a plan: looked up by name, called with data and tensors.

A call gets contiguous tensors and its results are copied into the plan's buffers, so nothing aliases.
Random numbers come from PyTorch's global generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from ..errors import DeploError
from .arrays import TORCH_DTYPES
from .plan import CallStep, Ref

ON_DEVICE = "device"
"""The schema argument that says where an operator makes its result."""


def run_call(step: CallStep, tensors: Mapping[Ref, Any], device: str) -> None:
    """Run one call on torch tensors; each result is copied into the tensor that stands for it.

    An operator that fails raises what it raises in eager. Raises DeploError for an operator that this
    PyTorch does not have, or that gives other results than the plan says.
    """
    torch = _torch()
    operator = find_operator(step.operator)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in operator._schema.arguments:
        value = _value(step, argument, tensors, device)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    with torch.no_grad():
        results = operator(*positional, **keywords)
        if not isinstance(results, (list, tuple)):
            results = () if results is None else (results,)
        made = list(cast(Sequence[Any], results))
        _check(step, made, [tensors[ref] for ref in step.results])
        for result, ref in zip(made, step.results, strict=True):
            tensors[ref].copy_(result)


def _value(step: CallStep, argument: Any, tensors: Mapping[Ref, Any], device: str) -> Any:
    """What a schema argument is in this call: what the plan gives, where the program runs, the default."""
    if argument.name == ON_DEVICE:
        return device
    key = argument.name
    if key == "self" and "self" not in step.arguments:
        key = "input"
    if key not in step.arguments:
        if argument.has_default_value():
            return argument.default_value
        raise DeploError(f"not a valid plan: {step.operator} needs an argument {key}")
    return _resolve(step.arguments[key], tensors)


def _resolve(value: Any, tensors: Mapping[Ref, Any]) -> Any:
    if isinstance(value, Ref):
        return tensors[value]
    if isinstance(value, list):
        return [_resolve(item, tensors) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        (kind, text), *_ = cast(dict[str, str], value).items()
        return float(text) if kind == "float" else getattr(_torch(), TORCH_DTYPES[text])
    return value


def _check(step: CallStep, made: list[Any], buffers: list[Any]) -> None:
    got = [(str(v.dtype), tuple(v.shape)) for v in made]
    expected = [(str(v.dtype), tuple(v.shape)) for v in buffers]
    if got != expected:
        raise DeploError(
            f"{step.operator} gave {got} where the program was compiled for {expected}"
        )


@cache
def find_operator(name: str) -> Any:
    """The operator `namespace.operator.overload`; raises DeploError if this PyTorch has none."""
    found: Any = _torch().ops
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise DeploError(f"this PyTorch has no operator {name}, which the program calls") from None
    return found


def is_random(name: str) -> bool:
    """Whether an operator draws random numbers: what it gives in another dtype is something else."""
    return _torch().Tag.nondeterministic_seeded in find_operator(name).tags


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise DeploError("this program calls PyTorch, which is not installed") from error
    return torch
