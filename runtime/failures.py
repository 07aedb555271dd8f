"""The Python exceptions that failed checks of kernels stand for."""

from __future__ import annotations

from ..errors import CheckError, DivisionByZeroError, OutOfRangeError


def failure(message: str) -> Exception:
    """The exception of a check that failed, which is of the class that eager raises as well."""
    if message.startswith("index"):
        return OutOfRangeError(message)
    if message.endswith("division by zero"):
        return DivisionByZeroError(message)
    return CheckError(message)
