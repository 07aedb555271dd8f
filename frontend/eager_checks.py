"""Asks PyTorch's CPU kernels whether they take a call, as the checks of fake tensors are weaker.

    torch.argmax(flags)        # bool: a fake tensor has an argmax of it, the CPU's kernel refuses it
    half @ single              # f16 by f32: a decomposition converts, the CPU's kernel refuses it

Each operator runs once on a few numbers for each distinct way in which it is called, which takes some 20 us.
A call is refused if it fails for zeros, for ones and for unit matrices, where one of fake tensors does not.
Where sizes are less than in the program, they may not fit together: then the dtypes must be the cause.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum, auto
from typing import Any, NamedTuple, cast

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from .devices import CPU
from .unsupported import OpOverload

FEW = 8
"""The largest extent of a tensor, and the largest size passed beside it: as large as most windows."""

FILLS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.Tensor.zero_,
    lambda tensor: tensor.fill_(1),
    lambda tensor: tensor.copy_(torch.eye(*tensor.shape[-2:])) if tensor.ndim > 1 else tensor,
)
"""What tensors hold: valid as indices, as divisors, as matrices to factor."""

NO_LIMIT = 2**63 - 1
"""The largest extent there is."""

LEFT_ALONE = {torch.ops.aten.from_file.default}
"""Operators with effects outside of PyTorch."""

SIZED_BY_NUMBERS = {torch.ops.aten.arange, torch.ops.aten.range}
"""Operators with numbers that say how many elements a result has."""

OF_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
"""What fake tensors raise for lack of values."""

PLAIN = (
    type(None),
    bool,
    float,
    complex,
    str,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
"""Types of arguments beside tensors and integers."""


class RefusedByEager(Exception):
    """Eager PyTorch refuses a call."""


def is_refused_by_eager(graph: torch.fx.Graph) -> bool:
    """Whether eager refuses any operator that a graph calls on the CPU."""
    calls = (node for node in graph.nodes if node.op == "call_function")
    return any(_is_refused(node.target, node.args, node.kwargs) for node in calls)


def asking_first(rules: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Decompositions that raise RefusedByEager for a call that eager refuses."""

    def asking(target: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
        def decompose(*args: Any, **kwargs: Any) -> Any:
            if _is_refused(target, args, kwargs):
                raise RefusedByEager
            return rule(*args, **kwargs)

        return decompose

    return {target: asking(target, rule) for target, rule in rules.items()}


class _Tensor(NamedTuple):
    """A tensor of few elements, to be made."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class _Value(NamedTuple):
    """An argument that is no tensor. Its type tells 1 from 1.0 and True."""

    type: type
    value: Any


class _Elsewhere(Exception):
    """An argument of a call is not on the CPU, or is nothing that can be made here."""


class Cause(Enum):
    """Why eager refuses a call with few elements."""

    NONE = auto()
    DTYPES = auto()
    ANY = auto()


_known: dict[Hashable, Cause] = {}
"""Why eager refuses a call, by the operator and its arguments."""


def _is_refused(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether eager refuses a call; False for one that is not of the CPU alone."""
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return False
    if target in LEFT_ALONE:
        return False
    try:
        key = target, *_few_arguments(target, args, kwargs)
        if key not in _known:
            with _as_in_eager(target):
                _known[key] = _cause(*key)
        if _known[key] is not Cause.ANY:
            return _known[key] is Cause.DTYPES
        whole = _few((args, *kwargs.values()), NO_LIMIT)
        return whole == (key[1], *(value for _, value in key[2]))
    except _Elsewhere:
        return False


def _few_arguments(
    target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """The arguments of a call with few elements. A number that elements are computed from stays as it is."""
    schema = target._schema.arguments
    numbers = {argument.name for argument in schema if "number" in str(argument.type)}
    if target.overloadpacket in SIZED_BY_NUMBERS:
        numbers = set[str]()

    def few(name: str, value: Any) -> Any:
        return _few(value, NO_LIMIT if name in numbers and isinstance(value, int) else FEW)

    names = [argument.name for argument in schema]
    positional = tuple([few(name, value) for name, value in zip(names, args, strict=False)])
    return positional, tuple([(name, few(name, value)) for name, value in kwargs.items()])


def _few(value: Any, most: int = FEW) -> Any:
    """An argument with nothing above `most` in it, and no sizes; a list as a tuple. Raises _Elsewhere."""
    if isinstance(value, torch.fx.Node):
        value = value.meta.get("val")
    if isinstance(value, torch.Tensor):
        if not value.is_cpu or value.layout is not torch.strided:
            raise _Elsewhere
        return _Tensor(tuple([_few_of(extent, most) for extent in value.shape]), value.dtype)
    if isinstance(value, (tuple, list)):
        return tuple([_few(item, most) for item in cast(Sequence[Any], value)])
    if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
        return _few_of(value, most)
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return _Value(value.node.pytype, value.node.pytype(0))
    if not isinstance(value, PLAIN) or (isinstance(value, torch.device) and value != CPU):
        raise _Elsewhere
    return _Value(type(value), value)


def _few_of(extent: int | torch.SymInt, most: int) -> int:
    return most if isinstance(extent, torch.SymInt) else min(extent, most)


def _cause(target: Any, args: Sequence[Any], kwargs: Sequence[tuple[str, Any]]) -> Cause:
    """Why eager refuses a call: for its dtypes, if it takes f32 in the place of all, or of all floats."""
    if not all(_fails(target, args, kwargs, fill) for fill in FILLS):
        return Cause.NONE
    if _fails_fake(target, args, kwargs):
        return Cause.NONE
    for whole in (True, False):
        if not _fails(target, _in_floats(args, whole), _in_floats(kwargs, whole), FILLS[0]):
            return Cause.DTYPES
    return Cause.ANY


def _in_floats(value: Any, whole: bool) -> Any:
    """What `_few` gives with f32 in the place of dtypes: of all, or else of those of floats."""

    def changed(dtype: torch.dtype) -> torch.dtype:
        return torch.float32 if whole or dtype.is_floating_point else dtype

    match value:
        case _Tensor():
            return _Tensor(value.shape, changed(value.dtype))
        case _Value():
            is_dtype = isinstance(value.value, torch.dtype)
            return _Value(value.type, changed(value.value)) if is_dtype else value
        case tuple():
            return tuple([_in_floats(item, whole) for item in cast(Sequence[Any], value)])
        case _:
            return value


def _made(value: Any, fill: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The argument that `_few` describes."""
    match value:
        case _Tensor():
            return fill(torch.zeros(value.shape, dtype=value.dtype))
        case _Value():
            return value.value
        case tuple():
            return [_made(item, fill) for item in cast(Sequence[Any], value)]
        case _:
            return value


def _as_in_eager(target: Any) -> ExitStack:
    """A context in which operators run as in eager, without a trace: no warning, no log, no random number."""
    stack = ExitStack()
    stack.callback(logging.disable, logging.root.manager.disable)
    logging.disable(logging.CRITICAL)  # a failure on fake tensors is an error in PyTorch's log
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    stack.enter_context(_disable_current_modes())
    stack.enter_context(torch._C._DisablePythonDispatcher())  # pyright: ignore[reportPrivateUsage]
    stack.enter_context(torch.no_grad())
    if torch.Tag.nondeterministic_seeded in target.tags:
        stack.enter_context(torch.random.fork_rng(devices=()))
    return stack


def _fails(
    target: Any,
    args: Sequence[Any],
    kwargs: Sequence[tuple[str, Any]],
    fill: Callable[[torch.Tensor], torch.Tensor],
) -> bool:
    """Whether a call fails on tensors that are filled so. Raises OF_VALUES where fake ones are not enough."""
    try:
        target(*_made(args, fill), **{name: _made(value, fill) for name, value in kwargs})
    except OF_VALUES:
        raise
    except Exception:
        return True
    return False


def _fails_fake(target: Any, args: Sequence[Any], kwargs: Sequence[tuple[str, Any]]) -> bool:
    """Whether a call fails on fake tensors, for another reason than that they have no values."""
    with FakeTensorMode(), enable_python_dispatcher():
        try:
            return _fails(target, args, kwargs, torch.Tensor.zero_)
        except OF_VALUES:
            return False
