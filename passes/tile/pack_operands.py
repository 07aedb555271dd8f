"""`pack-operands`: a CPU block computes its part of a contraction from packed copies of the factors.

    tile.launch (%i = 512 : thread, %j = 2048 : thread) schedule(...) {
      %s = loop.for %k = 0 to 2048 reduce(add) -> f32 { ... %x[%i, %k] ... %w[%j, %k] ... }
      loop.store %s, %y[%i, %j]
    }
becomes, for blocks of 128 by 128 and chunks of 512,
    tile.launch (%i_block = 4 : block, %j_block = 16 : block, %i = 128 : thread, %j = 128 : thread) ... {
      %s = loop.for %k_block = 0 to 4 reduce(add) -> f32 {
        %xs = tile.pack (%r = 128, %k = 512) pad 16 : memref<128x512xf32, "shared"> { ... }
        %ws = tile.pack (%r = 128, %k = 512) panels 32 : memref<128x512xf32, "shared"> { ... }
        %c = loop.for %k = 0 to 512 reduce(add) -> f32 { ... %xs[%i, %k] ... %ws[%j, %k] ... } {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i_block * 128 + %i, %j_block * 128 + %j]
    }

Columns come in panels as wide as the register tile, so that it reads whole vectors one after the other. Rows
keep their order if their elements are neighbours along K, or are read in `pairs` of bf16, and come in panels
as high as the tile if not;
where the schedule says `in_place`, they are not copied at all. Which axis of the result counts rows and
which columns is the schedule's `m` and `n`.
Whatever a factor is computed by moves into the body of its pack; past the end of an axis it is 0. Nested
sweeps become one over all their positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.products import Product, find_product, may_stay, slice_of, walk_along_k
from ...analysis.vectors import lies_along
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, KernelOp, LoadOp, TestOp, YieldOp
from ...dialects.scalars import Combiner, is_integer, storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, ceil_div, extent_expr
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...dialects.tile_pack import SHARED, PackOp, PackYieldOp
from ...errors import DeploError
from ...index.affine import quotient, remainder
from ..loop.scalar_code import emit_constant
from ..lower_loops import CHUNK
from .recipe import Recipe, Taken
from .rewrite_indices import rewrite_index

INDEX = IndexType()

PAD_BYTES = 64
"""Between packed rows, a line of the cache, so that rows of a power of two do not all meet in one."""


def pad_of(element: Attribute) -> IntegerAttr:
    """Elements of a type between packed rows."""
    return IntegerAttr(PAD_BYTES // storage_bytes(element), i64)


SIZES = ("block_m", "block_n", "block_k", "thread_m", "thread_n")
"""What a schedule that packs says of blocks and of register tiles."""


def decline_reason(launch: LaunchOp) -> str | None:
    """Why nothing is packed for a launch, or None."""
    schedule = launch.schedule
    if schedule is None or schedule.word("vectors") is None:
        return "the schedule packs nothing"
    if launch.is_partitioned:
        return "its operands are packed already"
    if (reason := schedule.lacks(*SIZES)) is not None:
        return reason
    for key in ("m", "n"):
        block, tile = schedule.number(f"block_{key}"), schedule.number(f"thread_{key}")
        if block % tile:
            return f"block_{key} = {block} is no whole number of register tiles of {tile}"
    return None


@dataclass
class _Packing:
    """One contraction on its way into blocks."""

    launch: LaunchOp
    product: Product
    schedule: ScheduleAttr

    def run(self) -> str:
        """Rewrite the launch; says what is packed."""
        launch, m, n = self.launch, self.product.m, self.product.n
        sizes = {m: self.schedule.number("block_m"), n: self.schedule.number("block_n")}
        extents = [axis.extent.data for axis in launch.axes]
        names = [arg.name_hint or "i" for arg in launch.body.block.args]
        old = list(launch.body.block.args)
        body = launch.body.block
        blocks = [body.insert_arg(INDEX, len(body.args)) for _ in extents]
        points = {axis: body.insert_arg(INDEX, len(body.args)) for axis in sorted((m, n))}
        axes = [AxisAttr(ceil_div(e, sizes.get(a, 1)), Level.BLOCK) for a, e in enumerate(extents)]
        axes += [AxisAttr(sizes[axis], Level.THREAD) for axis in points]
        launch.axes = ArrayAttr([*launch.axes, *axes])
        for axis, block in enumerate(blocks):
            block.name_hint = f"{names[axis]}_block" if axis in points else names[axis]
        for axis, point in points.items():
            point.name_hint = names[axis]
        counters: list[SSAValue] = [*blocks, *points.values()]
        dims = [AffineExpr.dimension(i) for i in range(len(counters))]
        self.starts = {axis: (blocks[axis], sizes[axis], extents[axis]) for axis in points}
        self.points = points
        dot = self.schedule.get("dot") == 1
        narrow = self.product.narrow if self.schedule.get("pairs") == 1 else None
        self.source = narrow or self.product
        self.in_place = self._rows_stay(extents[m])
        self.rows_along = walk_along_k(self.source, self.source.rows, m, launch)
        whole: dict[SSAValue, AffineExpr] = {}
        for axis, argument in enumerate(old):
            whole[argument] = dims[axis]
            if axis in points:
                place = dims[len(blocks) + sorted((m, n)).index(axis)]
                whole[argument] = dims[axis] * sizes[axis] + place
        packs = [] if dot else self._chunk(old)
        for op in ops_in(launch.body):
            rewrite_index(op, whole, counters)
        self._guard(dims, counters, whole_body=dot)
        for _ in old:
            body.erase_arg(body.args[0])
        launch.axes = ArrayAttr(axes)
        first = len(blocks)
        rows, columns = sorted((m, n)).index(m), sorted((m, n)).index(n)
        launch.schedule = self.schedule.with_choices(m=first + rows, n=first + columns)
        copied = sum(pack.in_place is None for pack in packs)
        if not copied:
            return "operands are read where they lie"
        of = "" if copied == len(packs) else f" of {len(packs)}"
        return f"{copied}{of} operands are packed"

    def _rows_stay(self, extent: Extent) -> bool:
        """Whether rows are read where they lie: there must be enough of them for a register tile."""
        asked = self.schedule.get("in_place") == 1
        enough = isinstance(extent, int) and extent >= self.schedule.number("thread_m")
        return asked and enough and may_stay(self.source, self.source.rows)

    # ------------------------------------------------------------------ the sweep

    def _chunk(self, old: Sequence[SSAValue]) -> list[PackOp]:
        """Put chunks of packed factors in the place of the sweeps."""
        product = self.product
        size, extent = self.schedule.number("block_k"), product.extent
        sweep = product.sweeps[0]
        types = list(sweep.res.types)
        add = [Combiner.ADD] * len(types)
        outer = ForOp(
            ceil_div(extent, size),
            Region(Block(arg_types=[INDEX])),
            combiners=add,
            result_types=types,
        )
        inner = ForOp(size, Region(Block(arg_types=[INDEX])), combiners=add, result_types=types)
        hint = product.sweeps[-1].induction_var.name_hint or "k"
        outer.induction_var.name_hint, inner.induction_var.name_hint = f"{hint}_block", hint
        inner.attributes[CHUNK] = UnitAttr()
        outer.location = inner.location = sweep.location
        assert sweep.parent is not None
        sweep.parent.insert_op_before(outer, sweep)
        for block in (outer.body.block, inner.body.block):
            assert block.last_op is not None
            block.last_op.detach()
        packs: dict[SSAValue, PackOp] = {}
        source = self.source
        sides = ((source.rows, product.m), (source.columns, product.n))
        for factors, axis in sides:
            for factor in factors:
                if factor not in packs:
                    packs[factor] = self._pack(factor, axis, outer.induction_var, old)
                    outer.body.block.add_op(packs[factor])
        self._multiply(inner, packs)
        for position, result in enumerate(sweep.res):
            inner.res[position].name_hint = f"{result.name_hint or 'sum'}_chunk"
            outer.res[position].name_hint = result.name_hint
            result.replace_all_uses_with(outer.res[position])
        outer.body.block.add_ops([inner, YieldOp(*inner.res)])
        sweep.detach()
        sweep.erase()
        self._sweep_dead_code()
        return list(packs.values())

    def _multiply(self, inner: ForOp, packs: dict[SSAValue, PackOp]) -> None:
        """The body of a chunk: products of what is packed."""
        product, source = self.product, self.source
        builder = Builder(InsertPoint.at_end(inner.body.block))
        dims = [AffineExpr.dimension(0), AffineExpr.dimension(1)]
        loaded: dict[SSAValue, SSAValue] = {}
        sides = (
            (product.rows, source.rows, product.m),
            (product.columns, source.columns, product.n),
        )
        for factors, sources, axis in sides:
            for factor, packed in zip(factors, sources, strict=True):
                if factor not in loaded:
                    place = [self.points[axis], inner.induction_var]
                    load = builder.insert(LoadOp(packs[packed].packed, dims, place))
                    load.result.name_hint = factor.name_hint
                    loaded[factor] = load.result
                    if packed is not factor:
                        wide = arith.ExtFOp(load.result, factor.type)  # pyright: ignore[reportArgumentType]
                        loaded[factor] = builder.insert(wide).result
        made: list[SSAValue] = []
        for row, column in zip(product.rows, product.columns, strict=True):
            multiply = arith.MuliOp if is_integer(row.type) else arith.MulfOp
            made.append(builder.insert(multiply(loaded[row], loaded[column])).result)
        builder.insert(YieldOp(*made))

    def _pack(
        self, factor: SSAValue, axis: int, chunk: SSAValue, old: Sequence[SSAValue]
    ) -> PackOp:
        """What computes a factor, as the body of a pack; 0 past the end of its axis and of K."""
        block, size, extent = self.starts[axis]
        rows, length = size, self.schedule.number("block_k")
        body = Block(arg_types=[INDEX, INDEX])
        row, position = body.args
        row.name_hint = self.points[axis].name_hint
        position.name_hint = self.product.sweeps[-1].induction_var.name_hint or "k"
        space: list[SSAValue] = [block, row, chunk, position]
        b, r, c, p = (AffineExpr.dimension(i) for i in range(4))
        line, place = b * size + r, c * length + p
        total = self.product.extent
        inside: list[AffineExpr] = []
        if ceil_div(extent, size) * size != extent:
            inside.append(line * -1 + extent_expr(extent - 1))
        if ceil_div(total, length) * length != total:
            inside.append(place * -1 + extent_expr(total - 1))
        counters = {old[axis]: line} | self._positions(place)
        target = body
        if inside:
            target = Block()
        values: dict[SSAValue, SSAValue] = {}
        copies: list[Operation] = []
        for op in slice_of(factor, self.launch):
            copies.append(copy := op.clone(value_mapper=values))
            target.add_op(copy)
        element = values[factor]
        target.add_op(scf.YieldOp(element) if inside else PackYieldOp(element))
        if inside:
            self._mask(body, target, inside, space, factor)
        made = PackOp(MemRefType(factor.type, [rows, length], memory_space=SHARED), Region(body))
        for op in copies:
            for inner in ops_in(op):
                rewrite_index(inner, counters, space)
        if axis == self.product.n:
            made.panels = IntegerAttr(self.schedule.number("thread_n"), i64)
        elif self.in_place:
            made.in_place = UnitAttr()
        elif self.schedule.get("pairs") == 1 or self.rows_along or lies_along(body, position):
            made.pad = pad_of(factor.type)
        else:
            made.panels = IntegerAttr(self.schedule.number("thread_m"), i64)
        made.location = self.product.sweeps[0].location
        made.packed.name_hint = f"{factor.name_hint or 'factor'}_packed"
        return made

    def _positions(self, place: AffineExpr) -> dict[SSAValue, AffineExpr]:
        """The counter of each sweep, where all sweeps together are at a position."""
        found: dict[SSAValue, AffineExpr] = {}
        behind = 1
        for sweep in reversed(self.product.sweeps):
            counter = quotient(place, behind) if behind > 1 else place
            if sweep is not self.product.sweeps[0]:
                assert isinstance(sweep.extent.data, int)
                counter = remainder(counter, sweep.extent.data)
                behind *= sweep.extent.data
            found[sweep.induction_var] = counter
        return found

    def _mask(
        self,
        body: Block,
        inner: Block,
        inside: list[AffineExpr],
        space: list[SSAValue],
        factor: SSAValue,
    ) -> None:
        builder = Builder(InsertPoint.at_end(body))
        test = builder.insert(TestOp(inside, space))
        zero = Block()
        at_zero = Builder(InsertPoint.at_end(zero))
        at_zero.insert(scf.YieldOp(emit_constant(at_zero, 0, factor.type)))
        guard = builder.insert(scf.IfOp(test.result, [factor.type], Region(inner), Region(zero)))
        builder.insert(PackYieldOp(guard.output[0]))

    def _sweep_dead_code(self) -> None:
        """Drop what only the factors needed."""
        for op in reversed(list(self.launch.body.block.ops)):
            if op.results and not op.regions and all(not result.uses for result in op.results):
                op.detach()
                op.erase()

    # ------------------------------------------------------------------ the edges

    def _guard(
        self, dims: Sequence[AffineExpr], counters: Sequence[SSAValue], *, whole_body: bool
    ) -> None:
        """Run all but the sweep, or all of it, only for points inside of the result.

        What stands in front of the sweep is for what follows: the sweep reads what is packed.
        """
        inside: list[AffineExpr] = []
        for axis, (_, size, extent) in self.starts.items():
            if ceil_div(extent, size) * size != extent:
                place = dims[counters.index(self.points[axis])]
                inside.append((dims[axis] * size + place) * -1 + extent_expr(extent - 1))
        if not inside:
            return
        block = self.launch.body.block
        ops = list(block.ops)
        sweep = next(op for op in ops if isinstance(op, ForOp))
        then = Block()
        for op in ops if whole_body else [op for op in ops if op is not sweep]:
            op.detach()
            then.add_op(op)
        then.add_op(scf.YieldOp())
        test = TestOp(inside, counters)
        block.add_ops([test, scf.IfOp(test.result, [], Region(then))])


def pack(launch: LaunchOp, product: Product) -> str:
    """Block a contraction and pack its operands as its schedule says; gives what is packed."""
    assert launch.schedule is not None
    if launch.schedule.get("m") == product.n:
        product = product.turned
    return _Packing(launch, product, launch.schedule).run()


@dataclass(frozen=True)
class PackOperandsPass(Recipe):
    """Pack the factors of each contraction that has a CPU's schedule."""

    name = "pack-operands"

    def take(self, launch: LaunchOp) -> Taken | str:
        found = decline_reason(launch) or find_product(launch)
        if isinstance(found, str):
            return found
        assert launch.schedule is not None
        if launch.schedule.get("pairs") == 1 and found.narrow is None:
            kernel = launch.parent_op()
            assert isinstance(kernel, KernelOp)
            name = kernel.sym_name.data
            raise DeploError(f"@{name} multiplies other factors than bf16; it has no `pairs`")
        # The step that `schedule-cpu` took, `legacy`, packs, too.
        return Taken(pack(launch, found), [])
