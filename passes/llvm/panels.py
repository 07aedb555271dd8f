"""Where the elements of a packed operand lie in panels: so many rows at one position, then the next one.

    %panel[%position * 48 + %row]                                       // one position after the other

Two positions that are multiplied at once (`pair_tiles.py`) lie together: as pairs, or as two halves, 16
elements at the one and 16 at the other, which is what loops along rows write as vectors.

    %panel[%position floordiv 2 * 96 + %row * 2 + %position mod 2]                                  // pairs
    %panel[%position floordiv 2 * 96 + %row floordiv 16 * 32 + %position mod 2 * 16 + %row mod 16]  // halves
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

PAIR = 2
"""Positions of a pair."""


@dataclass(frozen=True)
class Panels:
    """Panels of `height` rows of `length` positions; `run` neighbours of a row's position lie at once."""

    height: int
    length: int
    run: int | None = None
    """Of two positions that lie together; None if each position lies apart."""

    def place(self, panel: AffineExpr, position: AffineExpr, row: AffineExpr) -> AffineExpr:
        """Where an element of a row of a panel is."""
        first = panel * (self.height * self.length)
        if self.run is None:
            return first + position * self.height + row
        first = first + position // PAIR * (self.height * PAIR)
        if self.run == 1:
            return first + row * PAIR + position % PAIR
        inside = row // self.run * (self.run * PAIR) + row % self.run
        return first + inside + position % PAIR * self.run

    def strip(
        self, panel: AffineExpr, position: AffineExpr, strip: AffineExpr, lanes: int
    ) -> AffineExpr:
        """Where the first of so many rows is, which lie at once at a position."""
        if self.run is None:
            return self.place(panel, position, strip * lanes)
        first = panel * (self.height * self.length) + position // PAIR * (self.height * PAIR)
        return first + strip * (lanes * PAIR) + position % PAIR * self.run
