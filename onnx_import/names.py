"""Names of models, which may be any text, as identifiers of the IR."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable


def identifier(name: str, taken: Collection[str]) -> str:
    """A name with what an identifier cannot have replaced, and a number behind it if it is taken."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    chosen, number = plain, 1
    while chosen in taken:
        chosen, number = f"{plain}_{number}", number + 1
    return chosen


def identifiers(names: Iterable[str]) -> list[str]:
    """Names as identifiers, no two alike."""
    found: dict[str, None] = {}
    for name in names:
        found[identifier(name, found)] = None
    return list(found)
