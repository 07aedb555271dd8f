"""How threads of a GPU may share rows, and which shapes are near one another.

A search starts from the model's choice (`passes/tile/row_shape.py`) and goes from neighbour to neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dialects.kernel import WARP
from ..dialects.kernel_vector import WIDTHS
from ..dialects.schedule import Kept
from ..dialects.tile import MAX_THREADS
from .gpu_choices import RowShape


@dataclass(frozen=True)
class RowLimits:
    """What a kernel lets its shape be."""

    length: int
    """Elements of the longest sweep."""
    sweeps: int
    most_rows: int
    """Rows of a block at most, a power of two."""
    widest: int
    """Neighbours that a thread can take at once."""


def misfit(limits: RowLimits, shape: RowShape) -> str | None:
    """Why the rows of a kernel cannot be shared so, or None."""
    for name, value in (("lanes", shape.lanes), ("rows", shape.rows)):
        if value < 1 or value & (value - 1):
            return f"{name} = {value} is no power of two"
    if shape.lanes < 2:
        return "one thread shares no row"
    if shape.vector not in (1, *WIDTHS) or shape.vector > limits.widest:
        return f"vector = {shape.vector}, and a thread can take {limits.widest} neighbours at once"
    if shape.lanes > 2 and (shape.lanes // 2) * shape.vector >= limits.length:
        return f"half of {shape.lanes} threads are enough for {limits.length} elements"
    if shape.rows > limits.most_rows:
        return f"a block has at most {limits.most_rows} rows"
    if shape.threads > MAX_THREADS:
        return f"{shape.threads} threads; a block has at most {MAX_THREADS}"
    if shape.threads < WARP and shape.rows < limits.most_rows:
        return f"{shape.threads} threads are no whole warp"
    if shape.keep not in list(Kept):
        return f"keep = {shape.keep} is none of {', '.join(Kept)}"
    if shape.keep != Kept.REGISTERS and limits.sweeps < 2:
        return "one sweep reads nothing twice"
    if shape.keep == Kept.SHARED and shape.rows > 1:
        return "the scratchpad keeps the row of a block that has one"
    return None


def neighbours(limits: RowLimits, shape: RowShape) -> list[RowShape]:
    """The legal shapes one step away: more or fewer threads, rows and neighbours, and kept elsewhere."""
    found = [replace(shape, keep=each.value) for each in Kept]
    for name, value in (("lanes", shape.lanes), ("rows", shape.rows), ("vector", shape.vector)):
        found += [replace(shape, **{name: value * 2}), replace(shape, **{name: value // 2})]
    found.append(replace(shape, lanes=shape.lanes * 2, rows=shape.rows // 2))
    found.append(replace(shape, lanes=shape.lanes // 2, rows=shape.rows * 2))
    different = dict.fromkeys(each for each in found if each != shape)
    return [each for each in different if misfit(limits, each) is None]
