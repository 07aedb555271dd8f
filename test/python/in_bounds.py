"""Proves that loads and stores stay within their buffers: by the compiler's own ranges, else by z3.

An access is read with what is known where it stands: the ranges of counters and of checked indices, what
`loop.index` computes, and the conditions of the `scf.if`s around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from deplo.analysis.index import UNKNOWN, always_holds, operand_ranges, value_range
from deplo.dialects.loop import ForOp, IndexOp, LoadOp, StoreOp, TestOp
from deplo.dialects.sizes import Extent, extent_expr, shape_of
from deplo.dialects.tile import LaunchOp
from deplo.index.affine import product
from deplo.index.ranges import Bound


def accesses(module: ModuleOp) -> Iterator[LoadOp | StoreOp]:
    """Every access of a module that can run: not those in loops of no iterations."""
    for op in module.walk():
        if isinstance(op, LoadOp | StoreOp) and not _never_runs(op):
            yield op


def _never_runs(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp) and parent.never_runs:
            return True
        if isinstance(parent, LaunchOp) and any(axis.extent.data == 0 for axis in parent.axes):
            return True
        parent = parent.parent_op()
    return False


def unproven(op: LoadOp | StoreOp) -> str | None:
    """Why an access is not proven to be within bounds, or None if it is."""
    memref = op.memref.type
    assert isinstance(memref, MemRefType)
    ranges = operand_ranges(op.indices)
    open_: list[tuple[int, AffineExpr, Extent]] = []
    for axis, (expr, extent) in enumerate(zip(op.map.data.results, shape_of(memref), strict=True)):
        below = extent_expr(extent) + product(expr, -1) + -1
        if not (always_holds(expr, ranges) and always_holds(below, ranges)):
            open_.append((axis, expr, extent))
    if not open_:
        return None
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    facts = _Facts(solver)
    for condition, holds in _conditions(op):
        facts.assume(condition, holds)
    for axis, expr, extent in open_:
        index, end = facts.term(expr, op.indices), facts.term(extent_expr(extent), ())
        solver.push()
        solver.add(z3.Or(index < 0, index >= end))
        if solver.check() != z3.unsat:
            return f"{op} at axis {axis}: {expr} below {extent}"
        solver.pop()
    return None


def _conditions(op: Operation) -> Iterator[tuple[TestOp, bool]]:
    """The tests that decide whether `op` runs, with the outcome that it needs."""
    inner: Operation = op
    while (outer := inner.parent_op()) is not None:
        if isinstance(outer, scf.IfOp) and isinstance(outer.cond.owner, TestOp):
            yield outer.cond.owner, inner.parent_region() is outer.true_region
        inner = outer


class _Facts:
    """Index values as integers of z3, with what is known of each."""

    def __init__(self, solver: z3.Solver):
        self.solver = solver
        self.terms: dict[SSAValue, Any] = {}
        self.sizes: dict[int, Any] = {}

    def size(self, number: int) -> Any:
        """A dynamic size: at least 1."""
        if number not in self.sizes:
            self.sizes[number] = z3.Int(f"s{number}")
            self.solver.add(self.sizes[number] >= 1)
        return self.sizes[number]

    def end(self, bound: Bound) -> Any:
        """An end of a range."""
        return bound if isinstance(bound, int) else self.term(bound, ())

    def value(self, value: SSAValue) -> Any:
        if value not in self.terms:
            if isinstance(value.owner, IndexOp):
                self.terms[value] = self.term(
                    value.owner.map.data.results[0], value.owner.operands_
                )
            else:
                self.terms[value] = name = z3.Int(f"v{len(self.terms)}")
                low, high = value_range(value)
                assert (low, high) != UNKNOWN, f"nothing is known of {value}"
                self.solver.add(name >= self.end(low), name <= self.end(high))
        return self.terms[value]

    def term(self, expr: AffineExpr, operands: Any) -> Any:
        match expr:
            case AffineConstantExpr(value=value):
                return z3.IntVal(value)
            case AffineDimExpr(position=position):
                return self.value(operands[position])
            case AffineSymExpr(position=position):
                return self.size(position)
            case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
                left, right = self.term(lhs, operands), self.term(rhs, operands)
                match kind:  # z3's div and mod are Euclidean: floor for the positive divisors here
                    case AffineBinaryOpKind.Add:
                        return left + right
                    case AffineBinaryOpKind.Mul:
                        return left * right
                    case AffineBinaryOpKind.FloorDiv:
                        return left / right
                    case AffineBinaryOpKind.Mod:
                        return left % right
                    case _:
                        raise AssertionError(f"no such index: {expr}")
            case _:
                raise AssertionError(f"no such index: {expr}")

    def assume(self, test: TestOp, holds: bool) -> None:
        terms = [self.term(e, test.operands_) >= 0 for e in test.exprs]
        self.solver.add(z3.And(*terms) if holds else z3.Not(z3.And(*terms)))
