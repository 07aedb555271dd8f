"""Operators that PyTorch runs, as steps of a plan: looked up by name, called with data and tensors.

A call gets contiguous tensors, and its results become the plan's buffers: those that have memory of their own
as they are, others as copies, so nothing aliases.
Random numbers come from PyTorch's global generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from ..errors import DeploError
from .arrays import TORCH_DTYPES, Library, TorchLibrary
from .own_calls import BoundCall, OwnCall, Resolve, is_own
from .part_calls import Program
from .plan_parts import Array, CallStep, Permuted, Ref
from .sizes import static

ON_DEVICE = "device"
"""The schema argument that says where an operator makes its result."""

ALIGNMENT = 64
"""Bytes that buffers begin at multiples of."""

def bind(
    step: CallStep,
    library: Library,
    key: Callable[[Ref], Any] = lambda ref: ref,
    array: Callable[[Ref], Array] | None = None,
    programs: Mapping[str, Program] | None = None,
) -> BoundCall:
    """A call on arrays of a library; `programs` are the plan's parts.

    Raises DeploError for an operator that this PyTorch does not have.
    """
    if is_own(step):
        return OwnCall(step, library, key, array, programs)
    assert isinstance(library, TorchLibrary)
    return TorchCall(step, library.device, key, array)


class TorchCall(BoundCall):
    """A call of an operator of PyTorch, on a device."""

    def __init__(
        self,
        step: CallStep,
        device: str,
        key: Callable[[Ref], Any] = lambda ref: ref,
        array: Callable[[Ref], Array] | None = None,
    ):
        super().__init__(step, key, array)
        self.no_grad = _torch().no_grad
        self.positional: list[Resolve] = []
        self.keywords: dict[str, Resolve] = {}
        self.operator = find_operator(step.operator)
        for argument in self.operator._schema.arguments:
            resolve = _resolver(_given(step, argument, device), key)
            if argument.kwarg_only:
                self.keywords[argument.name] = resolve
            else:
                self.positional.append(resolve)
        self._described = None if self.expected is None else [*map(_described, self.expected)]

    def run(self, tensors: Any, given: Sequence[Any] | None = None) -> Sequence[Any]:
        """See `BoundCall.run`."""
        with self.no_grad():
            made = self._call(tensors) if given is None else given
            if self._described is not None:
                self._check(made, self._described)
            others = [tensors[key] for key in self.inputs]
            for result, key in zip(made, self.results, strict=True):
                if given is None and _is_fresh(result, others):
                    tensors[key] = result
                else:
                    tensors[key] = result.clone(memory_format=_torch().contiguous_format)
                others.append(result)
        return made

    def _call(self, tensors: Any) -> Sequence[Any]:
        results = self.operator(
            *[resolve(tensors) for resolve in self.positional],
            **{name: resolve(tensors) for name, resolve in self.keywords.items()},
        )
        if isinstance(results, (list, tuple)):
            # An operator may be asked for some of its results: the others are None.
            return [each for each in cast(Sequence[Any], results) if each is not None]
        return [] if results is None else [results]

    def _check(self, made: Sequence[Any], expected: Sequence[tuple[Any, tuple[int, ...]]]) -> None:
        """Raise unless results are as the plan says."""
        if len(made) == len(expected) and all(
            value.dtype is dtype and value.shape == shape
            for value, (dtype, shape) in zip(made, expected, strict=True)
        ):
            return
        got = [(str(value.dtype), tuple(value.shape)) for value in made]
        wanted = [(str(dtype), shape) for dtype, shape in expected]
        raise DeploError(
            f"{self.step.operator} gave {got} where the program was compiled for {wanted}"
        )


def _is_fresh(result: Any, others: Iterable[Any]) -> bool:
    """Whether all memory of a result is its own, and laid out as a buffer's is; zeros may have none."""
    if result._is_zerotensor():
        return False
    storage = result.untyped_storage()
    address = storage.data_ptr()
    return (
        result.is_contiguous()
        and not (result.is_neg() or result.is_conj())
        and storage.nbytes() == result.numel() * result.element_size()
        and address % ALIGNMENT == 0
        and all(other.untyped_storage().data_ptr() != address for other in others)
    )


def _given(step: CallStep, argument: Any, device: str) -> Any:
    """What a schema argument is in this call: what the plan gives, where the program runs, the default."""
    if argument.name == ON_DEVICE:
        return device
    name = argument.name
    if name == "self" and "self" not in step.arguments:
        name = "input"
    if name in step.arguments:
        return step.arguments[name]
    if argument.has_default_value():
        return argument.default_value
    raise DeploError(f"not a valid plan: {step.operator} needs an argument {name}")


def _resolver(value: Any, key: Callable[[Ref], Any]) -> Resolve:
    """What gives an argument of a call, of which all is known but the tensors."""
    if isinstance(value, Ref):
        place = key(value)
        return lambda tensors: tensors[place]
    if isinstance(value, Permuted):
        place, axes = key(value.of), value.axes
        return lambda tensors: tensors[place].permute(axes)
    if isinstance(value, list):
        items = [_resolver(item, key) for item in cast(list[Any], value)]
        return lambda tensors: [resolve(tensors) for resolve in items]
    known = _constant(value)
    return lambda tensors: known


def _constant(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    (kind, text), *_ = cast(dict[str, str], value).items()
    return float(text) if kind == "float" else getattr(_torch(), TORCH_DTYPES[text])


def _described(array: Array) -> tuple[Any, tuple[int, ...]]:
    """The dtype and the shape of a result."""
    return getattr(_torch(), TORCH_DTYPES[array.dtype]), tuple(map(static, array.shape))


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
