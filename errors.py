"""The errors a user of deplo can meet, each with the exit code its command-line tools use.

A message is one screen: what went wrong, where, why, and what to do next.
"""

from __future__ import annotations


class DeploError(Exception):
    """A compile-time failure that is the input's fault or a limit of deplo, told in the user's words."""

    exit_code = 1


class UsageError(DeploError):
    """The command line or an argument of the API is wrong."""

    exit_code = 2


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


def counted(number: int, noun: str) -> str:
    """How many there are of what: `1 kernel`, `2 kernels`."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
