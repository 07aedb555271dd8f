"""`expand-sort`: each element counts how many come before it, and so finds its place.

    %v, %i = tensor_ir.sort %x along 0 : tensor<8xf32> -> (tensor<3xf32>, tensor<3xi64>)
becomes
    %before = %x[j] < %x[i], or equal and j < i             : tensor<8x8xi1>, at [i, j]
    %rank   = reduce add(%before) over [1]                  : tensor<8xi32>
    %i      = reduce max(select(%rank[i] = r, i, 0)) over i : tensor<3xi64>, at [r]
    %v      = tensor_ir.gather %x[%i] along 0

    %i = tensor_ir.nth_element %n of %x along 0 : (tensor<3xi64>, tensor<8xf32>) -> tensor<3xi64>
becomes the same for the ranks in %n, without the gather.

No two elements have one rank, so every place is taken by one element, and the result does not depend on the
order in which threads run. It costs a comparison of each element with each other along the axis. For a CPU,
which can put a row in order in a kernel of its own, a sort that would take longer so stays
(`lower-tile-to-scf`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of
from ...analysis.orders import nth_in_order_seconds, runs_in_order, sort_in_order_seconds, sort_work
from ...dialects.inside import ops_of
from ...dialects.scalars import Combiner, Function, is_float
from ...dialects.sizes import Extent
from ...dialects.tensor_ir_indexed import NthElementOp, SortOp
from ..decisions import record
from ..torch.lowering import Lowering, dims, element_of, shape_of


class _Expansion:
    """Builds what replaces one sort or one choice of places."""

    def __init__(self, op: SortOp | NthElementOp):
        self.build = Lowering(op)
        self.op = op
        self.input = op.input
        self.descending = isinstance(op, SortOp) and op.descending is not None
        self.axis = op.axis.value.data
        self.shape = shape_of(op.input)
        self.extent = self.shape[self.axis]
        self.last = len(self.shape)

    def results(self) -> list[SSAValue]:
        """The values in order, of a sort, and the positions."""
        e, op = self.build, self.op
        if isinstance(op, NthElementOp):
            inside = e.with_number(Function.MAX, op.places, 0)
            inside = e.with_number(Function.MIN, inside, self.extent + -1)
            return [self._at(e.cast(inside, i32))]
        places = e.iota(self.axis, i32, shape_of(op.positions))
        position = self._at(places)
        return [e.gather_along(self.input, position, self.axis), position]

    def _along_last(self, value: SSAValue, extent: Extent) -> SSAValue:
        """`value[p, j, q]` at `[p, i, q, j]` for `extent` values of `i`."""
        shape = (*self.shape[: self.axis], extent, *self.shape[self.axis + 1 :], self.extent)
        index = dims(self.last)
        index[self.axis] = AffineExpr.dimension(self.last)
        return self.build.index_map([value], [index], shape, suffix="other")

    def _rank(self) -> SSAValue:
        """How many elements come before each."""
        e, square = self.build, (*self.shape, self.extent)
        here = e.index_map([self.input], [dims(self.last)], square, suffix="here")
        other = self._along_last(self.input, self.extent)
        before = e.apply(Function.GT if self.descending else Function.LT, other, here)
        same = e.apply(Function.EQ, other, here)
        if is_float(element_of(self.input)):
            here_nan, other_nan = (e.apply(Function.NE, v, v) for v in (here, other))
            first, second = (other_nan, here_nan) if self.descending else (here_nan, other_nan)
            extreme = e.apply(Function.AND, first, e.apply(Function.NOT, second))
            before = e.apply(Function.OR, before, extreme)
            same = e.apply(Function.OR, same, e.apply(Function.AND, here_nan, other_nan))
        earlier = e.apply(
            Function.LT, e.iota(self.last, i32, square), e.iota(self.axis, i32, square)
        )
        before = e.apply(Function.OR, before, e.apply(Function.AND, same, earlier))
        count = e.reduce(Combiner.ADD, e.cast(before, i32), [self.last])
        return e.squeeze(count, [self.last])

    def _at(self, places: SSAValue) -> SSAValue:
        """Which position has each of some ranks."""
        e = self.build
        ranks = self._along_last(self._rank(), shape_of(places)[self.axis])
        shape = shape_of(ranks)
        wanted = e.index_map([places], [dims(self.last)], shape, suffix="wanted")
        found = e.apply(Function.EQ, ranks, wanted)
        position = e.select(found, e.iota(self.last, i32, shape), e.fill_like(ranks, 0))
        place = e.squeeze(e.reduce(Combiner.ADD, position, [self.last]), [self.last])
        return e.cast(place, i64)


def _stays(op: SortOp | NthElementOp) -> bool:
    """Whether rows are in order sooner than everything is compared with everything, or may be."""
    shape, axis = shape_of(op.input), op.axis.value.data
    if not isinstance(shape[axis], int):
        return True
    count = shape_of(op.positions)[axis]
    in_order = nth_in_order_seconds if isinstance(op, NthElementOp) else sort_in_order_seconds
    return sort_work(shape, axis).seconds > in_order(shape, axis, count)


@dataclass(frozen=True)
class ExpandSortPass(ModulePass):
    """Replace each `tensor_ir.sort` by counting and a gather, each `tensor_ir.nth_element` by counting."""

    name = "expand-sort"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every sort that is to be."""
        in_order = runs_in_order(self.target)
        sorts = ops_of(op, SortOp, NthElementOp)
        if not sorts:
            record(self.name, "main", False, "there is no sort")
        with hints_of(op):
            for sort in sorts:
                if in_order and _stays(sort):
                    name = sort.results[0].name_hint or "sort"
                    record(self.name, name, False, "its rows are faster in order", sort)
                else:
                    self._expand(sort)

    def _expand(self, sort: SortOp | NthElementOp) -> None:
        expansion = _Expansion(sort)
        for old, new in zip(sort.results, expansion.results(), strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        elements = prod(expansion.shape)
        reason = f"{elements} elements compare themselves with {expansion.extent} each"
        record(self.name, sort.results[0].name_hint or "sort", True, reason, sort)
        sort.detach()
        sort.erase()
