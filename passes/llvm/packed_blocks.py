"""A CPU block of a packed contraction: loops that pack, multiply in registers, and finish the result.

    tile.launch (..., %i = 128 : thread, %j = 128 : thread) {
      %s = loop.for %k_block = 0 to 4 reduce(add) -> f32 {
        %xs = tile.pack ...     %ws = tile.pack ...
        %c = loop.for %k = 0 to 512 reduce(add) -> f32 { ... %xs[%i, %k] * %ws[%j, %k] ... }
        loop.yield %c : f32
      }
      loop.store %s, %y[...]
    }

becomes

    scf.for %k_block = 0 to 4 {
      fill %xs, fill %ws                             // pack_loops.py
      scf.for %tile_n, scf.for %tile_m {             // register tiles of 8 by 32
        %0, ..., %15 = scf.for %k iter_args(...) -> (vector<16xf32>, ...) { vector.fma ... }
        vector.store %0, %sums[...]
      }
    }
    scf.for %i, scf.for %j { %s = loop.load %sums[%i * 128 + %j]    loop.store %s, %y[...] }

Where columns end within a tile, the last one is narrow, if that has room for them. Where the block is
turned, the rows of its tiles being the columns of the result, its sums are transposed before they are
finished. One thread runs all points of a block. Sums stay in registers for a chunk of K and lie in the
scratchpad in between; each is folded in the order of K, so that no choice of blocks changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, LoadOp
from ...dialects.tile import LaunchOp
from ...dialects.tile_pack import PackOp, PackYieldOp
from ...errors import DeploError
from ..loop.scalar_code import emit_constant
from ..lower_loops import IndexConstants
from .contraction_blocks import ContractionBlock
from .matrix_tiles import MatrixLoops, MatrixTile
from .pack_loops import Bound, PackBody, PackLoops, turned
from .pair_loops import PairLoops
from .pair_tiles import PairTile
from .register_tiles import InPlace, Packed, RegisterTile, Term

D0, D1, D2, D3 = (AffineExpr.dimension(i) for i in range(4))


Axis = tuple[SSAValue, Sequence[int]]
"""Where an axis of register tiles ends, and the widths that its last one may have, the widest first."""

Classes = tuple[type[PackLoops], type[RegisterTile]]
"""What packs, and what multiplies."""


def is_packed(launch: LaunchOp) -> bool:
    """Whether a block multiplies packed operands."""
    if launch.schedule is None or launch.schedule.get("thread_m") is None:
        return False
    return any(isinstance(op, PackOp) for op in ops_in(launch))


@dataclass(frozen=True)
class _Term:
    """One sum of products: a result of the sweep, and the packs that it multiplies."""

    rows: PackOp
    columns: PackOp


class PackedBlock(ContractionBlock):
    """A block whose operands are packed, or read where they lie in rows."""

    pack_loops_class = PackLoops
    tile_class = RegisterTile
    pair_classes: Classes = PairLoops, PairTile
    """How columns are packed, and what multiplies them, where a schedule has `pairs`."""
    matrix_classes: Classes = MatrixLoops, MatrixTile
    """The same where it has `mma` also."""

    def __init__(self, launch: LaunchOp, entry: Block, constants: IndexConstants):
        self.packs = ops_of(launch, PackOp)
        super().__init__(launch, entry, constants)
        assert launch.schedule is not None
        if launch.schedule.get("pairs") == 1:
            mma = launch.schedule.get("mma") == 1
            classes = self.matrix_classes if mma else self.pair_classes
            self.pack_loops_class, self.tile_class = classes

    def sweeps(self) -> tuple[ForOp, ForOp]:
        """The loop over chunks and the chunk."""
        outer = [op for op in self.launch.body.block.ops if isinstance(op, ForOp)]
        if len(outer) == 1 and outer[0].res:
            inner = [op for op in outer[0].body.ops if isinstance(op, ForOp)]
            if len(inner) == 1 and list(outer[0].yielded) == list(inner[0].res):
                return outer[0], inner[0]
        raise DeploError("a packed contraction has one loop over chunks of K, with one loop in it")

    def read(self) -> None:
        """Find what is multiplied."""
        self.terms = [self._term(value) for value in self.inner.yielded]

    def _term(self, value: SSAValue) -> _Term:
        op = value.owner
        if isinstance(op, arith.MulfOp | arith.MuliOp):
            loads = [narrow(side).owner for side in (op.lhs, op.rhs)]
            found = {
                load.indices[0]: load.memref.owner
                for load in loads
                if isinstance(load, LoadOp) and load.indices[1:] == (self.inner.induction_var,)
            }
            rows, columns = found.get(self.m), found.get(self.n)
            if isinstance(rows, PackOp) and isinstance(columns, PackOp):
                return _Term(rows, columns)
        raise DeploError("a packed contraction sums products of a packed row and a packed column")

    # ------------------------------------------------------------------ the block

    def lower(self, block: Block) -> None:
        """Write the block's code; the launch's body is taken apart."""
        self.code = code = self.code_class(block, self.constants)
        buffers = {
            pack: self._scratch(pack.element.type, elements_of(pack))
            for pack in self.packs
            if pack.in_place is None
        }
        self.single = self.outer.extent.data == 1 and not self.turned
        # Sums that are complete after one chunk are done with, strip by strip.
        height = self.size_m
        if self.single:
            height = self.tile_m
        elif self.turned:
            height = self.turned_stride
        sums = [self._scratch(self.element, height * self.size_n) for _ in self.terms]
        square = self._square(self.terms[0].columns.element.type)
        rest, tests = self._after()
        self.bounds = {counter: self._bounds(counter, tests) for counter in (self.m, self.n)}
        limits: dict[SSAValue, SSAValue] = {
            counter: self._least(self.constants.get(size), self.bounds[counter])
            for counter, size in ((self.m, self.size_m), (self.n, self.size_n))
        }
        self._name(buffers, sums)
        if not self.single:
            self._clear(sums, limits)
        chunks = self.constants.get(self.outer.extent.data)
        with code.loop(chunks, self.outer.induction_var.name_hint or "chunk") as chunk:
            self.outer.induction_var.replace_all_uses_with(chunk)
            length, halved = self._fill(buffers, limits, square)
            rows = {term.rows: self._rows(term.rows, buffers) for term in self.terms}
            columns = {
                pack: Packed.of(pack, buffers[pack], halves=pack in halved)
                for pack in (term.columns for term in self.terms)
            }
            tiles = self._register_tiles(rows, columns, sums)
            tiles.prepare(self.entry)
            widths = self._narrow_widths(self.bounds[self.n])
            with code.loop(self._tiles(limits[self.m], self.tile_m), "tile_m") as tile_m:
                self._multiply_tiles(tiles, tile_m, (limits[self.n], widths), length)
                first = code.index(D0 * self.tile_m, [tile_m])
                end = code.smaller(code.index(D0 + self.tile_m, [first]), limits[self.m])
                following = code.index(D0 + 1, [chunk])
                last = code.insert(arith.CmpiOp(following, chunks, "eq"))
                with nullcontext() if self.single else code.when(last):
                    self._move_up(rows.values(), tile_m, sums)
                    if not self.turned:
                        self._finish(rest, sums, (self.m, first, end), (self.n, limits[self.n]))
        if self.turned:
            turned = [self._turn(buffer, limits) for buffer in sums]
            whole = self.n, self.constants.get(0), limits[self.n]
            self._finish(rest, turned, whole, (self.m, limits[self.m]))
        code.builder.insert(scf.YieldOp())

    def _register_tiles(
        self,
        rows: Mapping[PackOp, Packed | InPlace],
        columns: Mapping[PackOp, Packed],
        sums: Sequence[SSAValue],
    ) -> RegisterTile:
        """What multiplies packed rows by packed columns and adds the products to sums."""
        terms = [
            Term(rows[t.rows], columns[t.columns], each)
            for t, each in zip(self.terms, sums, strict=True)
        ]
        fixed = self.code, terms, self.element, self.cpu, self.tile_m, self.tile_n, self.size_n
        hint = self.inner.induction_var.name_hint or "k"
        return self.tile_class(*fixed, self.single, hint, ahead=self.ahead)

    def _multiply_tiles(
        self, tiles: RegisterTile, tile_m: SSAValue, axis: Axis, length: SSAValue
    ) -> None:
        """Add the products of `length` positions to the sums of rows and of an axis, up to a whole vector."""
        code, tile = self.code, self.tile_n
        end, widths = axis
        first: SSAValue = self.constants.get(0)
        for width, narrower in zip((tile, *widths), (*widths, 0), strict=True):
            # Up to the tile that has room in a narrower one.
            count = code.index((D0 + (tile - 1 - narrower)) // tile, [end])
            with code.loop(count, "tile_n", first) as tile_n:
                replace(tiles, width=width, apart=tile).multiply((tile_m, tile_n), length)
            first = count

    def _narrow_widths(self, bounds: Iterable[Bound]) -> list[int]:
        """Columns of the narrow tiles that the last one of an axis may be, the widest first.

        As many vectors as are left, or any number where that is not known.
        """
        left = [bound.remainder(self.tile_n) for bound in bounds]
        known = [each for each in left if each is not None]
        if len(known) < len(left):
            return list(range(self.tile_n - self.width, 0, -self.width))
        narrow = -(-max(known, default=0) // self.width) * self.width % self.tile_n
        return [narrow] if narrow else []

    def _rows(self, pack: PackOp, buffers: dict[PackOp, SSAValue]) -> Packed | InPlace:
        """How register tiles read the rows that a pack says."""
        if pack.in_place is None:
            return Packed.of(pack, buffers[pack])
        body = PackBody.of(pack)
        match body.ops:
            case (LoadOp() as load,) if load.result is body.element:
                row, position = pack.body.block.args
            case _:
                raise DeploError("rows in place are loaded under no conditions but their ends")
        ends = [bound for bound in body.rows if not bound.is_multiple_of(self.tile_m)]
        count = self._least(self.constants.get(self.size_m), ends) if ends else None
        return InPlace(load, row, position, count)

    def _move_up(
        self, rows: Iterable[Packed | InPlace], tile: SSAValue, sums: Sequence[SSAValue]
    ) -> None:
        """Move the sums of a tile whose rows begin earlier than its place does to where they belong."""
        code = self.code
        found = [each for each in rows if isinstance(each, InPlace) and each.count is not None]
        if not found:
            return
        first = found[0].first_row(code, tile, self.tile_m)
        place = code.index(D0 * self.tile_m, [tile])
        earlier = code.index(D0 - D1, [place, first])
        end = code.index(D0 - D1, [code.constants.get(self.tile_m), earlier])
        target = code.constants.get(0) if self.single else place
        moved = code.insert(arith.CmpiOp(earlier, code.constants.get(0), "sgt"))
        with (
            code.when(moved),
            code.loop(end, "r") as row,
            code.loop(code.constants.get(self.size_n), "c") as column,
        ):
            for buffer in sums:
                origin = (D0 + D1 + D2) * self.size_n + D3
                value = code.load(buffer, (origin, [target, row, earlier, column]))
                code.store(value, buffer, ((D0 + D1) * self.size_n + D2, [target, row, column]))

    def _turn(self, sums: SSAValue, limits: dict[SSAValue, SSAValue]) -> SSAValue:
        """The transposed sums of a block."""
        code, lanes, stride = self.code, self.lanes, self.turned_stride
        made = self._scratch(self.element, self.size_n * stride)
        with (
            code.loop(self._tiles(limits[self.m], lanes), "rows") as row,
            code.loop(self._tiles(limits[self.n], lanes), "columns") as column,
        ):
            lines = [
                code.load_vector(
                    sums, ((D0 * lanes + number) * self.size_n + D1 * lanes, [row, column]), lanes
                )
                for number in range(lanes)
            ]
            for number, line in enumerate(turned(code, lines, lanes)):
                place = (D1 * lanes + number) * stride + D0 * lanes, [row, column]
                code.store_vector(line, made, place)
        return made

    def _name(self, buffers: dict[PackOp, SSAValue], sums: Sequence[SSAValue]) -> None:
        """Give the scratch buffers names, where somebody reads them."""

    def _square(self, element: Attribute) -> SSAValue:
        """A buffer in which a square of elements of columns is turned, or of pairs of them."""
        count = self.lanes * self.lanes * self.tile_class.together
        return self._scratch(element if self.tile_class.together > 1 else self.element, count)

    def _fill(
        self, buffers: dict[PackOp, SSAValue], limits: dict[SSAValue, SSAValue], square: SSAValue
    ) -> tuple[SSAValue, set[PackOp]]:
        """Fill all packs; gives how many positions the chunk has, and the packs that are halves of pairs."""
        size = self.inner.extent.data
        assert isinstance(size, int)
        bodies = {pack: PackBody.of(pack) for pack in self.packs}
        # Past what all packs end at, all products are of two zeros.
        common = set.intersection(*(set(body.positions) for body in bodies.values()))
        for pack, body in bodies.items():
            if set(body.positions) - common:
                if pack.in_place is not None:
                    raise DeploError("what is read in place ends where all packs of a chunk do")
                whole = [op for op in pack.body.block.ops if not isinstance(op, PackYieldOp)]
                bodies[pack] = PackBody(tuple(whole), pack.element)
        length = self._least(self.constants.get(size), sorted(common, key=str))
        halved: set[PackOp] = set()
        for pack, body in bodies.items():
            is_row = any(term.rows is pack for term in self.terms)
            counter, tile = (self.m, self.tile_m) if is_row else (self.n, self.tile_n)
            total = self.code.index((D0 + (tile - 1)) // tile * tile, [limits[counter]])
            # Where the result ends at a tile, so do its rows.
            ends = [b for b in self.bounds[counter] if b.is_multiple_of(tile)]
            rows = self._least(total, [bound for bound in body.rows if bound not in ends])
            if pack.in_place is not None:
                continue
            loops = self.pack_loops_class(
                self.code, pack, body, buffers[pack], self.lanes, rows, total, length, square
            )
            loops.emit()
            if loops.in_halves:
                halved.add(pack)
        return length, halved

    def _clear(self, sums: Sequence[SSAValue], limits: dict[SSAValue, SSAValue]) -> None:
        code = self.code
        zero = code.broadcast(emit_constant(code.builder, 0, self.element), self.lanes)
        rows = code.index((D0 + (self.tile_m - 1)) // self.tile_m * self.tile_m, [limits[self.m]])
        with (
            code.loop(rows, "r") as row,
            code.loop(self._tiles(limits[self.n], self.lanes), "c") as column,
        ):
            for buffer in sums:
                place = (D0 * self.size_n + D1 * self.lanes, [row, column])
                code.store_vector(zero, buffer, place)


def narrow(value: SSAValue) -> SSAValue:
    """What a factor is widened from."""
    return value.owner.input if isinstance(value.owner, arith.ExtFOp) else value


def elements_of(pack: PackOp) -> int:
    """Elements of the buffer that a pack fills."""
    rows, length = pack.shape
    return rows * (pack.row_stride if pack.panel_rows is None else length)
