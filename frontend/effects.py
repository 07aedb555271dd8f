"""What a program changes besides tensors: settings and generators of PyTorch, and attributes of its modules.

    torch.manual_seed(5)         # or
    self.state = self.state + x  # where `state` is no buffer

torch.export runs such a line once, while the program is captured, and the program never does. So it is
refused with its line, and what it changed is as before.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType
from typing import Any, cast

import torch
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from ..errors import UnsupportedOpError
from .unsupported import SourceLine, is_internal


@dataclass(frozen=True)
class Setting:
    """Something that belongs to the process: how to read it, and how to set it."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], Any]


def _default_device() -> torch.device | None:
    """The device that the user has set; None if none is."""
    context = getattr(cast(Any, torch)._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


SETTINGS = (
    Setting(
        "PyTorch's random numbers",
        lambda: torch.get_rng_state().numpy().tobytes(),
        lambda state: torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8)),
    ),
    Setting("Python's random numbers", random.getstate, random.setstate),
    Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("the default device", _default_device, torch.set_default_device),
    Setting("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting("the gradient mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting(
        "whether algorithms are deterministic",
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    Setting(
        "the precision of products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
)

PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)
"""Types whose values are compared; any other object is itself or another."""

CACHED = ("_flat_weights", "_flat_weight_refs")
"""What PyTorch's recurrent networks keep of their parameters, and make anew when one is set."""

MEMBERS = ("_parameters", "_buffers", "_modules")
"""Attributes of a module whose tensors torch.export follows, if it is the module that is exported."""

_PACKAGE = __name__.rpartition(".")[0]

MOST_LINES = 10_000
"""Lines of the user's code that are run to find one."""


class Effects:
    """What a module changes besides tensors while it runs."""

    def __init__(self, module: torch.nn.Module):
        self._parts = list(_parts_of(module))
        self._changed: list[str] = []
        self.assigned: set[str] = set()
        """The buffers, by their dotted names, that attributes of modules are other tensors than."""
        self.depends_on_strides = False
        """Whether the program calls a function that gives memory of its argument for some strides only."""

    @contextmanager
    def noted(self) -> Generator[None]:
        """Note what is changed as long as this lasts, and set it as it was."""
        state = _State.of(self._parts)
        buffers = dict(self._buffers())
        fork, torch.random.fork_rng = torch.random.fork_rng, _refuse_fork
        try:
            yield
        finally:
            torch.random.fork_rng = fork
            self._changed += state.changes()
            now = dict(self._buffers())
            self.assigned |= {name for name, was in buffers.items() if now.get(name) is not was}
            state.restore()

    def _buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers of the module that is exported, with their dotted names."""
        for part in self._parts:
            for key, value in part.values.get("_buffers", {}).items() if part.followed else ():
                yield f"{part.owner}.{key}" if part.owner else key, value

    def raise_if_any(self, run: Callable[[], Any]) -> None:
        """Raise UnsupportedOpError if anything was changed; `run` runs the program, to find the line."""
        if not self._changed:
            return
        with torch.no_grad():  # as when the program was captured
            state = _State.of(self._parts)
            line = _line_of_change(state, run)
            state.restore()
        where = "" if line is None else f"\n  {line}"
        raise UnsupportedOpError(
            f"this program changes {', '.join(dict.fromkeys(self._changed))}, which a compiled program would "
            f"not do:{where}\n"
            "Do it outside of what is compiled; a tensor that a module keeps is to be a result of it."
        )


def _refuse_fork(*args: Any, **kwargs: Any) -> Any:
    """In the place of `torch.random.fork_rng`."""
    caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    line = SourceLine(caller.f_code.co_filename, caller.f_lineno)
    raise UnsupportedOpError(
        f"deplo does not support torch.random.fork_rng, which this program uses:\n  {line}"
    )


@dataclass(frozen=True)
class _State:
    """What a program could change, as it was."""

    settings: tuple[Any, ...]
    names: tuple[tuple[_Names, dict[str, Any]], ...]
    """Names, with what they stood for."""

    @classmethod
    def of(cls, parts: Sequence[_Names]) -> _State:
        names = tuple(
            (part, {key: _copied(part, key, part.values[key]) for key in part if key in part.values})
            for part in parts
        )
        with _disable_current_modes():
            return cls(tuple(setting.get() for setting in SETTINGS), names)

    def changes(self) -> Iterator[str]:
        """The names of all that is not as it was."""
        with _disable_current_modes():
            now = [setting.get() for setting in SETTINGS]
        for setting, value, before in zip(SETTINGS, now, self.settings, strict=True):
            if value != before:
                yield setting.name
        for part, key, _ in self._changed():
            yield f"{part.kind} '{f'{part.owner}.{key}' if part.owner else key}'"

    def restore(self) -> None:
        """Set all of it as it was."""
        with _disable_current_modes():
            for setting, value in zip(SETTINGS, self.settings, strict=True):
                if setting.get() != value:
                    setting.set(value)
        for part, key, before in list(self._changed()):
            _put_back(part, key, before)

    def _changed(self) -> Iterator[tuple[_Names, str, dict[str, Any]]]:
        for part, before in self.names:
            for key in {**before, **dict.fromkeys(part)}:
                if not _same(_copied(part, key, part.values.get(key)), before.get(key)):
                    yield part, key, before


@dataclass(frozen=True)
class _Names:
    """Attributes of a module or variables of a function."""

    kind: str
    owner: str
    values: dict[str, Any]
    named: frozenset[str] | None = None
    """The names that count; None for all but those that are CACHED."""
    followed: bool = False
    """Whether torch.export follows the tensors of its MEMBERS: their names alone count."""

    def __iter__(self) -> Iterator[str]:
        names = list(self.values) if self.named is None else self.named
        return (name for name in names if name not in CACHED)


def _of_function(function: FunctionType) -> Iterator[_Names]:
    """The global variables that a function names, and what it closes over."""
    code = function.__code__
    yield _Names("the global variable", "", function.__globals__, frozenset(code.co_names))
    yield _Names("the variable", "", _closed_over(function))


def _closed_over(function: FunctionType) -> dict[str, Any]:
    """The values of variables that a function closes over, but for those without one yet."""
    values: dict[str, Any] = {}
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            values[name] = cell.cell_contents
    return values


def _parts_of(module: torch.nn.Module) -> Iterator[_Names]:
    """The user's names: of `module` and its parts, and of functions and modules that it names."""
    seen: set[int] = set()
    waiting: list[object] = [module]
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        match held:
            case torch.nn.Module():
                waiting.append(vars(held).get("forward"))
                for name, part in held.named_modules():
                    if not type(part).__module__.startswith(_PACKAGE):
                        yield _Names("the attribute", name, vars(part), followed=held is module)
            case MethodType():
                waiting += [held.__self__, held.__func__]
            case FunctionType():
                waiting += _closed_over(held).values()
                if not is_internal(held.__code__.co_filename):
                    named = map(held.__globals__.get, held.__code__.co_names)
                    waiting += [each for each in named if isinstance(each, torch.nn.Module)]
                    yield from _of_function(held)
            case _:
                pass


@dataclass(frozen=True)
class _Container:
    """A list, dictionary or set, and what was in it."""

    value: Any
    items: tuple[Any, ...]


def _copied(part: _Names, key: str, value: Any) -> Any:
    if key in MEMBERS and part.followed:
        return _Container(value, tuple(value))
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
        return _Container(value, tuple(part for item in items for part in item))
    return _Container(value, tuple(value)) if type(value) in (list, set) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, _Container) and isinstance(other, _Container):
        return len(one.items) == len(other.items) and all(map(_same, one.items, other.items))
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        items, others = cast(tuple[Any, ...], one), cast(tuple[Any, ...], other)
        return len(items) == len(others) and all(map(_same, items, others))
    return type(one) is type(other) and isinstance(one, PLAIN) and bool(one == other)


def _put_back(part: _Names, key: str, before: dict[str, Any]) -> None:
    now = part.values
    if key not in before:
        del now[key]
        return
    was = before[key]
    now[key] = was.value if isinstance(was, _Container) else was
    if isinstance(was, _Container):
        _refill(was.value, was.items, named=key in MEMBERS and part.followed)


def _refill(value: Any, items: Sequence[Any], *, named: bool) -> None:
    if named:
        for name in set(value) - set(items):
            del value[name]
        return
    value.clear()
    if isinstance(value, dict):
        value.update(zip(items[::2], items[1::2], strict=True))
    else:
        (value.extend if isinstance(value, list) else value.update)(items)


def _is_of_python(file: str) -> bool:
    """Whether a file is of Python's own library."""
    return file.startswith(os.path.dirname(os.__file__)) and "site-packages" not in file


def _line_of_change(state: _State, run: Callable[[], Any]) -> SourceLine | None:
    """The user's line behind which something is first not as it was, in a run of the program."""
    latest: list[SourceLine] = []
    found: list[SourceLine] = []
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        file = frame.f_code.co_filename
        if is_internal(file) or _is_of_python(file) or found or count > MOST_LINES:
            return None
        count += 1
        if latest and next(state.changes(), None) is not None:
            found.append(latest[0])
        latest[:] = [SourceLine(file, frame.f_lineno)]
        return trace

    traced = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except Exception:
        return found[0] if found else None
    finally:
        sys.settrace(traced)
    return (found or latest or [None])[0]
