"""Operators that PyTorch runs, as steps of a plan: looked up by name, called with data and tensors.

A call gets contiguous tensors, and its results become the plan's buffers: those that have memory of their own
as they are, others as copies, so nothing aliases.
Random numbers come from PyTorch's global generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any, cast

from ..errors import DeploError
from .arrays import TORCH_DTYPES
from .plan import CallStep, Permuted, Ref

ON_DEVICE = "device"
"""The schema argument that says where an operator makes its result."""


def run_call(
    step: CallStep,
    tensors: MutableMapping[Ref, Any],
    device: str,
    given: Sequence[Any] | None = None,
) -> Sequence[Any]:
    """Run one call on torch tensors; each result, or a copy of it, takes the place of its tensor.

    Where there is none (None), its size is not known before.
    `given` is what the call gave before, if it is not to run again. Gives what the call gave.
    An operator that fails raises what it raises in eager. Raises DeploError for an operator that this
    PyTorch does not have, or that gives other results than the plan says.
    """
    with _torch().no_grad():
        made = _results(step, tensors, device) if given is None else given
        _check(step, made, [tensors[ref] for ref in step.results])
        for result, ref in zip(made, step.results, strict=True):
            if given is None and _is_fresh(result, tensors.values()):
                tensors[ref] = result
            elif tensors[ref] is None:
                tensors[ref] = result.clone(memory_format=_torch().contiguous_format)
            else:
                tensors[ref].copy_(result)
    return made


ALIGNMENT = 64
"""Bytes that buffers begin at multiples of."""


def _is_fresh(result: Any, others: Iterable[Any]) -> bool:
    """Whether all memory of a result is its own, and laid out as a buffer's is."""
    storage = result.untyped_storage()
    address = storage.data_ptr()
    return (
        result.is_contiguous()
        and not (result.is_neg() or result.is_conj())
        and storage.nbytes() == result.numel() * result.element_size()
        and address % ALIGNMENT == 0
        and all(t is None or t.untyped_storage().data_ptr() != address for t in others)
    )


def _results(step: CallStep, tensors: Mapping[Ref, Any], device: str) -> Sequence[Any]:
    operator = find_operator(step.operator)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in operator._schema.arguments:
        value = _value(step, argument, tensors, device)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    results = operator(*positional, **keywords)
    if not isinstance(results, (list, tuple)):
        results = () if results is None else (results,)
    return list(cast(Sequence[Any], results))


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
    if isinstance(value, Permuted):
        return tensors[value.of].permute(value.axes)
    if isinstance(value, list):
        return [_resolve(item, tensors) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        (kind, text), *_ = cast(dict[str, str], value).items()
        return float(text) if kind == "float" else getattr(_torch(), TORCH_DTYPES[text])
    return value


def _check(step: CallStep, made: Sequence[Any], buffers: Sequence[Any]) -> None:
    """Raise unless results are as the plan says; the shape of what None stands for is compared later."""
    got = [_described(value) for value in made]
    expected = [_described(buffer) for buffer in buffers]
    if len(got) != len(expected) or any(
        e is not None and g != e for g, e in zip(got, expected, strict=True)
    ):
        raise DeploError(
            f"{step.operator} gave {got} where the program was compiled for {expected}"
        )


def _described(tensor: Any) -> tuple[str, tuple[int, ...]] | None:
    return None if tensor is None else (str(tensor.dtype), tuple(tensor.shape))


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
