"""What runs compiled programs. `deplo.runtime.load` reads one from a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loaded import LoadedProgram, load

__all__ = ["LoadedProgram", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".loaded", __name__), name)
