"""The `sym` dialect: dynamic sizes, reckoned with and in types.

A dynamic size is a symbol, `s0`, `s1`, …, numbered over the module. An extent is a number or a `Size`, an
expression over symbols; a type that has dynamic extents says which, in the order of its `?`:

    tensor<?x?x64xf32, #sym.extents<s0, s0 * s1 + 1>>
    memref<?x64xf32, #sym.extents<s0>>

So a type says which extents are equal. `@main` says what its symbols stand for (`allowed_sizes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute, Data, Dialect
from xdsl.ir.affine import (
    AffineConstantExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.base_printer import BasePrinter
from xdsl.utils.exceptions import VerifyException

from ..errors import DeploError
from ..index.affine import (
    as_expr,
    count_symbols,
    leaves,
    product,
    quotient,
    remainder,
    replace_symbols,
)
from ..index.ranges import bounds, expand, proven_nonnegative
from ..index.simplify import simplify
from ..index.text import index_text, parse_index_expr, print_index_expr
from .allowed_sizes import DEFAULT_HINT, MAX_SIZE, SizeAttr, allowed_now


class UndecidedSize(DeploError):
    """A decision depends on a size that is known only at run time."""


@dataclass(frozen=True, eq=False)
class Size:
    """A size known at run time: an expression over symbols in canonical form, never a constant.

    Arithmetic gives a `Size`, or a number where the result is constant. Equality is of expressions: no
    size equals a number. An ordering that holds for all symbols from 1 on is decided, or within `allowing`
    for all that are allowed; any other, and any use as a Python number, raises `UndecidedSize`.
    """

    expr: AffineExpr

    @staticmethod
    def symbol(position: int) -> Size:
        """The size that symbol `position` stands for."""
        return Size(AffineExpr.symbol(position))

    def __str__(self) -> str:
        return index_text(self.expr)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.expr == other.expr

    def __hash__(self) -> int:
        return hash(self.expr)

    @property
    def symbols(self) -> set[int]:
        """The symbols it depends on."""
        return {e.position for e in leaves(self.expr) if isinstance(e, AffineSymExpr)}

    def evaluate(self, symbols: Sequence[int]) -> int:
        """The size where symbol `i` is `symbols[i]`."""
        return self.expr.eval((), symbols)

    # ---- arithmetic

    def __add__(self, other: Extent) -> Extent:
        return extent_of(self.expr + extent_expr(other))

    def __sub__(self, other: Extent) -> Extent:
        return extent_of(self.expr + product(extent_expr(other), -1))

    def __rsub__(self, other: int) -> Extent:
        return extent_of(product(self.expr, -1) + other)

    def __neg__(self) -> Extent:
        return 0 - self

    def __mul__(self, other: Extent) -> Extent:
        return extent_of(product(self.expr, extent_expr(other)))

    def __floordiv__(self, other: Extent) -> Extent:
        return extent_of(quotient(self.expr, extent_expr(other)))

    def __rfloordiv__(self, other: int) -> Extent:
        return extent_of(quotient(as_expr(other), self.expr))

    def __mod__(self, other: Extent) -> Extent:
        return extent_of(remainder(self.expr, extent_expr(other)))

    def __rmod__(self, other: int) -> Extent:
        return extent_of(remainder(as_expr(other), self.expr))

    __radd__ = __add__
    __rmul__ = __mul__

    # ---- order

    def __lt__(self, other: Extent) -> bool:
        return _decide(self, "<", other, other - self - 1, self - other)

    def __le__(self, other: Extent) -> bool:
        return _decide(self, "<=", other, other - self, self - other - 1)

    def __gt__(self, other: Extent) -> bool:
        return _decide(self, ">", other, self - other - 1, other - self)

    def __ge__(self, other: Extent) -> bool:
        return _decide(self, ">=", other, self - other, other - self - 1)

    # ---- what a size is not

    def _not_a_number(self, *_: object) -> NoReturn:
        raise UndecidedSize(f"the size {self} is known only at run time")

    __bool__ = __int__ = __index__ = __float__ = __round__ = __truediv__ = __rtruediv__ = (
        _not_a_number
    )


Extent: TypeAlias = int | Size
"""How many positions an axis has."""


def extent_of(expr: AffineExpr) -> Extent:
    """The extent that an expression over symbols says."""
    canonical = simplify(expr, ())
    return canonical.value if isinstance(canonical, AffineConstantExpr) else Size(canonical)


def extent_expr(extent: Extent) -> AffineExpr:
    """An extent as an index expression."""
    if isinstance(extent, Size):
        return extent.expr
    if not isinstance(extent, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a size is not reckoned with {extent!r}")
    return AffineExpr.constant(extent)


def static_extent(extent: Extent) -> int:
    """An extent that must be a number; raises UndecidedSize if it is a size."""
    if isinstance(extent, Size):
        raise UndecidedSize(f"the extent {extent} is known only at run time, not supported here")
    return extent


def evaluate(extent: Extent, symbols: Sequence[int]) -> int:
    """The extent where symbol `i` is `symbols[i]`."""
    return extent.evaluate(symbols) if isinstance(extent, Size) else extent


def _decide(left: Size, sign: str, right: Extent, holds: Extent, fails: Extent) -> bool:
    """True if `holds` is never negative, False if `fails` is not; raises UndecidedSize otherwise."""
    if _never_negative(holds):
        return True
    if _never_negative(fails):
        return False
    raise UndecidedSize(f"whether {left} {sign} {right} is known only at run time")


def _never_negative(extent: Extent) -> bool:
    expr, allowed = extent_expr(extent), allowed_now()
    if proven_nonnegative(expand(expr), ()):
        return True
    if not 0 < count_symbols([expr]) <= len(allowed):
        return False
    ranges = [(size.least, size.largest) for size in allowed]
    dims = [AffineExpr.dimension(i) for i in range(len(ranges))]
    if bounds(replace_symbols(expr, dims), ranges)[0] >= 0:
        return True
    # s is at least m, so s - m + 1 is at least 1
    raised = [AffineExpr.symbol(i) + (low - 1) for i, (low, _) in enumerate(ranges)]
    return proven_nonnegative(expand(simplify(replace_symbols(expr, raised), ())), ())


def ceil_div(dividend: Extent, divisor: int) -> Extent:
    """The quotient rounded up: how many parts of a size cover an extent."""
    return (dividend + (divisor - 1)) // divisor


def is_at_most(left: Extent, right: Extent) -> bool:
    """Whether `left <= right` is proven; what is not may be true or not."""
    try:
        return left <= right
    except UndecidedSize:
        return False


def hinted(extent: Extent) -> int:
    """The extent where each symbol is its hint: what costs are reckoned with."""
    if not isinstance(extent, Size):
        return extent
    hints = [size.hint.data for size in allowed_now()]
    hints += [DEFAULT_HINT] * (count_symbols([extent.expr]) - len(hints))
    return extent.evaluate(hints)


def largest(extent: Extent) -> int:
    """A number that the extent is at most, for all sizes that are allowed."""
    if not isinstance(extent, Size):
        return extent
    count, allowed = count_symbols([extent.expr]), allowed_now()
    ranges = [(size.least, size.largest) for size in allowed[:count]]
    ranges += [(1, MAX_SIZE)] * (count - len(ranges))
    dims = [AffineExpr.dimension(i) for i in range(count)]
    return int(bounds(replace_symbols(extent.expr, dims), ranges)[1])


# --------------------------------------------------------------------------- attributes


def parse_extent(parser: AttrParser) -> Extent:
    """Parse a number or an expression over symbols."""
    return extent_of(parse_index_expr(parser, lambda: None))


def print_extent(printer: BasePrinter, extent: Extent) -> None:
    """Print what `parse_extent` parses."""
    print_index_expr(printer, extent_expr(extent), _no_dims)


def _no_dims(position: int) -> NoReturn:
    raise ValueError(f"a size has no dims, got d{position}")


@irdl_attr_definition
class ExtentAttr(Data[Extent]):
    """One extent: `#sym.extent<32>`, `#sym.extent<s0 * 4>`."""

    name = "sym.extent"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Extent:
        with parser.in_angle_brackets():
            return parse_extent(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_extent(printer, self.data)


@irdl_attr_definition
class ExtentsAttr(Data[tuple[Size, ...]]):
    """The dynamic extents of a type, one per `?`: `#sym.extents<s0, s0 * 4>`."""

    name = "sym.extents"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Size, ...]:
        def parse_size() -> Size:
            pos = parser.pos
            extent = parse_extent(parser)
            if not isinstance(extent, Size):
                parser.raise_error(f"the extent {extent} belongs into the shape", pos, parser.pos)
            return extent

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_size))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda size: print_extent(printer, size))


# --------------------------------------------------------------------------- types


def shape_of(type: TensorType | MemRefType) -> tuple[Extent, ...]:
    """The extents of a type; raises VerifyException if a `?` does not say which size it is."""
    shape = type.get_shape()
    encoding = type.encoding if isinstance(type, TensorType) else type.memory_space
    dynamic = shape.count(DYNAMIC_INDEX)
    if not dynamic and not isinstance(encoding, ExtentsAttr):
        return shape
    sizes = encoding.data if isinstance(encoding, ExtentsAttr) else ()
    if len(sizes) != dynamic:
        raise VerifyException(
            f"{type} has {dynamic} dynamic extents, #sym.extents names {len(sizes)}"
        )
    named = iter(sizes)
    return tuple(next(named) if n == DYNAMIC_INDEX else n for n in shape)


def static_shape(type: TensorType | MemRefType) -> tuple[int, ...]:
    """The extents of a type that has no dynamic ones; raises UndecidedSize if it has."""
    shape = type.get_shape()
    if DYNAMIC_INDEX in shape:
        raise UndecidedSize(f"{type} has dynamic extents, which are not supported here")
    return shape


def tensor_of(element: Attribute, shape: Sequence[Extent]) -> TensorType:
    """The tensor type of `shape`."""
    if all(type(n) is int for n in shape):
        return _static_tensor_of(element, tuple(shape))
    return TensorType(element, *_dimensions(shape))


@lru_cache(4096)
def _static_tensor_of(element: Attribute, shape: tuple[int, ...]) -> TensorType:
    """The same without sizes, which recurs: an attribute takes longer to make than to look up."""
    return TensorType(element, *_dimensions(shape))


def memref_of(element: Attribute, shape: Sequence[Extent]) -> MemRefType:
    """The type of a buffer that holds a tensor of `shape`."""
    extents, sizes = _dimensions(shape)
    return MemRefType(element, extents, memory_space=sizes)


def _dimensions(shape: Sequence[Extent]) -> tuple[list[int], Attribute]:
    """The numbers of a type, `?` for each size, and the attribute that names the sizes."""
    sizes = tuple(n for n in shape if isinstance(n, Size))
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise VerifyException(f"an extent is negative: {list(shape)}")
    extents = [DYNAMIC_INDEX if isinstance(n, Size) else n for n in shape]
    return extents, ExtentsAttr(sizes) if sizes else NoneAttr()


Sym = Dialect("sym", [], [ExtentAttr, ExtentsAttr, SizeAttr])
