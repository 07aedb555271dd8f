"""Exports a program with torch.export, in operators of the dialect as far as PyTorch can decompose others.

Where that fails, the error says whether the program itself does, what it cannot be captured with, and where.
"""

from __future__ import annotations

import functools
import io
import logging
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, cast

import torch
from torch._functorch.predispatch import (
    _make_dual,  # pyright: ignore[reportPrivateUsage]
)
from torch._subclasses.fake_tensor import FakeTensor
from torch.export._trace import _export  # pyright: ignore[reportPrivateUsage]
from torch.fx._lazy_graph_module import (
    _use_lazy_graph_module,  # pyright: ignore[reportPrivateUsage]
)
from torch.utils import _pytree as pytree

from ..errors import DeploError, UnsupportedOpError, UsageError, also
from .decompose import decompose
from .dynamic_shapes import AskedAxis, traceable
from .eager_checks import is_refused_by_eager
from .effects import Effects
from .export_errors import reason_of, sizes_do_not_fit
from .exported_updates import MemoryChanges, memory_changes
from .importer import Fallback
from .python_values import Inputs, distinct
from .random_numbers import check_all_kept, number_of_draws
from .tracing import watching
from .undo import undone
from .unsupported import raised_at

_functorch: Any = cast(Any, torch)._C._functorch

UNUSED = "_deplo_unused"
"""The name of a buffer that stands for state where a program has none."""


class SizesDoNotFit(DeploError):
    """torch.export found that a program is not for all sizes asked for, or could not prove that it is."""


def export(
    module: torch.nn.Module,
    inputs: Inputs,
    fallback: Fallback,
    dynamic_shapes: Any = None,
    asked: Sequence[AskedAxis] = (),
    *,
    assertions: bool = False,
) -> tuple[torch.export.ExportedProgram, MemoryChanges]:
    """The program as it runs on `inputs`, but for the extents that are asked to be dynamic.

    With `assertions`, what the program needs of its sizes beyond the ranges asked for is asserted in it.
    Raises UsageError for a program that fails, UnsupportedOpError for one that cannot be captured, and
    SizesDoNotFit for one that needs more of its sizes, without `assertions`.
    """
    traced = traceable(inputs, asked)
    shown = distinct(traced, module)
    effects = Effects(module)

    def run() -> Any:
        with _quiet(), undone(module):
            return module(*inputs.args, **inputs.kwargs)

    try:
        with torch.no_grad(), _quiet():
            exported = _traced(module, shown, effects, dynamic_shapes, assertions=assertions)
        effects.raise_if_any(run)
        if is_refused_by_eager(exported.graph):
            _raise_eager_failure(run)
        changes = memory_changes(exported, effects)
        drawn = number_of_draws(exported)
        with torch.no_grad(), _quiet():
            decomposed = decompose(exported, calls_pytorch=fallback == "eager")
        if fallback == "eager":
            check_all_kept(drawn, decomposed)
        return decomposed, changes
    except Exception as error:
        if isinstance(error, DeploError):
            raise
        effects.raise_if_any(run)
        _raise_eager_failure(run)
        if asked and (told := sizes_do_not_fit(error)) is not None:
            raise SizesDoNotFit(told) from error
        longer = "" if traced is inputs else ", with 2 positions for each dynamic axis of 1"
        told = _failure(f"this program cannot be captured{longer}", error)
        raise UnsupportedOpError(told) from error


def _traced(
    module: torch.nn.Module,
    shown: Inputs,
    effects: Effects,
    dynamic_shapes: Any,
    *,
    assertions: bool,
) -> torch.export.ExportedProgram:
    """The program as torch.export follows it, or below autograd and torch.func if only that works."""
    options: dict[str, Any] = {
        "dynamic_shapes": dynamic_shapes,
        "strict": False,
        "prefer_deferred_runtime_asserts_over_guards": assertions,
    }
    failure: Exception | None = None
    for trace in (torch.export.export, _below_autograd):
        try:
            # Lazy graph modules, as Dynamo's are: the code of what passes between passes is not generated.
            with (
                watching(module, effects),
                _transforms_ended(),
                _use_lazy_graph_module(True),
                _some_state(module, shown),
            ):
                exported = trace(module, shown.args, shown.kwargs, **options)
        except DeploError:
            raise
        except Exception as error:
            failure = failure or error
        else:
            if _can_be_traced_again(exported):
                return exported
    if failure is None:
        raise UnsupportedOpError("this program has a tensor that torch.export cannot follow")
    raise failure


def _can_be_traced_again(exported: torch.export.ExportedProgram) -> bool:
    """Whether a program holds no tensor of its trace, and no derivative in forward mode as calls."""
    if any(map(_is_of_trace, exported.constants.values())):
        return False
    return not exported.graph.find_nodes(op="call_function", target=_make_dual)


def _is_of_trace(constant: object) -> bool:
    """Whether a constant of a program is a tensor of the trace, for which there is no value."""
    if not isinstance(constant, torch.Tensor):
        return False
    return isinstance(constant, FakeTensor) or _functorch.is_functorch_wrapped_tensor(constant)


@contextmanager
def _some_state(module: torch.nn.Module, inputs: Inputs) -> Generator[None]:
    """Give a program with neither inputs nor state an empty buffer, which it does not use.

    torch.export puts the tensors of closures before the first of these, or else in no order.
    """
    leaves = pytree.tree_leaves((inputs.args, inputs.kwargs))
    bare = next(module.parameters(), None) is None and next(module.buffers(), None) is None
    if leaves or not bare:
        yield
        return
    module.register_buffer(UNUSED, torch.empty(0))
    try:
        yield
    finally:
        delattr(module, UNUSED)


_below_autograd = functools.partial(_export, pre_dispatch=False)


@contextmanager
def _transforms_ended() -> Generator[None]:
    """End the transforms of torch.func that an exception has left without doing so."""
    depth = _transforms()
    try:
        yield
    finally:
        while _transforms() > depth:
            _functorch.pop_dynamic_layer_stack()


def _transforms() -> int:
    """How many transforms of torch.func run."""
    innermost = _functorch.peek_interpreter_stack()
    return 0 if innermost is None else innermost.level()


def _raise_eager_failure(run: Callable[[], Any]) -> None:
    """Raise UsageError if the program fails in PyTorch: an error of the class that it fails with as well."""
    try:
        run()
    except Exception as error:
        kind = also(UsageError, type(error))
        raise kind(_failure("this program fails in PyTorch", error)) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Export warns about and logs its own internals, which a user cannot act on."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _failure(what: str, error: Exception) -> str:
    """What was raised in one line, and the user's lines that led there."""
    return f"{what}: {reason_of(error)}{raised_at(error)}"
