"""The library of elementary functions: `math/*.ll`, LLVM's text of one function for each operation and type.

    define internal float @deplo_tanh_f32(float %x) alwaysinline { ... @deplo_exp_moderate_f32 ... }

A kernel's module holds the functions that it calls and those that they call. LLVM inlines them before it
vectorises loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILES = Path(__file__).with_name("math")
_DEFINITION = re.compile(r"^define [^@]*@(\w+)\(.*?^\}\n", re.MULTILINE | re.DOTALL)
_DECLARATION = re.compile(r"^declare [^@]*@([\w.]+)\(.*$", re.MULTILINE)
_CALL = re.compile(r"call [^@]*@([\w.]+)\(")


@dataclass(frozen=True)
class Definition:
    """One function of the library."""

    text: str
    calls: tuple[str, ...]
    """The functions that it calls, of the library or LLVM's own, without repetition."""


@cache
def _library() -> tuple[Mapping[str, Definition], Mapping[str, str]]:
    """The definitions of all functions, and the declarations of LLVM's own, by name."""
    text = "\n".join(path.read_text() for path in sorted(_FILES.glob("*.ll")))
    definitions = {
        found[1]: Definition(found[0], tuple(dict.fromkeys(_CALL.findall(found[0]))))
        for found in _DEFINITION.finditer(text)
    }
    return definitions, {found[1]: found[0] for found in _DECLARATION.finditer(text)}


def is_in_library(name: str) -> bool:
    """Whether the library defines a function."""
    return name in _library()[0]


@dataclass(frozen=True)
class Linked:
    """What a module needs for the functions of the library that it calls."""

    definitions: tuple[str, ...]
    declarations: Mapping[str, str]
    """Declarations of LLVM's own functions, by name."""


def link(names: Iterable[str]) -> Linked:
    """Return the text of functions of the library and of all that they call, callees first."""
    definitions, declarations = _library()
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in ordered:
            for callee in definitions[name].calls if name in definitions else ():
                add(callee)
            ordered[name] = None

    for name in names:
        add(name)
    return Linked(
        tuple(definitions[name].text for name in ordered if name in definitions),
        {name: declarations[name] for name in ordered if name in declarations},
    )
