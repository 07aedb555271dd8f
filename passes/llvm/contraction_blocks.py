"""A CPU block of a contraction: what its launch says of it, where it ends, and what is done with its sums.

    tile.launch (%i = 128 : thread, %j = 128 : thread) {     // scheduled: m, n, thread_m, thread_n, vectors
      %s = loop.for ... reduce(add) -> f32 { ... }           // a subclass knows how: sums in a buffer
      loop.store %s, %y[...]                                 // `_finish`, for each of them

One thread runs all points of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.loop import ForOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.tile import LaunchOp
from ...errors import DeploError
from ...machine.cpus import CPUS
from ..lower_loops import IndexConstants
from .loop_code import LoopCode, scratch
from .pack_loops import Bound

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))


class ContractionBlock(ABC):
    """Lowers the body of a launch into a block whose counters have values already."""

    code_class = LoopCode
    code: LoopCode
    """What writes the block's code, from when `lower` begins."""
    single = False
    """Whether sums are complete after one chunk of K, and done with strip by strip."""

    def __init__(self, launch: LaunchOp, entry: Block, constants: IndexConstants):
        self.launch = launch
        self.entry = entry
        self.constants = constants
        schedule = launch.schedule
        name = None if schedule is None else schedule.word("vectors")
        if schedule is None or name is None:
            raise DeploError("is a contraction, but its schedule does not say for which `vectors`")
        positions = schedule.get("m"), schedule.get("n")
        tile = schedule.get("thread_m"), schedule.get("thread_n")
        if None in positions or None in tile:
            raise DeploError("is a contraction; its schedule must have m, n, thread_m and thread_n")
        self.m, self.n = (launch.body.block.args[p] for p in positions if p is not None)
        self.turned = self.m.index > self.n.index
        self.tile_m, self.tile_n = (size for size in tile if size is not None)
        self.outer, self.inner = self.sweeps()
        self.read()
        self.element = self.outer.res[0].type
        self.cpu = CPUS[name]
        self.lanes = self.cpu.lanes(storage_bytes(self.element))
        self.size_m, self.size_n = (self._extent(counter) for counter in (self.m, self.n))
        if self.size_m % self.tile_m or self.size_n % self.tile_n or self.tile_n % self.width:
            raise DeploError(
                f"blocks of {self.size_m} by {self.size_n} are not made of register tiles of "
                f"{self.tile_m} by {self.tile_n} in vectors of {self.width}"
            )

    @property
    def width(self) -> int:
        """What the columns of a register tile are a multiple of."""
        return self.lanes

    @property
    def ahead(self) -> int:
        """Positions before its turn that a line of what is not packed is asked for; 0 if none is."""
        assert self.launch.schedule is not None
        return self.launch.schedule.get("ahead") or 0

    @property
    def turned_stride(self) -> int:
        """Elements from one row of the turned sums to the next: whole squares."""
        return -(-self.size_m // self.lanes) * self.lanes

    @abstractmethod
    def sweeps(self) -> tuple[ForOp, ForOp]:
        """The loop over chunks of K and a chunk, which may be one loop."""

    @abstractmethod
    def read(self) -> None:
        """Find what is multiplied."""

    @abstractmethod
    def lower(self, block: Block) -> None:
        """Write the block's code; the launch's body is taken apart."""

    def _extent(self, counter: SSAValue) -> int:
        axis = self.launch.axis_of(counter)
        assert axis is not None
        extent = axis.extent.data
        if not isinstance(extent, int):
            raise DeploError("the points of a contraction's block must be constant in number")
        return extent

    def _scratch(self, element: object, count: int) -> SSAValue:
        """A buffer for the time that the function runs."""
        type = MemRefType(element, [count])  # pyright: ignore[reportArgumentType]
        return scratch(type, self.entry, self.constants)

    def _after(self) -> tuple[list[Operation], list[TestOp]]:
        """What is done for each point once its sums are complete, and the conditions around it."""
        ops = [op for op in self.launch.body.block.ops if op is not self.outer]
        last = ops[-1]
        if not isinstance(last, scf.IfOp) or last.output or last.false_region.blocks:
            return ops, []
        test = last.cond.owner
        if not isinstance(test, TestOp):
            return ops, []
        counters = (self.m, self.n)
        if not all(any(self._bound(e, test, c) for c in counters) for e in test.exprs):
            return ops, []
        apart = (self.outer, last.true_region.block.last_op)
        inner = [op for op in last.true_region.block.ops if op not in apart]
        return [op for op in ops if op not in (last, test)] + inner, [test]

    def _bound(self, expr: AffineExpr, test: TestOp, counter: SSAValue) -> Bound | None:
        """What a condition says of one of the counters, if it says nothing of the other."""
        bound = Bound.of(expr, test.operands_, counter)
        other = self.n if counter is self.m else self.m
        return None if bound is None or other in bound.operands else bound

    def _bounds(self, counter: SSAValue, tests: Sequence[TestOp]) -> list[Bound]:
        """What the points of a counter that are inside of the result are below."""
        said = [self._bound(expr, test, counter) for test in tests for expr in test.exprs]
        return [bound for bound in said if bound is not None]

    def _least(self, limit: SSAValue, bounds: Sequence[Bound]) -> SSAValue:
        for bound in bounds:
            limit = self.code.smaller(limit, self.code.index(bound.expr, bound.operands))
        return limit

    def _tiles(self, limit: SSAValue, size: int) -> SSAValue:
        """How many register tiles cover so many points."""
        return self.code.index((D0 + (size - 1)) // size, [limit])

    def _finish(
        self,
        rest: Sequence[Operation],
        sums: Sequence[SSAValue],
        rows: tuple[SSAValue, SSAValue, SSAValue],
        columns: tuple[SSAValue, SSAValue],
    ) -> None:
        """What is done with the sums of some points: a counter from one row to another, and of columns."""
        code, (outer, first, end), (inner, width) = self.code, rows, columns
        stride = self.turned_stride if self.turned else self.size_n
        width = code.opaque(width)
        with (
            code.loop(end, outer.name_hint or "i", first) as i,
            code.loop(width, inner.name_hint or "j") as j,
        ):
            row = D0 - D2 if self.single else D0
            place = row * stride + D1
            loaded = [code.load(buffer, (place, [i, j, first])) for buffer in sums]
            for result, value in zip(self.outer.res, loaded, strict=True):
                value.name_hint = result.name_hint
            values: dict[SSAValue, SSAValue] = {outer: i, inner: j}
            values.update(zip(self.outer.res, loaded, strict=True))
            code.clone(rest, values)
