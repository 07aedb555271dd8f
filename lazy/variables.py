"""`deplo.Variable`: an extent that is chosen when a prepared plan is executed.

    n = deplo.Variable("n", 1, 4096)
    x = deplo.Tensor(data)[:n]                    # shape (n, 64); the plan reads so many rows of the data

A variable is a size of the program (`dialects/sizes.py`). Sizes are numbered: here over the process, in a
program in the order in which its arrays have them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import index as whole
from typing import Any

from xdsl.ir.affine import AffineExpr

from ..dialects.allowed_sizes import DEFAULT_HINT, MAX_SIZE, SizeAttr, allowing
from ..dialects.sizes import Extent, Size, extent_of
from ..errors import UsageError
from ..index.affine import replace_symbols

_KNOWN: list[Variable] = []
_LOCK = threading.Lock()


class Variable(Size):
    """A size by its name, from `minimum` to `maximum`; those that say the same are the same."""

    def __init__(self, name: str, minimum: int, maximum: int):
        if not name.isidentifier():
            raise UsageError(f"a variable's name is an identifier, not {name!r}")
        if not 1 <= minimum <= maximum <= MAX_SIZE:
            raise UsageError(
                f"'{name}' must have limits from 1 to {MAX_SIZE}, got {minimum} to {maximum}"
            )
        hint = min(max(DEFAULT_HINT, minimum), maximum)
        attribute = SizeAttr(name, minimum, maximum, hint)
        with _LOCK:
            same = (i for i, each in enumerate(_KNOWN) if each.attribute == attribute)
            number = next(same, len(_KNOWN))
            super().__init__(AffineExpr.symbol(number))
            object.__setattr__(self, "attribute", attribute)
            if number == len(_KNOWN):
                _KNOWN.append(self)

    attribute: SizeAttr

    @property
    def name(self) -> str:
        """What `execute_with` calls it."""
        return self.attribute.label.data

    @property
    def minimum(self) -> int:
        """Its smallest value."""
        return self.attribute.least

    @property
    def maximum(self) -> int:
        """Its largest value."""
        return self.attribute.largest

    def __reduce__(self) -> tuple[Any, ...]:
        return Variable, (self.name, self.minimum, self.maximum)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def variables_in(extents: Iterable[Extent]) -> list[Variable]:
    """The variables that extents depend on, in the order in which these have them."""
    found = [n for extent in extents if isinstance(extent, Size) for n in sorted(extent.symbols)]
    return [_KNOWN[number] for number in dict.fromkeys(found)]


def extent(value: Any) -> Extent:
    """An argument that is an extent: a number, a variable or an expression over variables."""
    return value if isinstance(value, Size) else whole(value)


def extents(value: Any) -> tuple[Extent, ...]:
    """An argument that is a shape, or one extent."""
    return tuple(map(extent, value)) if isinstance(value, Sequence) else (extent(value),)


def named(shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """A shape in which extents that are variables are these, which print by their names."""
    if not any(isinstance(each, Size) for each in shape):
        return tuple(shape)
    known: dict[Extent, Extent] = {variable: variable for variable in variables_in(shape)}
    return tuple(known.get(each, each) for each in shape)


def largest(value: Extent) -> int:
    """The largest value of an extent that grows with its variables."""
    if not isinstance(value, Size):
        return value
    return value.evaluate([variable.maximum for variable in _KNOWN])


def reckoning() -> AbstractContextManager[None]:
    """Compare extents by the limits of the variables."""
    return allowing([variable.attribute for variable in _KNOWN]) if _KNOWN else nullcontext()


def with_names(text: str) -> str:
    """A text about sizes, with the names of variables for their numbers."""
    return re.sub(r"\bs(\d+)\b", lambda found: _KNOWN[int(found[1])].name, text)


class Numbering:
    """The numbers of variables in one program."""

    def __init__(self, variables: Sequence[Variable]):
        """Raises UsageError where two variables have one name."""
        self.attributes = [variable.attribute for variable in variables]
        names = [variable.name for variable in variables]
        for variable in variables:
            if names.count(variable.name) > 1:
                raise UsageError(f"two variables are named '{variable.name}', with other limits")
        own = {variable: i for i, variable in enumerate(variables)}
        self._symbols = [AffineExpr.symbol(own.get(variable, 0)) for variable in _KNOWN]

    def reckoning(self) -> AbstractContextManager[None]:
        """Compare extents in the program's numbers."""
        return allowing(self.attributes)

    def of(self, value: Any) -> Any:
        """A property or extent, sizes in the program's numbers."""
        if isinstance(value, Size):
            return extent_of(replace_symbols(value.expr, self._symbols))
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        return value
