"""A square of 16 by 16 elements of up to 4 bytes, transposed in vector registers: as bits, whatever they are.

Sixteen rows are loaded, each a vector, and go through four stages of sixteen shuffles: single elements, then
pairs, change places within quarters of a vector, then quarters do. The columns are stored to an array on the
stack, which the loops that follow read along its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects.loop_transpose import SQUARE
from ...dialects.scalars import storage_bytes
from .accesses import POINTER, constant
from .vectors import shuffled

QUARTER = 4
"""Elements that shuffles move within; so many quarters make a vector, too."""

VECTOR_BYTES = 64


def transpose_squares(
    builder: Builder,
    entry: Block,
    first: SSAValue,
    pitch: SSAValue,
    element: Attribute,
    shape: tuple[int, int],
) -> SSAValue:
    """Insert the transposition of the squares from `first` on, whose rows are `pitch` elements apart.

    Gives the address of the array of `shape` that holds the result, made where the function begins. Squares
    side by side in the source follow each other, as neighbouring lines come from memory together.
    """
    size = storage_bytes(element)
    element = IntegerType(8 * size)
    start = Builder(InsertPoint.at_start(entry))
    count = constant(start, shape[0] * shape[1])
    array = start.insert(llvm.AllocaOp(count, element, VECTOR_BYTES)).res
    # llvmlite gives it a type that only elements are stored to.
    array = start.insert(llvm.BitcastOp(array, POINTER)).result
    vector = VectorType(element, [SQUARE])
    for below in range(0, shape[1], SQUARE):
        for beside in range(0, shape[0], SQUARE):
            rows: list[SSAValue] = []
            for row in range(below, below + SQUARE):
                scaled = builder.insert(llvm.MulOp(pitch, constant(builder, row))).res
                place = builder.insert(llvm.AddOp(scaled, constant(builder, beside))).res
                load = llvm.LoadOp(_element(builder, first, place, element), vector)
                load.properties["alignment"] = IntegerAttr(size, i64)
                rows.append(builder.insert(load).dereferenced_value)
            for column, value in enumerate(_transposed(builder, rows)):
                offset = constant(builder, (beside + column) * shape[1] + below)
                store = llvm.StoreOp(value, _element(builder, array, offset, element))
                store.properties["alignment"] = IntegerAttr(SQUARE * size, i64)
                builder.insert(store)
    return array


def _element(builder: Builder, base: SSAValue, offset: SSAValue, element: Attribute) -> SSAValue:
    access = llvm.GEPOp(base, [llvm.GEP_USE_SSA_VAL], element, [offset], inbounds=True)
    return builder.insert(access).result


def _transposed(builder: Builder, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The columns of a square of vectors."""
    lanes = range(QUARTER)
    ones = (_within(0, 4, 1, 5), _within(2, 6, 3, 7))
    pairs = (_within(0, 1, 4, 5), _within(2, 3, 6, 7))
    quarters: list[list[SSAValue]] = []
    for group in range(0, SQUARE, QUARTER):
        a, b, c, d = rows[group : group + QUARTER]
        ab, cd = _both(builder, a, b, ones), _both(builder, c, d, ones)
        # Of four rows, vector n has their elements n, n + 4, n + 8 and n + 12, a quarter each.
        quarters.append(
            [*_both(builder, ab[0], cd[0], pairs), *_both(builder, ab[1], cd[1], pairs)]
        )
    even, odd = _quarters(0, 2), _quarters(1, 3)
    columns: dict[int, SSAValue] = {}
    for n in lanes:
        a, b, c, d = (group[n] for group in quarters)
        ab, cd = _both(builder, a, b, (even, odd)), _both(builder, c, d, (even, odd))
        columns[n], columns[n + 8] = _both(builder, ab[0], cd[0], (even, odd))
        columns[n + 4], columns[n + 12] = _both(builder, ab[1], cd[1], (even, odd))
    return [columns[n] for n in range(SQUARE)]


def _within(*places: int) -> list[int]:
    """A shuffle that does the same to each quarter: 0 to 3 are of the first vector, 4 to 7 of the second."""
    return [
        quarter + place if place < QUARTER else SQUARE + quarter + place - QUARTER
        for quarter in range(0, SQUARE, QUARTER)
        for place in places
    ]


def _quarters(one: int, other: int) -> list[int]:
    """A shuffle that takes two quarters of the first vector, then the same two of the second."""
    starts = [one * QUARTER, other * QUARTER]
    return [
        vector + start + n for vector in (0, SQUARE) for start in starts for n in range(QUARTER)
    ]


def _both(
    builder: Builder, a: SSAValue, b: SSAValue, masks: Sequence[Sequence[int]]
) -> list[SSAValue]:
    """Two shuffles of the same vectors."""
    return [shuffled(builder, a, b, mask) for mask in masks]
