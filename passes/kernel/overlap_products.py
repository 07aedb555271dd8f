"""`overlap-products`: warpgroups begin the next product while the last one is on its way.

    %r:32 = scf.for %k = ... iter_args(%c = ...) {
      kernel.mbarrier_wait %full[%k mod 3] ...
      kernel.barrier                              // nobody reads the last buffer any more,
      ...                                         // so that the copies of iteration %k + 2 may fill it
      %d:32 = kernel.wgmma %xs[%k mod 3, 0, 0] by %ws[%k mod 3, 0, 0] plus (%c...)
      scf.yield %d...
    }
becomes
    %p:32 = scf.for %k = ... iter_args(%c = ...) {      // {rolled}
      kernel.mbarrier_wait %full[%k mod 3] ...
      %d:32 = kernel.wgmma %xs[%k mod 3, 0, 0] by %ws[%k mod 3, 0, 0] plus (%c...) leaving 1
      kernel.barrier                              // the product of the last iteration is done in all threads
      ...
      scf.yield %d...
    }
    %r:32 = kernel.wgmma_wait (%p...)

The tensor cores have something to do while the threads wait for each other and start copies. Several products
of an iteration begin together (`joined`); waits between them would have ptxas let the tensor cores wait, too.
Products that
anything else reads in the loop stay as they are, as do loops with other barriers. The compiler is told not to
unroll the loop, whose threads have little to do: a long one would fill the cache of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from ...dialects.inside import ops_of
from ...dialects.kernel import BarrierOp, FuncOp, MbarrierWaitOp, WgmmaOp, WgmmaWaitOp
from ...errors import counted
from ..decisions import record


@dataclass(frozen=True)
class Pipeline:
    """A loop of products: what lets copies begin, and the products of an iteration."""

    loop: scf.ForOp
    start: list[Operation]
    """The barrier, and what starts copies between it and the first product, with its conditions."""
    products: list[WgmmaOp]


def find_pipeline(loop: scf.ForOp) -> Pipeline | str:
    """The products of a loop that may go on into its next iteration, or why they may not."""
    ops = list(loop.body.block.ops)
    products = [op for op in ops if isinstance(op, WgmmaOp)]
    if not products:
        return "it has no products of warpgroups"
    first, last = ops.index(products[0]), ops.index(products[-1])
    barriers = ops_of(loop.body, BarrierOp)
    if len(barriers) != 1 or barriers[0] not in ops[:first]:
        return "no one barrier stands in front of its products"
    at = ops.index(barriers[0])
    if any(not isinstance(op, WgmmaOp) for op in ops[first:last] if not is_side_effect_free(op)):
        return "something else stands between its products"
    effects = [op for op in ops[at:first] if not is_side_effect_free(op)]
    if any(isinstance(op, MbarrierWaitOp) or op.results for op in effects):
        return "its products need what stands behind its barrier"
    start = [op for op in ops[at:first] if op in effects or _serves(op, effects)]
    for product in products:
        for total, result in zip(product.sums, product.products, strict=True):
            if not (_is_running(total, loop, products) and _goes_on(result, loop, products)):
                return "a product is read, or begins anew, in each iteration"
    return Pipeline(loop, start, products)


def _serves(op: Operation, others: list[Operation]) -> bool:
    """Whether only some other operations read what an operation gives, if it gives anything."""
    users = {use.operation for result in op.results for use in result.uses}
    return bool(users) and all(user in others for user in users)


def _is_running(total: SSAValue, loop: scf.ForOp, products: list[WgmmaOp]) -> bool:
    """Whether nothing but one product reads a sum, which the loop carries or another product gives."""
    carried = total in loop.body.block.args[1:]
    return total.has_one_use() and (carried or total.owner in products)


def _goes_on(result: SSAValue, loop: scf.ForOp, products: list[WgmmaOp]) -> bool:
    """Whether all that reads a product is another one, or the next iteration."""
    use = result.get_user_of_unique_use()
    return use in products or use is loop.body.block.last_op


def overlap(found: Pipeline) -> None:
    """Let the products of an iteration go on into the next one."""
    block, count = found.loop.body.block, len(found.products)
    end = block.last_op
    assert end is not None
    for op in found.start:
        op.detach()
        block.insert_op_before(op, end)
    *others, last = found.products
    last.leaving = IntegerAttr(count, i64)
    for number, product in enumerate(others, start=1):
        product.leaving = IntegerAttr(count + number, i64)
        product.joined = UnitAttr()
    carried = [
        result
        for result, value in zip(found.loop.res, end.operands, strict=True)
        if value.owner in found.products
    ]
    found.loop.attributes["rolled"] = UnitAttr()
    wait = WgmmaWaitOp(carried)
    wait.location = found.loop.location
    assert found.loop.parent is not None
    found.loop.parent.insert_op_after(wait, found.loop)
    for old, new in zip(carried, wait.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation is not wait)


@dataclass(frozen=True)
class OverlapProductsPass(ModulePass):
    """Needs kernels whose slabs are copied some iterations ahead (`materialize-tile`)."""

    name = "overlap-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            loops = ops_of(function, scf.ForOp)
            found = {loop: find_pipeline(loop) for loop in loops}
            changed = [each for each in found.values() if isinstance(each, Pipeline)]
            for each in changed:
                overlap(each)
            name = function.sym_name.data
            if changed:
                count = counted(sum(len(each.products) for each in changed), "product")
                record(self.name, name, True, f"an iteration leaves {count} on the way", function)
                continue
            reasons = dict.fromkeys(reason for reason in found.values() if isinstance(reason, str))
            record(self.name, name, False, "; ".join(reasons) or "it has no loop", function)
