"""Products by warps go on from the sums so far; a part of `materialize-tile`.

    %d0, ... = tile.mma (...) by (...) : bf16
    %n0 = arith.addf %acc0, %d0 : f32
    ...                                        // and for the other three
becomes
    %n0, ... = kernel.mma (...) by (...) plus (%acc0, ...) : bf16

So do those by warpgroups, which read the shared memory that slabs have become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, MemRefType, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_of
from ...dialects.kernel import MmaOp, WgmmaOp
from ...dialects.tile_mma import MmaOp as TileMmaOp
from ...dialects.tile_mma import WgmmaOp as TileWgmmaOp
from ...dialects.wgmma import PANEL
from ...dialects.wgmma_base import SlabAt
from ...index.affine import ZERO

SUMS = arith.AddfOp | arith.AddiOp


def _sum_with(product: SSAValue) -> SUMS | None:
    """The sum that is all that reads a product."""
    use = product.get_user_of_unique_use()
    return use if isinstance(use, SUMS) and use.lhs is not use.rhs else None


def lower_mma(entry: Block) -> None:
    """Turn `tile.mma` into `kernel.mma`; products begin with the sums that they go into."""
    for op in ops_of(entry, TileMmaOp, WgmmaOp):
        adds = _sums_with(op)
        results: list[SSAValue] = list(op.products)
        sums = list[SSAValue]()
        if adds:
            sums = [add.rhs if add.lhs in results else add.lhs for add in adds]
        if isinstance(op, TileMmaOp):
            new = MmaOp(list(op.rows), list(op.columns), sums)
        elif sums:
            slabs = [SlabAt(m, (list(map.data.results), list(at))) for m, map, at in op.slabs]
            rows = slabs[0] if op.rows else list(op.held)
            extents = None if op.extents is None else op.shape
            new = WgmmaOp(rows, slabs[-1], sums, extents, transposed=op.transposed is not None)
        else:
            continue
        new.location = op.location
        assert op.parent is not None
        op.parent.insert_op_before(new, op)
        for old, result in zip([a.result for a in adds] or results, new.products, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        for gone in (*adds, op):
            gone.detach()
            gone.erase()


def lower_wgmma(
    op: TileWgmmaOp, memory: Mapping[SSAValue, SSAValue], turn: Sequence[SSAValue]
) -> None:
    """Let warpgroups multiply what has taken the place of slabs, in the buffer given if there are several."""

    def place(slab: SSAValue) -> SlabAt:
        type = memory[slab].type
        assert isinstance(type, MemRefType)
        index = [AffineExpr.dimension(i) for i in range(len(turn))]
        index += [ZERO] * (type.get_num_dims() - len(turn))
        return SlabAt(memory[slab], (index, list(turn)))

    zero = arith.ConstantOp(FloatAttr(0.0, f32))
    new = WgmmaOp(
        place(op.rows) if op.rows else list(op.held),
        place(op.columns),
        [zero.result] * len(op.products),
        op.shape if op.transposed and op.shape[1] > PANEL else None,
        transposed=op.transposed is not None,
    )
    new.location = op.location
    assert op.parent is not None
    op.parent.insert_ops_before([zero, new], op)
    for old, result in zip(op.products, new.products, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _sums_with(op: TileMmaOp | WgmmaOp) -> list[SUMS]:
    """The sums that the products of an operation go into, if all do, with what is there before it."""
    found: list[SUMS] = []
    for product in op.products:
        add = _sum_with(product)
        if add is None or add.parent is not op.parent:
            return []
        if not _is_before(add.rhs if add.lhs is product else add.lhs, op):
            return []
        found.append(add)
    return found


def _is_before(value: SSAValue, op: Operation) -> bool:
    """Whether a value is there before an operation: an argument, or what a block around it computes."""
    owner = value.owner
    return isinstance(owner, Block) or owner.parent is not op.parent or owner.is_before_in_block(op)
