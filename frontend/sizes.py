"""The dynamic sizes of an exported program: torch.export's symbols as those of the IR.

    x: f32[s77, s27 + 1]        # export's, sympy expressions
    tensor<?x?xf32, #sym.extents<s0, s1 + 1>>

The symbols are numbered in the order in which they appear in the inputs; behind them are those of sizes that
an operator finds in its data, such as the number of rows that `nonzero` gives. Export has proven the program
for the sizes within each symbol's range; what else it took for granted is in `size_guards.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import sympy
import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree
from torch.utils._sympy import functions
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from ..dialects.allowed_sizes import MAX_SIZE, SizeAttr, allowing
from ..dialects.multiples import Multiple, Range
from ..dialects.sizes import Extent, Size, UndecidedSize, extent_expr, extent_of, is_at_most
from ..errors import UnsupportedOpError
from ..index.affine import quotient, remainder
from .dynamic_shapes import TRACED_EXTENT, AskedAxis
from .python_values import Inputs

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
"""What export computes from sizes."""


LARGEST_PART = 1 << 20
"""Numerator and denominator of the floats that sizes are reckoned with: products with sizes stay exact."""

Limits: TypeAlias = Mapping[Any, ValueRanges[Any]]
"""The range of each symbol, as PyTorch has it."""


class Refused(Exception):
    """An argument's value cannot be expressed; the message says which and why."""


class Sizes:
    """The dynamic sizes of one program, by export's symbols; without any, all sizes are numbers."""

    def __init__(
        self,
        symbols: Mapping[sympy.Symbol, Range] | None = None,
        multiples: Mapping[sympy.Symbol, Multiple] | None = None,
        *,
        found: bool = False,
        same: Mapping[sympy.Symbol, sympy.Symbol] | None = None,
    ):
        """What export's symbols are; of those that are multiples of something, that is the size.

        `found` says whether some are found in data; `same` are others, each equal to one of these.
        """
        self.found = found
        self.known = {} if symbols is None else symbols
        self.multiples = {} if multiples is None else multiples
        self._dynamic = [s for s, values in self.known.items() if not values.is_single]
        self._extents: dict[sympy.Symbol, Extent] = {
            **{symbol: values.minimum for symbol, values in self.known.items()},
            **{
                symbol: self.multiples.get(symbol, Multiple()).extent(Size.symbol(i))
                for i, symbol in enumerate(self._dynamic)
            },
        }
        self._ranges = {
            symbol: ValueRanges(values.minimum, values.largest)
            for symbol, values in self.known.items()
        }
        self._labels = {
            symbol: sympy.Symbol(values.label, integer=True, positive=True)
            for symbol, values in self.known.items()
        }
        for symbol, other in (same or {}).items():
            self._extents[symbol] = self._extents[other]
            self._ranges[symbol] = self._ranges[other]
            self._labels[symbol] = self._labels[other]

    @cached_property
    def attributes(self) -> tuple[SizeAttr, ...]:
        """What the IR says of its symbols."""
        return tuple(
            self.multiples.get(symbol, Multiple()).attribute(self.known[symbol])
            for symbol in self._dynamic
        )

    def with_range(self, symbol: sympy.Symbol, minimum: int, maximum: int) -> Sizes:
        """The same with other limits of a symbol, which is a number where they are equal."""
        known = {**self.known, symbol: replace(self.known[symbol], minimum=minimum, maximum=maximum)}
        return Sizes(known, self.multiples, found=self.found)

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
        """An expression of export's as Python, with the names that the user gave."""
        if not isinstance(expr, sympy.Basic):
            return str(expr)
        return PythonPrinter().doprint(expr.xreplace(self._labels))

    def knows(self, expr: Any) -> bool:
        """Whether an expression of export's depends on nothing but the sizes of the inputs."""
        return expr.free_symbols <= set(self._ranges)

    def holds(self, condition: Any) -> bool:
        """Whether a condition on sizes holds for all that are allowed."""
        if condition in (True, sympy.true):
            return True
        if condition in (False, sympy.false) or not self.knows(condition):
            return False
        found = bound_sympy(condition, self._ranges)
        if found.lower == sympy.true and found.upper == sympy.true:
            return True
        match condition:
            case sympy.And():
                return all(map(self.holds, condition.args))
            case sympy.Or():
                return any(map(self.holds, condition.args))
            case sympy.core.relational.Relational() if condition.lhs.has(sympy.Float):
                whole = _without_fractions(condition)
                return whole is not None and self.holds(whole)
            case sympy.core.relational.Relational():
                return self._compares(condition)
            case _:
                return False

    def _compares(self, condition: Any) -> bool:
        """Whether a comparison holds for all sizes, as far as the arithmetic of extents knows."""
        try:
            with allowing(self.attributes):
                left, right = (self._extent(side) for side in (condition.lhs, condition.rhs))
        except (Refused, UndecidedSize):
            return False
        with allowing(self.attributes):
            match condition:
                case sympy.Eq():
                    return left == right
                case sympy.Ne():
                    return is_at_most(left + 1, right) or is_at_most(right + 1, left)
                case sympy.Le():
                    return is_at_most(left, right)
                case sympy.Lt():
                    return is_at_most(left + 1, right)
                case sympy.Ge():
                    return is_at_most(right, left)
                case _:
                    return is_at_most(right + 1, left)

    def _extent(self, expr: Any) -> Extent:
        match expr:
            case sympy.Integer():
                return int(expr)
            case sympy.Symbol():
                if expr not in self._extents:
                    raise Refused("a size that depends on the values in tensors")
                return self._extents[expr]
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


def _as_fraction(expr: Any) -> Any:
    """An expression of floats as one of sympy's own, with exact numbers; None if it is another."""
    match expr:
        case sympy.Float():
            ratio = float(expr).as_integer_ratio()
            return sympy.Rational(*ratio) if max(map(abs, ratio)) <= LARGEST_PART else None
        case functions.ToFloat(args=(inner,)):
            return inner
        case functions.IntTrueDiv() | functions.FloatTrueDiv() | sympy.Add() | sympy.Mul():
            parts = [_as_fraction(part) for part in expr.args]
            if None in parts:
                return None
            if isinstance(expr, sympy.Add | sympy.Mul):
                return expr.func(*parts)
            return parts[0] / parts[1]
        case _:
            return expr if expr.is_integer and not expr.has(sympy.Float) else None


def _without_fractions(condition: Any) -> Any:
    """A comparison of floats as one of whole numbers, which are exact in both; None if it is another."""
    sides = [_as_fraction(side) for side in condition.args]
    if None in sides:
        return None
    dividend, divisor = sympy.fraction(sympy.together(sympy.cancel(sides[0] - sides[1])))
    return condition.func(dividend, 0) if divisor.is_Integer and divisor > 0 else None


def expression_of(value: torch.SymInt) -> Any:
    """Export's expression of a size."""
    return value.node.expr


def multiple_of(expr: Any) -> tuple[sympy.Symbol, Multiple] | None:
    """The symbol that an extent is a multiple of, if there is one: then the extent says the symbol."""
    offset, rest = sympy.expand(expr).as_coeff_Add()
    scale, symbol = rest.as_coeff_Mul()
    if not (symbol.is_Symbol and scale.is_Integer and scale > 0 and offset.is_Integer):
        return None
    return symbol, Multiple(int(scale), int(offset))


def is_found(symbol: sympy.Symbol) -> bool:
    """Whether a symbol stands for a size that depends on values, and has no example."""
    return symbol_is_type(symbol, SymT.UNBACKED_INT)


def is_symbolic(value: object) -> TypeGuard[torch.SymInt | torch.SymFloat | torch.SymBool]:
    """Whether export computes `value` from sizes."""
    return isinstance(value, SYMBOLIC)


@dataclass(frozen=True)
class InputTensor:
    """A tensor among the flattened inputs: its name, as export has it, and as the caller gave it."""

    position: int
    name: str
    value: torch.Tensor
    example: tuple[int, ...]
    """The shape that the caller gave it."""

    def dynamic_extents(self) -> list[tuple[int, Any]]:
        """The axes whose extents are dynamic, each with export's expression."""
        return [
            (axis, expression_of(extent))
            for axis, extent in enumerate(self.value.shape)
            if isinstance(extent, torch.SymInt)
        ]


def input_tensors(exported: torch.export.ExportedProgram, inputs: Inputs) -> list[InputTensor]:
    """The tensors among the inputs that `exported` was made for."""
    values = {n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"}
    names = [
        spec.arg.name
        for spec in exported.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    ]
    examples = pytree.tree_leaves((inputs.args, inputs.kwargs))
    if len(names) != len(examples):
        raise UnsupportedOpError("dynamic_shapes: an input is neither tensor nor number")
    return [
        InputTensor(position, name, values[name], tuple(example.shape))
        for position, (name, example) in enumerate(zip(names, examples, strict=True))
        if isinstance(values[name], torch.Tensor) and isinstance(example, torch.Tensor)
    ]


def input_sizes(
    tensors: Sequence[InputTensor],
    asked: Sequence[AskedAxis],
    limits: Limits,
    may_be_one: Collection[sympy.Symbol] = (),
) -> Sizes:
    """The sizes of the inputs, in the order in which they appear.

    `limits` is export's range of each symbol; those in `may_be_one` are proven for 1 besides. Raises
    UnsupportedOpError for a size that no axis says.
    """
    names = {(each.position, each.axis, each.is_size): each.name for each in asked}
    seen: dict[sympy.Symbol, str] = {}
    known: dict[sympy.Symbol, Range] = {}
    multiples: dict[sympy.Symbol, Multiple] = {}
    extents = [(tensor, *each) for tensor in tensors for each in tensor.dynamic_extents()]
    # a whole extent first: its name is the size's
    for tensor, axis, expr in sorted(extents, key=lambda each: not each[2].is_Symbol):
        if (said := multiple_of(expr)) is not None and said[0] not in known:
            symbol, multiple = said
            # PyTorch takes the extent for the size where that is `n - 1`
            name = names.get((tensor.position, axis, multiple == Multiple()))
            label = name or multiple.label(f"{tensor.name}:{axis}")
            smallest = 1 if symbol in may_be_one else TRACED_EXTENT
            if is_found(symbol):
                smallest = 0
            if limits[symbol].lower < 0:  # a number, to which its carrier adds the offset
                label, smallest = tensor.name, 1 - multiple.offset
            hint = multiple.least_size(tensor.example[axis])
            known[symbol] = range_of(label, limits[symbol], smallest, hint)
            if known[symbol].minimum < 0:  # the IR's symbol is the extent, which is no less than 0
                multiples[symbol] = Multiple(1, -multiple.offset)
    for tensor, axis, expr in extents:
        for symbol in sorted(expr.free_symbols, key=str):
            seen.setdefault(symbol, f"axis {axis} of {tensor.name}")
    for symbol, place in seen.items():
        if symbol not in known:
            raise UnsupportedOpError(
                f"dynamic_shapes: the extent of {place} is computed from a size that no axis of an input "
                "says; give that size an axis, or fix this one"
            )
    return Sizes({symbol: known[symbol] for symbol in seen}, multiples)


def range_of(label: str, limits: ValueRanges[Any], smallest: int, hint: int) -> Range:
    """The values of a symbol that a program holds for; none below `smallest` but where all are."""
    lower, upper = limits.lower, limits.upper
    most = int(upper) if upper.is_Integer and int(upper) <= MAX_SIZE else None
    least = max(smallest, int(lower)) if lower.is_Integer else smallest
    if most is not None:
        least = min(least, most)
    return Range(label, least, most, max(hint, least))
