"""Extents that are multiples of sizes: what an even extent is, and which size it says.

x: f32[2 * half - 1]        # 7 positions: half is 4
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from xdsl.dialects.builtin import IntAttr

from ..dialects.sizes import Extent, SizeAttr


@dataclass(frozen=True)
class Multiple:
    """What an extent is, by a size: `scale * size + offset`."""

    scale: int = 1
    offset: int = 0

    def extent(self, size: Extent) -> Extent:
        """The extent."""
        return size * self.scale + self.offset

    def size(self, extent: int) -> int:
        """The size where the extent is this, or the next one above that there is."""
        return -((self.offset - extent) // self.scale)

    def label(self, extent: str) -> str:
        """What the size is called, from what the extent is."""
        if self.offset:
            extent = f"({extent} {'+' if self.offset < 0 else '-'} {abs(self.offset)})"
        return extent if self.scale == 1 else f"{extent} / {self.scale}"

    def attribute(self, extent: SizeAttr) -> SizeAttr:
        """What the IR says of the size, from what it would say of the extent."""
        most = None
        if isinstance(extent.maximum, IntAttr):
            most = (extent.largest - self.offset) // self.scale
        least, hint = self.size(extent.minimum.data), self.size(extent.hint.data)
        return SizeAttr(self.label(extent.label.data), least, most, hint)


def multiple_of(expr: Any) -> tuple[sympy.Symbol, Multiple] | None:
    """The symbol that an extent is a multiple of, if there is one: then the extent says the symbol."""
    offset, rest = sympy.expand(expr).as_coeff_Add()
    scale, symbol = rest.as_coeff_Mul()
    if not (symbol.is_Symbol and scale.is_Integer and scale > 0 and offset.is_Integer):
        return None
    return symbol, Multiple(int(scale), int(offset))
