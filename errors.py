"""The errors a user of deplo can meet, each with the exit code its command-line tools use.

A message is one screen: what went wrong, where, why, and what to do next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any


class DeploError(Exception):
    """A compile-time failure that is the input's fault or a limit of deplo, told in the user's words."""

    exit_code = 1

    __str__ = Exception.__str__  # a class that is a KeyError as well prints the text, not its repr


class UsageError(DeploError):
    """The command line or an argument of the API is wrong."""

    exit_code = 2


class OutOfRangeError(IndexError, RuntimeError):
    """An index in a program's data is outside its axis. Eager raises an IndexError or a RuntimeError."""


class DivisionByZeroError(ZeroDivisionError, RuntimeError):
    """A program divides integers by 0. Eager raises a RuntimeError."""


class CheckError(DeploError, RuntimeError):
    """A program's data fails a check of an operator for which eager raises a RuntimeError."""


class UnsupportedOpError(DeploError):
    """The program uses operators, arguments or dtypes that deplo does not model; lists all of them."""


class FallbackWarning(UserWarning):
    """Operators of a program run in PyTorch, because `fallback="eager"` allows it; lists all of them."""


class CacheWarning(UserWarning):
    """Compiled code is not kept: the cache's directory is not safe, or cannot be written."""


class MismatchError(DeploError):
    """A result differs from the reference by more than the judge of `docs/` allows.

    Where passes changed what a program computes, `program` is the IR before them and `passes` their specs.
    """

    exit_code = 3

    def __init__(self, message: str, program: str = "", passes: tuple[str, ...] = ()):
        super().__init__(message)
        self.program = program
        self.passes = passes


class MissingEnvironmentError(DeploError):
    """The machine lacks what the request needs: a GPU, NVRTC, an optional package."""

    exit_code = 4


@cache
def also(kind: type[DeploError], raised: type[Exception]) -> type[DeploError]:
    """The subclass of `kind` that `except` of the class `raised` catches, too, as far as it can be made.

    `also(UsageError, IndexError)("…")` is both. Of a class with a constructor of its own it is the nearest
    base without one.
    """
    for base in raised.__mro__:
        if base is Exception or issubclass(kind, base):
            return kind
        if isinstance(vars(base).get("__init__"), FunctionType):
            continue
        try:
            combined = type(kind.__name__, (kind, base), {"__reduce__": _reduce(kind, raised)})
            combined("")
        except TypeError:
            continue
        combined.__module__ = kind.__module__
        return combined
    return kind


def _reduce(kind: type[DeploError], raised: type[Exception]) -> Callable[[Any], Any]:
    return lambda self: (_made_also, (kind, raised, *self.args))


def _made_also(kind: type[DeploError], raised: type[Exception], *args: Any) -> DeploError:
    return also(kind, raised)(*args)


def counted(number: int, noun: str) -> str:
    """How many there are of what: `1 kernel`, `2 kernels`."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
