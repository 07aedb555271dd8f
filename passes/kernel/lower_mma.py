"""Products by warps go on from the sums so far; a part of `materialize-tile`.

    %d0, ... = tile.mma (...) by (...) : bf16
    %n0 = arith.addf %acc0, %d0 : f32
    ...                                        // and for the other three
becomes
    %n0, ... = kernel.mma (...) by (...) plus (%acc0, ...) : bf16
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.inside import ops_in
from ...dialects.kernel import MmaOp
from ...dialects.tile_mma import MmaOp as TileMmaOp


def _sum_with(product: SSAValue) -> arith.AddfOp | None:
    """The sum that is all that reads a product."""
    use = product.get_user_of_unique_use()
    return use if isinstance(use, arith.AddfOp) and use.lhs is not use.rhs else None


def lower_mma(entry: Block) -> None:
    """Turn each `tile.mma` of a kernel into a `kernel.mma`, with the sums that its products go into."""
    for op in [o for o in ops_in(entry) if isinstance(o, TileMmaOp)]:
        adds = [_sum_with(product) for product in op.products]
        sums: list[SSAValue] = []
        results: list[SSAValue] = list(op.products)
        whole = [add for add in adds if add is not None and add.parent is op.parent]
        others = [add.rhs if add.lhs in op.products else add.lhs for add in whole]
        if len(whole) == len(results) and all(_is_before(value, op) for value in others):
            sums, results = others, [add.result for add in whole]
        new = MmaOp(list(op.rows), list(op.columns), sums)
        new.location = op.location
        assert op.parent is not None
        op.parent.insert_op_before(new, op)
        for old, result in zip(results, new.products, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        for gone in (*(whole if sums else ()), op):
            gone.detach()
            gone.erase()


def _is_before(value: SSAValue, op: Operation) -> bool:
    """Whether a value is there before an operation: an argument, or what a block around it computes."""
    owner = value.owner
    return isinstance(owner, Block) or owner.parent is not op.parent or owner.is_before_in_block(op)
