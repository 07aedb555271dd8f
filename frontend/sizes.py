"""The dynamic sizes of an exported program: torch.export's symbols as those of the IR.

    x: f32[s77, s27 + 1]        # export's, sympy expressions
    tensor<?x?xf32, #sym.extents<s0, s1 + 1>>

The symbols are numbered in the order in which they appear in the inputs. Export has proven the program for
the sizes within each symbol's range; whatever else it took for granted must follow from these ranges, or the
program is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import sympy
import torch
from torch.utils._sympy import functions
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from ..dialects.affine import quotient, remainder
from ..dialects.sizes import (
    MAX_SIZE,
    Extent,
    Size,
    SizeAttr,
    UndecidedSize,
    allowing,
    extent_expr,
    extent_of,
)
from ..errors import UnsupportedOpError
from .dynamic_shapes import TRACED_EXTENT, AskedAxis

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
"""What export computes from sizes."""


class Refused(Exception):
    """An argument's value cannot be expressed; the message says which and why."""


class Sizes:
    """The dynamic sizes of one program, by export's symbols; without any, all sizes are numbers."""

    def __init__(self, symbols: Mapping[sympy.Symbol, SizeAttr] | None = None):
        known = {} if symbols is None else symbols
        self._positions = {symbol: i for i, symbol in enumerate(known)}
        self.attributes = tuple(known.values())
        self._ranges = {
            symbol: ValueRanges(size.minimum.data, size.largest) for symbol, size in known.items()
        }
        self._labels = {
            symbol: sympy.Symbol(size.label.data, integer=True, positive=True)
            for symbol, size in known.items()
        }

    def extent(self, value: int | torch.SymInt) -> Extent:
        """An extent that export gives. Raises Refused if the IR has no expression for it."""
        if not isinstance(value, torch.SymInt):
            return value
        expr = expression_of(value)
        try:
            with allowing(self.attributes):
                return self._extent(expr)
        except UndecidedSize as error:
            raise Refused(f"the size {self.text(expr)}: {error}") from error

    def shape(self, value: torch.Tensor) -> tuple[Extent, ...]:
        """The extents of a tensor. Raises Refused."""
        return tuple(self.extent(n) for n in value.shape)

    def text(self, expr: Any) -> str:
        """An expression of export's, with the names that the user gave."""
        return str(expr.xreplace(self._labels)) if isinstance(expr, sympy.Basic) else str(expr)

    def holds(self, condition: Any) -> bool:
        """Whether a condition on sizes holds for all that are allowed."""
        if condition in (True, sympy.true):
            return True
        if condition in (False, sympy.false) or not condition.free_symbols <= set(self._ranges):
            return False
        found = bound_sympy(condition, self._ranges)
        return found.lower == sympy.true and found.upper == sympy.true

    def _extent(self, expr: Any) -> Extent:
        match expr:
            case sympy.Integer():
                return int(expr)
            case sympy.Symbol():
                if expr not in self._positions:
                    raise Refused("a size that depends on the values in tensors")
                return Size.symbol(self._positions[expr])
            case sympy.Add():
                return sum((self._extent(e) for e in expr.args), 0)
            case sympy.Mul():
                return self._product(self._extent(e) for e in expr.args)
            case sympy.Pow(args=(base, sympy.Integer() as exponent)) if exponent > 0:
                return self._product([self._extent(base)] * int(exponent))
            case functions.Min() | sympy.Min():
                return self._extreme(expr.args, smallest=True)
            case functions.Max() | sympy.Max():
                return self._extreme(expr.args, smallest=False)
            case _:
                return self._quotient(expr)

    def _quotient(self, expr: Any) -> Extent:
        match expr:
            case functions.FloorDiv() | functions.CleanDiv():
                dividend, divisor = self._division(expr)
                return extent_of(quotient(extent_expr(dividend), extent_expr(divisor)))
            case functions.Mod() | functions.PythonMod():
                dividend, divisor = self._division(expr)
                return extent_of(remainder(extent_expr(dividend), extent_expr(divisor)))
            case functions.TruncToInt(args=(functions.IntTrueDiv() as ratio,)):
                dividend, divisor = self._division(ratio)
                if dividend % divisor == 0:
                    return dividend // divisor
            case _:
                pass
        raise Refused(f"the size {self.text(expr)}, which deplo cannot express")

    def _product(self, factors: Iterable[Extent]) -> Extent:
        result: Extent = 1
        for factor in factors:
            result = result * factor
        return result

    def _division(self, expr: Any) -> tuple[Extent, Extent]:
        """Both operands; the divisor must be positive."""
        dividend, divisor = (self._extent(e) for e in expr.args)
        if divisor < 1:
            raise Refused(f"the size {self.text(expr)}, a division by {divisor}")
        return dividend, divisor

    def _extreme(self, exprs: Sequence[Any], *, smallest: bool) -> Extent:
        first, *others = (self._extent(e) for e in exprs)
        for other in others:
            if (other < first) == smallest:
                first = other
        return first


def expression_of(value: torch.SymInt) -> Any:
    """Export's expression of a size."""
    return value.node.expr


def is_symbolic(value: object) -> TypeGuard[torch.SymInt | torch.SymFloat | torch.SymBool]:
    """Whether export computes `value` from sizes."""
    return isinstance(value, SYMBOLIC)


def input_sizes(
    inputs: Sequence[tuple[str, torch.Tensor, torch.Tensor]],
    asked: Mapping[tuple[str, int], AskedAxis],
    limits: Mapping[Any, ValueRanges[Any]],
) -> Sizes:
    """The sizes that the inputs have: (name, export's tensor, the example) for each of them.

    `asked` says what was asked of which axis, and `limits` is export's range of each symbol. Raises
    UnsupportedOpError for a size that is the whole extent of no axis.
    """
    seen: dict[sympy.Symbol, tuple[str, int]] = {}
    defined: dict[sympy.Symbol, tuple[str, int, int]] = {}
    for name, value, example in inputs:
        for axis, extent in enumerate(value.shape):
            if not isinstance(extent, torch.SymInt):
                continue
            expr = expression_of(extent)
            for symbol in sorted(expr.free_symbols, key=str):
                seen.setdefault(symbol, (name, axis))
            if isinstance(expr, sympy.Symbol):
                defined.setdefault(expr, (name, axis, example.shape[axis]))
    symbols: dict[sympy.Symbol, SizeAttr] = {}
    for symbol, (name, axis) in seen.items():
        if symbol not in defined:
            raise UnsupportedOpError(
                f"dynamic_shapes: the extent of axis {axis} of {name} is computed from a size that is the "
                "whole extent of no axis of an input; give that size an axis, or fix this one"
            )
        name, axis, hint = defined[symbol]
        said = asked.get((name, axis))
        label = said.name if said is not None and said.name is not None else f"{name}:{axis}"
        symbols[symbol] = _size(label, limits[symbol], hint)
    return Sizes(symbols)


def _size(label: str, limits: ValueRanges[Any], hint: int) -> SizeAttr:
    """What the IR says of a symbol. Export takes an extent of 1 for one that never changes."""
    lower, upper = limits.lower, limits.upper
    most = int(upper) if upper.is_Integer and int(upper) <= MAX_SIZE else None
    return SizeAttr(label, max(TRACED_EXTENT, int(lower)), most, max(hint, 1))


def check_guards(guards: Iterable[Any], sizes: Sizes) -> None:
    """Raise unless whatever export took for granted follows from the ranges of the sizes."""
    open_guards = [guard for guard in guards if not sizes.holds(guard)]
    if not open_guards:
        return
    listed = "\n".join(f"  {text}" for text in dict.fromkeys(map(sizes.text, open_guards)))
    raise UnsupportedOpError(
        "this program was captured for sizes with these properties only, which are no range of one size:\n"
        f"{listed}\nGive the sizes a smallest and largest value for which they hold, or fix them."
    )
