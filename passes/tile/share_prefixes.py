"""`share-prefixes`: the places of a running fold share what they fold, instead of each folding alone.

    tile.launch (%j = 4096 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j mod 16 - %k >= 0]
        %v = scf.if %until -> (f32) { ... %x[%j floordiv 16 * 16 + %k] ... } else { ... 0.0 ... }
        loop.yield %v : f32
      }
      loop.store %s, %y[%j]
    }
becomes
    tile.launch (%j_part = 256 : thread) {
      %v_0 = loop.load %x[%j_part * 16]
      %s_0 = arith.addf 0.0, %v_0
      loop.store %s_0, %y[%j_part * 16]
      %v_1 = loop.load %x[%j_part * 16 + 1]
      %s_1 = arith.addf %s_0, %v_1
      loop.store %s_1, %y[%j_part * 16 + 1]
      %v_2 = ...            %s_2 = arith.addf %s_1, %v_2
      %v_3 = ...            %t = arith.addf %v_2, %v_3       %s_3 = arith.addf %s_1, %t
      ...
    }

So a part of a running sum costs a few additions for each place, not one for each place before it, and nothing
is loaded twice. A place of the right half of a part adds what the left half comes to to its sum in the right
half, and so on in each half (J. Sklansky, Conditional-sum addition logic, 1960): of 16 places none waits for
more than four additions, nor is rounded more often. What is the same in a part is computed once; places that
the last part does not have are under a condition. Where a call says how many places there are, the last part
has a loop over those that it has, each of which folds alone.

Declined are GPU targets, whose threads scan rows (`scan-rows`), reductions in which a term depends on the
place or is not the identity past it, and what would be too much code.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, TestOp
from ...dialects.scalars import Combiner
from ...dialects.sizes import Extent, extent_expr
from ...dialects.tile import LaunchOp
from ..lower_loops import combine, identity_constant
from ..replacing import replace
from .recipe import Recipe, Taken
from .rewrite_indices import rewrite_index
from .running_folds import misfit, runs, varying_ops
from .split_axes import split_in_parts
from .split_loops import fold_tests

MOST_OPERATIONS = 1000
"""Operations of all the places of a part."""


def _share(launch: LaunchOp, axis: int, part: int) -> str | None:
    """Make an axis one of parts, and copies of the body of their places; gives None, or why not."""
    extent = launch.axes.data[axis].extent.data
    split_in_parts(launch, axis, part)
    body = launch.body.block
    place = body.args[axis + 1]
    varying = varying_ops(body, place)
    for loop in body.ops:
        if not isinstance(loop, ForOp) or not loop.res or loop not in varying:
            continue
        if loop.extent.data != part:
            return "its reductions differ in length"
        if (reason := misfit(loop, place, varying)) is not None:
            return reason
    count = part * sum(len(ops_in(op)) for op in varying)
    if count > MOST_OPERATIONS:
        return f"its places would become {count} operations"
    places = _Places(launch, axis, varying)
    if isinstance(extent, int):
        places.emit(min(part, extent), extent % part, extent // part)
    else:
        places.emit_whole(part, extent)
    return None


class _Places:
    """Replaces the body of a launch by copies for the places of a part."""

    def __init__(self, launch: LaunchOp, axis: int, varying: set[Operation]):
        self.launch = launch
        self.axis = axis
        self.body = launch.body.block
        self.place = self.body.args[axis + 1]
        self.ops = [op for op in self.body.ops if op in varying]
        self.totals: dict[tuple[SSAValue, int], SSAValue] = {}
        """What the last left half of each size came to, by the fold and the logarithm of the size."""

    def emit(self, places: int, always: int, whole: int) -> None:
        """Copy the body for each place; those from `always` on are in the first `whole` parts only."""
        end = Builder(InsertPoint.at_end(self.body))
        for number in range(places):
            if 0 < number == always:
                rest = Block([scf.YieldOp()])
                end.insert(scf.IfOp(self._is_before(end, whole), [], Region(rest)))
                end = Builder(InsertPoint.at_start(rest))
            self._copy(end, number)
        self._finish()

    def emit_whole(self, part: int, extent: Extent) -> None:
        """Copy the body for each place of a whole part; the last part has a loop over those that it has."""
        end = Builder(InsertPoint.at_end(self.body))
        whole, rest = Block([scf.YieldOp()]), Block([scf.YieldOp()])
        end.insert(scf.IfOp(self._is_before(end, extent // part), [], Region(whole), Region(rest)))
        copies = Builder(InsertPoint.at_start(whole))
        for number in range(part):
            self._copy(copies, number)
        loop = ForOp(extent % part, Region(Block(arg_types=[IndexType()])))
        loop.induction_var.name_hint = self.place.name_hint
        Builder(InsertPoint.at_start(rest)).insert(loop)
        values: dict[SSAValue, SSAValue] = {self.place: loop.induction_var}
        inside = Builder(InsertPoint.at_start(loop.body.block))
        for op in self.ops:
            inside.insert(op.clone(values))
        self._finish()

    def _is_before(self, end: Builder, parts: Extent) -> SSAValue:
        """Whether a part is one of the first ones."""
        within = AffineExpr.dimension(0) * -1 + extent_expr(parts - 1)
        return end.insert(TestOp([within], [self.body.args[self.axis]])).result

    def _finish(self) -> None:
        """Put the copies in the place of the body, and parts in that of the axis."""
        for op in reversed(self.ops):
            op.detach()
            op.erase()
        self.body.erase_arg(self.place)
        axes = list(self.launch.axes)
        del axes[self.axis + 1]
        self.launch.axes = ArrayAttr(axes)
        fold_tests(self.launch)

    def _copy(self, end: Builder, number: int) -> None:
        """Insert the body at a place, with the term of each fold that the place adds."""
        values: dict[SSAValue, SSAValue] = {}
        copies: list[Operation] = []
        counters = [self.place]
        for op in self.ops:
            if not isinstance(op, ForOp) or not op.res:
                copies.append(end.insert(op.clone(values)))
                continue
            *terms, last = op.body.block.ops
            copies += [end.insert(term.clone(values)) for term in terms]
            counters.append(op.induction_var)
            for combiner, result, term in zip(op.combiners, op.res, last.operands, strict=True):
                term = values.get(term, term)
                values[result] = self._until(end, combiner.data, result, term, number)
        known: dict[SSAValue, AffineExpr] = dict.fromkeys(counters, AffineExpr.constant(number))
        for op in [each for copy in copies for each in ops_in(copy)]:
            rewrite_index(op, known, [])

    def _until(
        self, end: Builder, combiner: Combiner, result: SSAValue, term: SSAValue, number: int
    ) -> SSAValue:
        """Fold the terms up to a place: in each size of halves, the left half before it with its own."""
        until = term
        if number == 0:
            until = combine(end, combiner, identity_constant(end, combiner, term.type), term)
        for level in range(number.bit_length() + 1):
            half = 1 << level
            if number & half:
                until = combine(end, combiner, self.totals[result, level], until)
            elif (number + 1) % half == 0:
                self.totals[result, level] = until
        until.name_hint = result.name_hint
        return until


@dataclass(frozen=True)
class SharePrefixesPass(Recipe):
    """Needs launches whose axes are not shared out yet; leaves running folds that do nothing twice."""

    name = "share-prefixes"

    def take(self, launch: LaunchOp) -> Taken | str:
        if launch.settled is not None:
            return launch.settled
        reasons: dict[str, None] = {}
        for axis, part in runs(launch):
            copy = launch.clone()
            copy.location = launch.location
            if (reason := _share(copy, axis, part)) is None:
                name = launch.body.block.args[axis].name_hint or f"axis {axis}"
                replace(launch, copy)
                return Taken(f"{name} shares its sums in parts of {part}", [self])
            reasons[reason] = None
        return "; ".join(reasons) or "no reduction ends at the place of an axis"
