"""Names in C: which are taken by the languages, their headers, and what runs a program."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Collection

from ..errors import UsageError

WORDS = frozenset(
    """alignas alignof asm auto bool break case char complex const constexpr continue default do double else
    enum errno extern false float for goto if imaginary inline int long noreturn nullptr register restrict
    return short signed sizeof static static_assert struct switch thread_local true typedef typeof
    typeof_unqual union unsigned void volatile while linux unix i386
    and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept
    const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new
    noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast
    template this throw try typeid typename using virtual wchar_t xor xor_eq""".split()
)
"""The words of C and C++, and what headers define: no name is one of them."""

OF_EXAMPLE = frozenset("calloc code fprintf main printf stderr".split())
"""What the example has names for already."""

GENERATED = re.compile(r"result_\d+|u?int\d+_t|size_t")


def identifier(name: str, taken: Collection[str]) -> str:
    """The name of a parameter in C; `taken` are others that it may not have."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    if made[:1].isdigit() or made in WORDS | OF_EXAMPLE or made in taken or GENERATED.fullmatch(made):
        return f"{made}_"
    return made


def is_function_name(name: str) -> bool:
    """Whether a function may have this name: it is none of C's, nor of its library, which it would hide."""
    if not re.fullmatch("[a-z_][a-z0-9_]*", name) or name in WORDS | OF_EXAMPLE:
        return False
    own = name.startswith("deplo_") or GENERATED.fullmatch(name)
    return not own and not hasattr(ctypes.CDLL(None), name)


def check_function_name(name: str, taken: Collection[str]) -> None:
    """Raise UsageError for the name of a library's function that it cannot have."""
    if not re.fullmatch("[a-z_][a-z0-9_]*", name):
        raise UsageError(f"'{name}' names no C function: use small letters, digits and _")
    if not is_function_name(name) or name in taken:
        raise UsageError(f"'{name}' names something else in C already: choose another name")
