"""What runs once per step of a leading axis: `tensor_ir.scan` on values, `kernel.loop` on memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.kernel import LoopOp
from ..dialects.sizes import static_extent
from ..dialects.tensor_ir_scan import ScanOp
from .arena import Arena
from .numpy_types import Array
from .product import Value, as_array
from .views import MAX_ELEMENTS

Step = Callable[[Sequence[Value]], Sequence[Value]]
"""Runs the function of a scan."""


def scan(op: ScanOp, operands: Sequence[Value], step: Step) -> list[Array]:
    """The results of a scan."""
    arrays = [as_array(value, MAX_ELEMENTS) for value in operands]
    carried = arrays[: len(op.carried)]
    slices = arrays[len(op.carried) : len(op.carried) + len(op.slices)]
    shared = arrays[len(op.carried) + len(op.slices) :]
    trips = static_extent(op.trips)
    given: list[list[Array]] = []
    for t in _steps(trips, op.reversed is not None):
        results = step([*carried, *(each[t] for each in slices), *shared])
        given.append([np.array(as_array(value, MAX_ELEMENTS)) for value in results])
        carried = given[-1][: len(carried)]
    if op.reversed is not None:
        given.reverse()
    return [np.stack(each) for each in zip(*given, strict=True)]


def turns(op: LoopOp, values: dict[SSAValue, Value], arena: Arena) -> Iterator[None]:
    """Give the arguments of a loop's body their slices in `values`, once for each turn."""
    arrays = {value: as_array(values[value], MAX_ELEMENTS) for value in op.operands}
    before: int | None = None
    carried = len(op.carried)
    for t in _steps(static_extent(op.trips), op.reversed is not None):
        arena.begin_turn(op, first=before is None)
        for argument in op.body.block.args:
            array, place = arrays[arena.slices[argument]], before if argument.index < carried else t
            values[argument] = array if place is None else array[place]
        yield
        before = t


def _steps(trips: int, reversed_: bool) -> range:
    return range(trips - 1, -1, -1) if reversed_ else range(trips)
