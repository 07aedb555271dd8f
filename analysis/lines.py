"""Lines of an image that one counter goes along, one after the other.

    loop.load %x[%c, %n floordiv 7 + %r, %n mod 7]        // %n runs to 56 inside a block

A block reads 8 lines of 7 elements each: a box, as if two counters of 8 and of 7 counted them. So it is where
a block has whole lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..dialects.loop import LoadOp
from ..index.affine import replace_dims
from .index import Range, simplify


@dataclass(frozen=True)
class Counted:
    """Index expressions in which a counter that goes along lines is two: of lines, and within a line."""

    exprs: list[AffineExpr]
    ranges: list[Range]
    sizes: dict[int, int]
    """The dims that count inside of a block, and how far."""
    dims: dict[int, AffineExpr]
    """What each of these is, over the dims there were."""


def line_length(exprs: Sequence[AffineExpr], dim: int) -> int | None:
    """The length of the lines that a dim goes along; None if it goes along none, or of several lengths."""
    lengths = {length for expr in exprs for length in _divisions_of(expr, dim)}
    return lengths.pop() if len(lengths) == 1 else None


def lengths_along(load: LoadOp, counter: SSAValue) -> list[int]:
    """The lengths of the lines, and of the rows of lines, that a counter goes along in what is loaded."""
    if counter not in load.indices:
        return []
    dim = list(load.indices).index(counter)
    lengths = {n for expr in load.map.data.results for n in _divisions_of(expr, dim)}
    return sorted(lengths)


def length_along(load: LoadOp, counter: SSAValue) -> int | None:
    """The length of the lines that a counter goes along in what is loaded."""
    if counter not in load.indices:
        return None
    return line_length(load.map.data.results, list(load.indices).index(counter))


def in_lines(
    exprs: Sequence[AffineExpr], ranges: Sequence[Range], sizes: Mapping[int, int]
) -> Counted:
    """Some expressions, with two dims for each one that goes along whole lines inside of a block.

    `sizes` are the dims that count inside of a block, and how far.
    """
    dims: list[AffineExpr] = [AffineExpr.dimension(i) for i in range(len(ranges))]
    wide, found, back = list(ranges), dict[int, int](), dict[int, AffineExpr]()
    for dim, size in sizes.items():
        old, length = dims[dim], line_length(exprs, dim)
        if length is None or size % length:
            found[dim], back[dim] = size, old
            continue
        line, place = len(wide), len(wide) + 1
        dims[dim] = AffineExpr.dimension(line) * length + AffineExpr.dimension(place)
        for new, extent, expr in (
            (line, size // length, old // length),
            (place, length, old % length),
        ):
            wide.append((0, extent - 1))
            found[new], back[new] = extent, expr
    return Counted([simplify(replace_dims(e, dims), wide) for e in exprs], wide, found, back)


def _divisions_of(expr: AffineExpr, dim: int) -> list[int]:
    """What a dim that stands alone is divided by, in quotients and remainders."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return []
    if expr.kind in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod):
        match expr.lhs, expr.rhs:
            case AffineDimExpr(position=position), AffineConstantExpr(value=value) if (
                position == dim
            ):
                return [value]
            case _:
                pass
    return _divisions_of(expr.lhs, dim) + _divisions_of(expr.rhs, dim)
