"""Finds contractions with the softmax of scores that another contraction computes.

The rows of `sum over j of p[i, j] * v[j, d]` are read as a term over inputs, through the kernels that compute
them. If that is

    p = exp(x_j - m) / l     m = fold(max, x_j)     l = fold(add, exp(x_j - m))

over the same j, the result is the mean of v_j with the weights exp(x_j). Where m is minus infinity, all of
p is NaN, or 0 if it is `select(m == -inf, 0, p)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.inside import ops_of
from ..dialects.loop import ForOp, KernelOp, StoreOp
from ..dialects.scalars import Combiner
from ..dialects.sizes import Extent, static_extent
from ..dialects.tile import LaunchOp
from .cost import trips
from .products import ONE_ROW, Product, find_product, find_row_product
from .terms import BOUND, Opaque, Term, TermReader, stored_term


@dataclass(frozen=True)
class Store:
    """What the contraction's kernel stores, where; in terms of `Softmax.mean`."""

    value: Term
    output: SSAValue
    exprs: tuple[AffineExpr, ...]


@dataclass(frozen=True)
class Softmax:
    """A contraction whose rows are weights exp(exponent) / their sum.

    Terms are over the axes of the launch, and over `sweep`, the dim of the contraction's counter.
    """

    kernel: KernelOp
    launch: LaunchOp
    product: Product
    extents: tuple[Extent, ...]
    """Of the launch's axes."""
    columns: Extent
    """Scores of a row."""
    exponent: Term
    score: Term
    """The fold in the exponent that is a contraction."""
    left: Term
    right: Term
    """Its factors: by rows, and by columns; over the fold's `bound`."""
    value: Term
    """What the mean is of."""
    mean: Term
    """Stands for the result of the contraction in `stores`."""
    guarded: bool
    """Whether a row of minus infinities has weights 0, not NaN."""
    stores: tuple[Store, ...]
    producers: tuple[KernelOp, ...]
    """The kernels that nothing else needs."""

    @property
    def sweep(self) -> int:
        """The dim of the contraction's counter."""
        return len(self.extents)

    @property
    def rows(self) -> Extent:
        """Rows of the result."""
        return 1 if self.product.m == ONE_ROW else self.extents[self.product.m]

    @property
    def width(self) -> int:
        """Columns of the result."""
        return static_extent(self.extents[self.product.n])

    @property
    def batch(self) -> int:
        """Points of all other axes, about."""
        apart = (self.product.m, self.product.n)
        return math.prod(trips(e) for i, e in enumerate(self.extents) if i not in apart)

    @property
    def depth(self) -> int:
        """Products of a score."""
        return _fold_extent(self.score)


def find_softmax(kernel: KernelOp, launch: LaunchOp) -> Softmax | str:
    """The contraction with softmax weights that a launch is, or why it is none."""
    product = find_product(launch)
    if isinstance(product, str):
        row = find_row_product(launch)
        if isinstance(row, str):
            return product
        product = row
    if len(product.results) != 1 or len(product.sweeps) != 1:
        return "it is more than one sum over one counter"
    extents = tuple(axis.extent.data for axis in launch.axes)
    if len(extents) >= BOUND or 0 in (*extents, product.extent):
        return "it has no points, or too many axes"
    if not isinstance(extents[product.n], int):
        return "the columns of its result are dynamic in number"
    finder = _Finder(kernel, launch, product, extents, product.extent)
    try:
        return finder.find()
    except Opaque as reason:
        return str(reason)


@dataclass
class _Finder:
    kernel: KernelOp
    launch: LaunchOp
    product: Product
    extents: tuple[Extent, ...]
    columns: Extent
    opened: dict[KernelOp, None] = field(default_factory=dict[KernelOp, None])

    def find(self) -> Softmax:
        """The softmax; raises Opaque if there is none."""
        axes = self.launch.body.block.args
        sweep = self.product.sweeps[0]
        dims = [AffineExpr.dimension(i) for i in range(len(axes) + 1)]
        counters: dict[SSAValue, AffineExpr] = dict(zip(axes, dims, strict=False))
        self.sweep = len(axes)
        reader = TermReader(self.kernel, {**counters, sweep.induction_var: dims[-1]})
        exponent, largest, total, guarded = self._weights(reader.term(self.product.rows[0]))
        value = reader.term(self.product.columns[0])
        exponent, score = self._score(exponent)
        left, right = self._sides(score)
        result = TermReader(self.kernel, counters)
        mean = Term("result", 2, (), exponent.type)
        result.known[sweep.res[0]] = mean
        known = {
            largest: Term("result", 0, (), exponent.type),
            total: Term("result", 1, (), exponent.type),
        }
        stores = tuple(self._store(op, result, known) for op in self._stores(sweep))
        producers = self._producers()
        return Softmax(
            self.kernel,
            self.launch,
            self.product,
            self.extents,
            self.columns,
            exponent,
            score,
            left,
            right,
            value,
            mean,
            guarded,
            stores,
            producers,
        )

    # ------------------------------------------------------------------ the weights

    def _open(self, term: Term) -> Term:
        """What is stored where a term loads it, through any number of kernels; else itself."""
        while term.name == "load" and isinstance(term.key, SSAValue):
            owner = term.key.owner
            if not isinstance(owner, KernelOp):
                break
            term = stored_term(term)
            self.opened[owner] = None
        return term

    def _weights(self, weights: Term) -> tuple[Term, Term, Term, bool]:
        """The exponent of weights, its maximum, the sum of what they are before they are divided, and whether
        they are 0 where the maximum is minus infinity."""
        guard = None
        weights = self._unrounded(self._open(weights))
        if weights.name == "arith.select":
            condition, zero, weights = weights.operands
            if not _is_number(zero, 0.0) or condition.name != "arith.cmpf":
                raise Opaque("its rows are no softmax")
            guard, low = condition.operands
            if not _is_number(low, -math.inf) or _predicate(condition) != _OEQ:
                raise Opaque("its rows are no softmax")
            weights = self._open(weights)
        if weights.name != "arith.divf":
            raise Opaque("its rows are no softmax")
        numerator, total = (self._open(each) for each in weights.operands)
        exponent, largest = self._shifted(numerator)
        self._check_fold(largest, Combiner.MAX, exponent)
        self._check_sum(total, exponent, largest)
        if guard is not None and self._open(guard) != largest:
            raise Opaque("its rows are no softmax")
        return exponent, largest, total, guard is not None

    def _unrounded(self, weights: Term) -> Term:
        """Weights that are stored as short floats, before they are: whoever multiplies rounds them again."""
        if weights.name == "arith.extf":
            stored = self._open(weights.operands[0])
            if stored.name == "arith.truncf":
                return self._open(stored.operands[0])
        return weights

    def _shifted(self, numerator: Term) -> tuple[Term, Term]:
        """x and m of exp(x - m)."""
        if numerator.name != "math.exp" or numerator.operands[0].name != "arith.subf":
            raise Opaque("its rows are no softmax")
        exponent, largest = numerator.operands[0].operands
        return exponent, self._open(largest)

    def _check_sum(self, total: Term, exponent: Term, largest: Term) -> None:
        """Raise unless a term sums exp(exponent - largest) over all of the sweep."""
        if total.bound is not None and total.key == (Combiner.ADD, self.columns):
            inner = total.operands[0]
            if inner.name == "math.exp" and inner.operands[0].name == "arith.subf":
                bound = AffineExpr.dimension(total.bound)
                if self._shifted(inner) == (exponent.at({self.sweep: bound}), largest):
                    return
        raise Opaque("its rows are not divided by their sum")

    def _check_fold(self, fold: Term, combiner: Combiner, body: Term) -> None:
        """Raise unless a term folds another one over all of the sweep."""
        if fold.name == "fold" and fold.bound is not None and fold.key == (combiner, self.columns):
            if fold.operands[0] == body.at({self.sweep: AffineExpr.dimension(fold.bound)}):
                return
        raise Opaque("its rows are not shifted by their maximum")

    # ------------------------------------------------------------------ the scores

    def _score(self, exponent: Term) -> tuple[Term, Term]:
        """The exponent with the contraction in it, and that."""
        if (found := _folds(exponent)) == []:
            loads = {
                t
                for t in exponent.walk()
                if t.name == "load" and t.depends_on(self.sweep) and self._depends_on_row(t)
            }
            opened = [(load, term) for load in loads if (term := self._contraction(load))]
            if len(opened) != 1:
                raise Opaque("its exponents are of no scores, or of several")
            (load, term) = opened[0]
            self._open(load)
            exponent = exponent.with_term(load, term)
            found = _folds(exponent)
        if len(set(found)) != 1:
            raise Opaque("its exponents are of no scores, or of several")
        return exponent, found[0]

    def _depends_on_row(self, term: Term) -> bool:
        """Whether a term may differ from row to row: where there is one row, all are of that."""
        return self.product.m == ONE_ROW or term.depends_on(self.product.m)

    def _contraction(self, load: Term) -> Term | None:
        """What a load reads, if that is computed from a fold."""
        try:
            term = stored_term(load)
        except Opaque:
            return None
        return term if _folds(term) else None

    def _sides(self, score: Term) -> tuple[Term, Term]:
        """The factors of a score that depend on its row and on its column."""
        body = score.operands[0]
        if score.key != (Combiner.ADD, _fold_extent(score)) or body.name != "arith.mulf":
            raise Opaque("its scores are no sums of products")
        m, n = self.product.m, self.product.n
        for left, right in (body.operands, body.operands[::-1]):
            by_row = self._depends_on_row(left) and not left.depends_on(self.sweep)
            by_column = right.depends_on(self.sweep) and (m == ONE_ROW or not right.depends_on(m))
            if by_row and by_column and not left.depends_on(n) and not right.depends_on(n):
                return left, right
        raise Opaque("a factor of its scores depends on rows and columns")

    # ------------------------------------------------------------------ what else the kernels do

    def _stores(self, sweep: ForOp) -> list[StoreOp]:
        ops = ops_of(self.launch, StoreOp)
        if any(op.parent is not self.launch.body.block for op in ops):
            raise Opaque("it stores under a condition")
        return ops

    def _store(self, op: StoreOp, reader: TermReader, known: dict[Term, Term]) -> Store:
        value = reader.term(op.value)
        for term in [t for t in value.walk() if t.name == "load"]:
            if isinstance(term.key, SSAValue) and term.key.owner in self.opened:
                opened = self._open(term)
                if opened not in known:
                    raise Opaque("it needs its weights for more than the sum")
                value = value.with_term(term, known[opened])
        return Store(value, op.memref, reader.exprs(op, op.indices))

    def _producers(self) -> tuple[KernelOp, ...]:
        """The kernels that were read through, if nothing else needs what they store; in order."""
        inside = {self.kernel, *self.opened}
        for kernel in self.opened:
            users = {use.operation for output in kernel.outputs for use in output.uses}
            if users - inside:
                raise Opaque(f"{kernel.sym_name.data} is needed elsewhere, too")
        block = self.kernel.parent
        assert block is not None
        return tuple(op for op in block.ops if isinstance(op, KernelOp) and op in self.opened)


_OEQ = 1
"""The number of `oeq` in `arith.cmpf`."""


def _predicate(term: Term) -> int | None:
    properties = {} if term.op is None else term.op.properties
    value = properties.get("predicate")
    return value.value.data if isinstance(value, IntegerAttr) else None


def _is_number(term: Term, number: float) -> bool:
    """Whether a term is a float constant: 0.0 is not -0.0."""
    value = None if term.op is None else term.op.properties.get("value")
    if term.name != "arith.constant" or not isinstance(value, FloatAttr):
        return False
    found: float = value.value.data
    return found == number and math.copysign(1, found) == math.copysign(1, number)


def _folds(term: Term) -> list[Term]:
    """The outermost folds in a term."""
    if term.name == "fold":
        return [term]
    return [each for operand in term.operands for each in _folds(operand)]


def _fold_extent(fold: Term) -> int:
    key = fold.key
    extent: object = key[1] if isinstance(key, tuple) else None
    if not isinstance(extent, int):
        raise Opaque("the products of a score are dynamic in number")
    return extent
