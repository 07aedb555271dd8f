"""Extents that are multiples of sizes: what an even extent is, and which size it says.

tensor<?xf32, #sym.extents<s0 * 2 + -1>>        # 7 positions: s0 is 4
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
    AffineSymExpr,
)

from .allowed_sizes import MAX_SIZE, SizeAttr
from .sizes import Extent, Size


@dataclass(frozen=True)
class Range:
    """The values of an extent, or of a number: its name, the smallest, the largest, and an example."""

    label: str
    minimum: int
    maximum: int | None
    hint: int

    @property
    def is_single(self) -> bool:
        """Whether there is one value."""
        return self.minimum == self.maximum

    @property
    def largest(self) -> int:
        """The largest value, where none is given that of any size."""
        return MAX_SIZE if self.maximum is None else self.maximum


@dataclass(frozen=True)
class Multiple:
    """What an extent is, by a size: `scale * size + offset`; the scale is positive."""

    scale: int = 1
    offset: int = 0

    def extent(self, size: Extent) -> Extent:
        """The extent."""
        return size * self.scale + self.offset

    def size(self, extent: int) -> int | None:
        """The size where the extent is this; None if it never is."""
        size, rest = divmod(extent - self.offset, self.scale)
        return None if rest else size

    def least_size(self, extent: int) -> int:
        """The smallest size where the extent is at least this."""
        return -((self.offset - extent) // self.scale)

    def label(self, extent: str) -> str:
        """What the size is called, from what the extent is."""
        if self.offset:
            extent = f"({extent} {'+' if self.offset < 0 else '-'} {abs(self.offset)})"
        return extent if self.scale == 1 else f"{extent} / {self.scale}"

    def is_in(self, extent: Range) -> bool:
        """Whether a range of extents has any of these."""
        most = self._most(extent)
        return most is None or self.least_size(extent.minimum) <= most

    def attribute(self, extent: Range) -> SizeAttr:
        """What the IR says of the size, from the range of the extent."""
        least, hint = self.least_size(extent.minimum), self.least_size(extent.hint)
        return SizeAttr(self.label(extent.label), least, self._most(extent), max(1, hint))

    def _most(self, extent: Range) -> int | None:
        return None if extent.maximum is None else (extent.maximum - self.offset) // self.scale


def multiple_of(extent: Extent) -> tuple[int, Multiple] | None:
    """The symbol that an extent is a multiple of, if there is one: then the extent says the symbol."""
    return _multiple(extent.expr, 0) if isinstance(extent, Size) else None


def _multiple(expr: AffineExpr, offset: int) -> tuple[int, Multiple] | None:
    """The same for the sum of an expression in canonical form and a number."""
    match expr:
        case AffineSymExpr(position=symbol):
            return symbol, Multiple(1, offset)
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul,
            lhs=AffineSymExpr(position=symbol),
            rhs=AffineConstantExpr(value=scale),
        ) if scale > 0:
            return symbol, Multiple(scale, offset)
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Add, lhs=rest, rhs=AffineConstantExpr(value=number)
        ):
            return _multiple(rest, offset + number)
        case _:
            return None
