"""The dialects of deplo: six languages, `sym` for sizes, and `amx` for the matrix tiles of x86 CPUs.

A module is imported when first met.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect

_DIALECTS = {
    "sym": ".sizes:Sym",
    "torch": ".torch:Torch",
    "tensor_ir": ".tensor_ir:TensorIR",
    "loop": ".loop:Loop",
    "tile": ".tile:Tile",
    "kernel": ".kernel:Kernel",
    "cuda": ".cuda:Cuda",
    "amx": ".amx:Amx",
}
"""Dialect name -> "module:object", in the order a program meets them; `amx` only on such a CPU."""


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Each dialect's name with a function that imports and returns it."""
    return {name: _loader(where) for name, where in _DIALECTS.items()}


def _loader(where: str) -> Callable[[], Dialect]:
    module, _, attribute = where.partition(":")

    def load() -> Dialect:
        return getattr(import_module(module, __name__), attribute)

    return load
