"""Operations of one block that are alike; a part of `roll-registers`.

Two operations are alike if they are of one kind, index the same memory but for constants, and what they read
and who reads them is alike. `%p0` and `%p1`, `%s0` and `%s1` are families of two:

    %p0 = arith.mulf %x, %w0 : f32
    %p1 = arith.mulf %x, %w1 : f32
    %s0 = arith.addf %a0, %p0 : f32
    %s1 = arith.addf %a1, %p1 : f32

They are found as the classes of states of an automaton are: all operations of a kind are one class first, and
a class whose members differ in the classes of what is next to them is divided, until none is. Who reads what
is loaded from memory does not divide: a tile that is loaded is one family, whatever is done with its parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.loop import LoadOp
from ...dialects.loop_access import in_registers
from ...index.affine import split_constant

Family = list[Operation]
"""Operations that are alike, in their order."""


def indices_of(op: Operation) -> list[tuple[tuple[AffineExpr, ...], tuple[int, ...]]]:
    """Each index of an operation: its expressions without their constants, and those."""
    found: list[tuple[tuple[AffineExpr, ...], tuple[int, ...]]] = []
    for index in getattr(op, "INDEXED", ()):
        if index.map in op.properties:
            map: Any = op.properties[index.map]
            parts = [split_constant(expr) for expr in map.data.results]
            found.append((tuple(e for e, _ in parts), tuple(c for _, c in parts)))
    return found


def families_of(ops: Sequence[Operation]) -> list[Family]:
    """The families of operations of a block that follow each other, those of at least two."""
    known = {*ops}
    colors = _numbered({op: _said(op) for op in ops})
    while True:
        finer = _numbered({op: _around(op, colors, known) for op in ops})
        if max(finer.values(), default=0) == max(colors.values(), default=0):
            break
        colors = finer
    families: dict[int, Family] = {}
    for op in ops:
        families.setdefault(colors[op], []).append(op)
    return [family for family in families.values() if len(family) > 1]


def _numbered(keys: Mapping[Operation, Hashable]) -> dict[Operation, int]:
    numbers: dict[Hashable, int] = {}
    return {op: numbers.setdefault(key, len(numbers)) for op, key in keys.items()}


def _said(op: Operation) -> Hashable:
    """What an operation says of itself, but for the constants of its indices."""
    maps = {index.map for index in getattr(op, "INDEXED", ())}
    properties = tuple((n, a) for n, a in op.properties.items() if n not in maps)
    places = tuple(exprs for exprs, _ in indices_of(op))
    return type(op), properties, tuple(op.attributes.items()), tuple(op.result_types), places


def _around(op: Operation, colors: Mapping[Operation, int], known: Iterable[Operation]) -> Hashable:
    """The class of an operation and of what is next to it."""
    read = tuple(source(value, colors) for value in op.operands)
    if isinstance(op, LoadOp) and not in_registers(op.memref):
        return colors[op], read
    readers = tuple(
        frozenset(
            (colors.get(use.operation, -1), use.index if use.operation in colors else -1)
            for use in result.uses
        )
        for result in op.results
    )
    return colors[op], read, readers


def source(value: SSAValue, colors: Mapping[Operation, int]) -> Hashable:
    """What a value is to those who ask whether they read alike: a number, a result of a class, or itself."""
    match value.owner:
        case arith.ConstantOp(value=number):
            return number
        case Operation() as op if op in colors:
            return colors[op], op.results.index(value)
        case _:
            return value
