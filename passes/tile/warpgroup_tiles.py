"""The warpgroups of a block multiply slabs.

    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %s = loop.for %k_block = 0 to 8 reduce(add) -> f32 {
        %xs = tile.stage ...
        %ws = tile.stage ...
        %c = loop.for %k = 0 to 64 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
becomes, with tiles of 2 by 16 for each thread,
    tile.launch (%i = 32 : thread, %j = 4 : thread) {
      %s:32 = loop.for %k_block = 0 to 8 reduce(add, ...) -> f32, ... {
        %xs = tile.stage ... via tma swizzle 128
        %ws = tile.stage ... via tma swizzle 128
        %c:32 = tile.wgmma %xs by %ws to 32 : ...

The tensor cores read the slabs themselves, so no lane loads what it multiplies. Both slabs have to be rows of
128 bytes along K that the copy engine can bring. That of the columns may also have rows along these, of a
multiple of 128 bytes: then it is read `transposed`. The elements of a thread are those that `tile.wgmma`
gives it (`thread_tiles.py`); what follows the sweep is copied for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from ...analysis.copies import bulk_refusal
from ...dialects.loop import LoadOp
from ...dialects.schedule import Transport, TransportAttr
from ...dialects.tile import StageOp
from ...dialects.tile_mma import WgmmaOp
from ...dialects.wgmma import PAIR, ROW_BYTES, sums_of, verify_slabs
from .warp_tiles import Product, rebuild


@dataclass(frozen=True)
class Slabs:
    """What is multiplied: slabs of the rows and of the columns."""

    rows: StageOp
    columns: StageOp
    transposed: bool
    """Whether the columns are along theirs, not K."""


def find_slabs(found: Product) -> list[Slabs] | str:
    """The slabs that are multiplied for each sum, or why warpgroups cannot multiply them."""
    slabs: list[Slabs] = []
    for row_factor, column_factor in found.factors:
        pair = _slabs_of(found, row_factor, column_factor)
        if isinstance(pair, str):
            return pair
        if (misfit := _misfit(found, pair)) is not None:
            return misfit
        slabs.append(pair)
    return slabs


def _slabs_of(found: Product, row_factor: SSAValue, column_factor: SSAValue) -> Slabs | str:
    """The slabs whose elements two factors are."""
    rows, columns = _whole_slab(row_factor), _whole_slab(column_factor)
    if isinstance(rows, str):
        return rows
    if isinstance(columns, str):
        return columns
    position = found.inner.induction_var
    if rows[1] != [found.rows, position]:
        return "K is not the innermost axis of a slab of rows"
    orders = [found.columns, position], [position, found.columns]
    if columns[1] not in orders:
        return "neither K nor columns are the innermost axis of a slab of columns"
    return Slabs(rows[0], columns[0], orders.index(columns[1]) == 1)


def _whole_slab(factor: SSAValue) -> tuple[StageOp, list[SSAValue]] | str:
    """The slab whose elements a factor is, and what counts along its axes: nothing if that is not all."""
    load = factor.owner
    if not isinstance(load, LoadOp) or not isinstance(load.memref.owner, StageOp):
        return "a factor is computed after it is loaded"
    stage, exprs = load.memref.owner, load.map.data.results
    if stage.via is not None or stage.pad is not None:
        return "a slab is filled some other way already"
    if (refusal := bulk_refusal(stage, ROW_BYTES)) is not None:
        return refusal
    along = [load.indices[e.position] for e in exprs if isinstance(e, AffineDimExpr)]
    return stage, along if len(along) == len(exprs) else []


def _misfit(found: Product, slabs: Slabs) -> str | None:
    """Why slabs are too large or too small, or None."""
    try:
        height, width = verify_slabs(
            slabs.rows.slab.type, slabs.columns.slab.type, slabs.transposed
        )
    except VerifyException as error:
        return str(error).strip()
    sums = sums_of(height, width, height // found.thread_m * found.row.lanes)
    return sums if isinstance(sums, str) else None


def use_warpgroups(found: Product, slabs: list[Slabs]) -> None:
    """Let the warpgroups of a launch multiply slabs."""

    def multiply() -> tuple[list[Operation], list[SSAValue]]:
        count = found.thread_m * found.thread_n
        products = [
            WgmmaOp(each.rows.slab, each.columns.slab, count, transposed=each.transposed)
            for each in slabs
        ]
        for product, value in zip(products, found.inner.yielded, strict=True):
            product.location = found.inner.location
            for each in product.products:
                each.name_hint = value.name_hint
        return [*products], [each for product in products for each in product.products]

    for stage in {stage for each in slabs for stage in (each.rows, each.columns)}:
        stage.via = TransportAttr(Transport.TMA)
        stage.swizzle = IntegerAttr(ROW_BYTES, i64)
    rebuild(found, {found.n: 2}, {found.m: PAIR}, multiply)
