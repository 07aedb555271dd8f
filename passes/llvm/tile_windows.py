"""`tile-windows`: sums of windows with factors are computed for a tile of results at once, in registers.

    scf.for %k = %c0 to %c28 step %c1 {
      scf.for %l = %c0 to %c56 step %c1 {
        %s = scf.for %n = %c0 to %c7 ... scf.for %m = %c0 to %c7 ... {
          ... %window[%k + %n, 0, %l + %m] * %w[%n, %m] ...
        }
        loop.store %s, %y[%k, %l]
      }
    }
becomes, for tiles of 14 rows by a vector of 16 columns,
    scf.for %k_tile = %c0 to %c2 step %c1 {
      scf.for %l_tile = %c0 to %c4 step %c1 {
        %0, ..., %13 = scf.for %m = %c0 to %length step %c1 iter_args(...) -> (vector<16xf32>, ...) {
          %w0 = vector.broadcast (loop.load %w[%c0, %m])      ...    7 factors
          %v0 = vector.load %window[%k_tile * 14, 0, %l_tile * 16 + %m]
          ...                                                        20 rows, each for 1 to 7 of the sums
        }
        vector.store %0, %sums[...]
      }
      scf.for %k = ..., scf.for %l = ... { %s = loop.load %sums[...]    loop.store %s, %y[%k, %l] }
    }

What is loaded for a row of results is in the windows of the next ones, too, and a column of factors fits the
registers, as all factors of a large window do not: a load serves several products, where one by one each
product takes two. A tile may reach past the last row or column. What it reads there lies behind the copy of
the window, which is made longer, and what it computes there nobody reads. How large tiles are is decided by
counting what a core issues.

Declined are windows that are not copied (`stage-windows`) or do not lie side by side there, and those of few
elements, whose factors all fit the registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil, prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import MemRefType, ModuleOp, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.index import linearize
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import schedule_of
from ...dialects.sizes import static_shape
from ...index.affine import quotient, replace_dims
from ...machine.cpus import Cpu
from ...machine.targets import get_cpu
from ..loop.scalar_code import emit_constant
from ..lower_loops import IndexConstants
from ..replacing import replace
from .kernel_loops import change_loops, function_of
from .loop_code import LoopCode
from .register_tiles import fold_plain
from .window_sums import Windows, choose, counter, factor_ops, find, trip_count

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))


@dataclass(frozen=True)
class _Tiles:
    """Writes the loops of windows in tiles."""

    windows: Windows
    cpu: Cpu
    height: int
    vectors: int
    lanes: int
    code: LoopCode

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.vectors * self.lanes

    @property
    def type(self) -> VectorType:
        """Of a vector of sums."""
        return VectorType(self.windows.sum.res[0].type, [self.lanes])

    def emit(self) -> None:
        """Write them in front of the loop over rows."""
        code, windows = self.code, self.windows
        rows, columns = windows.shape
        stride = ceil(columns / self.width) * self.width
        self._make_room(ceil(rows / self.height) * self.height - 1, stride - 1)
        sums = self._scratch(self.height * stride)
        down, across = (
            self._tiles(windows.rows, self.height),
            self._tiles(windows.columns, self.width),
        )
        hints = [counter(loop).name_hint or "i" for loop in (windows.rows, windows.columns)]
        with code.loop(down, f"{hints[0]}_tile") as tile:
            first = code.index(D0 * self.height, [tile])
            with code.loop(across, f"{hints[1]}_tile") as part:
                column = code.index(D0 * self.width, [part])
                for (row, place), value in self._sums(first, column).items():
                    offset = D0 + (row * stride + place * self.lanes)
                    code.store_vector(value, sums, (offset, [column]))
            end = code.smaller(code.index(D0 + self.height, [first]), windows.rows.ub)
            with (
                code.loop(end, hints[0], first) as row,
                code.loop(windows.columns.ub, hints[1]) as column,
            ):
                self._finish(sums, ((D0 - D1) * stride + D2, [row, first, column]), row, column)

    def _tiles(self, loop: scf.ForOp, size: int) -> SSAValue:
        """How many tiles of a size a loop is, the last of which may be smaller."""
        if count := trip_count(loop):
            return self.code.constants.get(ceil(count / size))
        return self.code.index(quotient(D0 + (size - 1), size), [loop.ub])

    def _finish(
        self, sums: SSAValue, place: tuple[AffineExpr, list[SSAValue]], *counters: SSAValue
    ) -> None:
        """What is done with the sum of a row and a column of results."""
        windows, code = self.windows, self.code
        value = code.load(sums, place)
        value.name_hint = windows.sum.res[0].name_hint
        known: dict[SSAValue, SSAValue] = {
            counter(windows.rows): counters[0],
            counter(windows.columns): counters[1],
            windows.sum.res[0]: value,
        }
        *ops, _ = windows.columns.body.block.ops
        code.clone([op for op in ops if op is not windows.sum], known)

    def _sums(self, first: SSAValue, column: SSAValue) -> dict[tuple[int, int], SSAValue]:
        """The sums of a tile, by row and vector; it begins at a row and a column."""
        code, windows = self.code, self.windows
        code.free_registers(self.cpu.register_names)
        places: list[tuple[int, int]] = [
            (row, each) for row in range(self.height) for each in range(self.vectors)
        ]
        zero = code.broadcast(emit_constant(code.builder, 0, windows.sum.res[0].type), self.lanes)
        # LLVM would unroll it if it knew the length, and have too few registers for all factors.
        length = code.opaque(windows.across.ub)
        body, loop = code.sweep(
            length, counter(windows.across).name_hint or "m", [zero] * len(places)
        )
        with code.into(body):
            position, *so_far = body.args
            sums: dict[tuple[int, int], SSAValue] = dict(zip(places, so_far, strict=True))
            factors = [self._factor(number, position) for number in range(windows.window[0])]
            origin = self._origin(first, column, position)
            for line, readers in windows.read_by(self.height).items():
                for each in range(self.vectors):
                    loaded = self._load(origin, line, each)
                    for row, number in readers:
                        at = row, each
                        sums[at] = fold_plain(code, self.type, loaded, factors[number], sums[at])
            code.builder.insert(scf.YieldOp(*sums.values()))
        return dict(zip(places, loop.results, strict=True))

    def _factor(self, number: int, position: SSAValue) -> SSAValue:
        """The factor of an element of a window, for all lanes."""
        code, windows = self.code, self.windows
        known: dict[SSAValue, SSAValue] = {
            counter(windows.down): code.constants.get(number),
            counter(windows.across): position,
        }
        made = code.clone(list(factor_ops(windows)), known)
        return code.broadcast(made.get(windows.factor, windows.factor), self.lanes)

    def _origin(self, *counters: SSAValue) -> SSAValue:
        """Where in the copy the windows of a row and a column begin, at a column of the window."""
        windows, load = self.windows, self.windows.element
        dims: dict[SSAValue, AffineExpr] = {
            counter(windows.rows): D0,
            counter(windows.columns): D1,
            counter(windows.down): AffineExpr.constant(0),
            counter(windows.across): D2,
        }
        exprs = [
            replace_dims(expr, [dims[v] for v in load.indices]) for expr in load.map.data.results
        ]
        return self.code.index(linearize(exprs, self._copy_shape), counters)

    def _load(self, origin: SSAValue, line: int, number: int) -> SSAValue:
        """What a vector of a tile's results reads in a line of the copy."""
        code, none = self.code, self.code.constants.get(0)
        offset = line * prod(self._copy_shape[1:]) + number * self.lanes
        indices = [none, none, code.index(D0 + offset, [origin])]
        return code.insert(vector.LoadOp(self.windows.element.memref, indices, self.type))

    @property
    def _copy_shape(self) -> list[int]:
        type = self.windows.element.memref.type
        assert isinstance(type, MemRefType)
        return list(static_shape(type))

    # ------------------------------------------------------------------ memory

    def _make_room(self, row: int, column: int) -> None:
        """Have the copy of a window end behind what tiles up to a row and a column read."""
        windows, load = self.windows, self.windows.element
        last: dict[SSAValue, int] = {
            counter(windows.rows): row,
            counter(windows.columns): column,
            counter(windows.down): windows.window[0] - 1,
            counter(windows.across): windows.window[1] - 1,
        }
        line, _, place = (
            expr.eval([last[v] for v in load.indices], []) for expr in load.map.data.results
        )
        alloc = load.memref.owner
        assert isinstance(alloc, memref.AllocOp) and isinstance(alloc.memref.type, MemRefType)
        rows, *inside = self._copy_shape
        needed = line + 1 + place // prod(inside[1:])
        if needed > rows:
            type = MemRefType(alloc.memref.type.element_type, [needed, *inside])
            larger = memref.AllocOp([], [], type, alloc.alignment)
            larger.memref.name_hint = alloc.memref.name_hint
            replace(alloc, larger)

    def _scratch(self, elements: int) -> SSAValue:
        """A buffer for sums, which lives as long as the copy of the window."""
        copy = self.windows.element.memref
        assert isinstance(copy.owner, memref.AllocOp)
        type = MemRefType(self.type.element_type, [elements])
        made = memref.AllocOp([], [], type, copy.owner.alignment)
        made.memref.name_hint = "sums"
        Rewriter.insert_op(made, InsertPoint.before(copy.owner))
        for use in [use for use in copy.uses if isinstance(use.operation, memref.DeallocOp)]:
            Rewriter.insert_op(memref.DeallocOp.get(made.memref), InsertPoint.after(use.operation))
        return made.memref


def _tile(cpu: Cpu, rows: scf.ForOp) -> str | None:
    """Compute the windows whose rows a loop counts in tiles; gives None, or why not."""
    found = find(rows)
    if isinstance(found, str):
        return found
    function = function_of(rows)
    bits = schedule_of(function).get("width") or cpu.vector_bytes * 8
    lanes = bits // 8 // storage_bytes(found.sum.res[0].type)
    tile = choose(found, cpu, lanes)
    if tile is None:
        return "a column of its factors does not fit the registers"
    block = rows.parent
    assert block is not None
    code = LoopCode(block, IndexConstants(function.body.block))
    code.builder = Builder(InsertPoint.before(rows))
    _Tiles(found, cpu, *tile, lanes, code).emit()
    rows.detach()
    rows.erase()
    return None


@dataclass(frozen=True)
class TileWindowsPass(ModulePass):
    """Needs kernels as `scf` functions; `target` says for which CPU."""

    name = "tile-windows"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every loop of every kernel."""
        tile = partial(_tile, get_cpu(self.target))
        change_loops(self.name, op, tile, none="no rows of results are sums of windows")
