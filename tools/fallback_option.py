"""`--fallback`: whether operators that deplo does not support may run in PyTorch, and saying which do."""

from __future__ import annotations

import sys
from typing import Any

from ..analysis.eager_calls import EagerCall, summary

FALLBACK_OPTION: dict[str, Any] = {
    "choices": ["error", "eager"],
    "default": "error",
    "help": "what to do with operators that deplo does not support: refuse, or run them in PyTorch",
}
"""The option's declaration."""


def tell_fallbacks(listed: tuple[EagerCall, ...]) -> None:
    """Say on stderr which operators PyTorch runs, if there are any."""
    if (told := summary(listed)) is not None:
        print(told, file=sys.stderr)
