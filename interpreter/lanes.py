"""The threads of a machine that runs in lockstep: their values, their memory, and who is active."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.kernel import WARP
from ..dialects.sizes import static_shape
from .accesses import Accesses
from .device_memory import MAX_THREADS, Memory, Touched, fault
from .numpy_types import Array
from .scalar_ops import NotExecutable
from .tensor_ir import evaluate_index


class Lanes:
    """The threads of some blocks, given by their numbers. Values broadcast over (blocks, threads).

    So many blocks as `cluster` says follow each other and form one.
    """

    def __init__(self, blocks: Array, threads: int):
        self.shape = (len(blocks), threads)
        self.block_id = blocks.astype(np.int64)[:, None]
        self.thread_id = np.arange(threads, dtype=np.int64)[None, :]
        self.slot = np.arange(len(blocks), dtype=np.int64)[:, None]
        self.mask: Array = np.ones((1, 1), bool)
        self.values: dict[SSAValue, Array] = {}
        self.memories: dict[SSAValue, Memory] = {}
        self.accesses: Accesses | None = None
        self.cluster = 1
        count = len(blocks) * threads
        self._slots = np.repeat(np.arange(len(blocks), dtype=np.int64), threads)
        self._threads = np.tile(np.arange(threads, dtype=np.int64), len(blocks))
        numbers = (self.block_id * threads + self.thread_id).reshape(count)
        if count and numbers[-1] >= MAX_THREADS:
            raise NotExecutable(f"a grid of more than {MAX_THREADS} threads")
        self._numbers = numbers.astype(np.int32)

    @property
    def all_active(self) -> bool:
        """Whether the mask leaves out no thread, and needs no look at each to say so."""
        return self.mask.size == 1 and bool(self.mask.flat[0])

    def full(self, value: Array) -> Array:
        """A value with one element per thread of the grid."""
        return np.broadcast_to(value, self.shape)

    def require_whole_warps(self, op: Operation) -> None:
        """Raise unless all lanes of a warp are active, or none."""
        active = self.full(self.mask)
        for first in range(0, self.shape[1], WARP):
            warp = active[:, first : first + WARP]
            if np.any(warp.any(axis=1) & ~warp.all(axis=1)):
                what = op.name.partition(".")[2].partition("_")[0]
                raise fault(op, f"is reached by some lanes of a warp only: divergent {what}")

    # ------------------------------------------------------------------ indices

    def index(self, op: Operation, expr: AffineExpr, operands: Sequence[SSAValue]) -> Array:
        """The value of an index expression."""
        return evaluate_index(expr, [self.values[v] for v in operands])

    def place(
        self,
        op: Operation,
        memref: SSAValue,
        map: AffineMapAttr,
        operands: Sequence[SSAValue],
        width: int = 1,
    ) -> tuple[Memory, Array]:
        """The memory and the flat offset of an access to `width` neighbours."""
        type = memref.type
        assert isinstance(type, MemRefType)
        exprs = map.data.results
        return self.memories[memref], self.offsets(op, exprs, operands, static_shape(type), width)

    def offsets(
        self,
        op: Operation,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        shape: Sequence[int],
        width: int = 1,
    ) -> Array:
        """Flat offsets of an access, checked against the extents for active threads."""
        flat: Array = np.zeros((1, 1), np.int64)
        for axis, (expr, extent) in enumerate(zip(exprs, shape, strict=True)):
            index = self.index(op, expr, operands)
            end = extent if axis < len(shape) - 1 else extent - width + 1
            if index.min() < 0 or index.max() >= end:
                wrong = ((index < 0) | (index >= end)) & self.mask
                if np.any(wrong):
                    bad = np.broadcast_to(index, wrong.shape)[wrong]
                    raise fault(
                        op,
                        f"is out of bounds: index {bad.min()}..{bad.max() + extent - end} of axis "
                        f"{axis}, whose extent is {extent}",
                    )
                index = np.clip(index, 0, max(end - 1, 0))
            flat = flat * extent + index
        return flat

    # ------------------------------------------------------------------ elements

    def note(self, op: Operation, memory: Memory, lanes: Touched) -> None:
        """Threads access elements."""
        if self.accesses is not None and not memory.own:
            self.accesses.note(op, memory, lanes)

    def touched(self, memory: Memory, flat: Array) -> Touched:
        """The elements at flat offsets, one per active thread."""
        flat = flat + self.thread_id * memory.own if memory.own else flat
        slots, threads, numbers = self._slots, self._threads, self._numbers
        where = self.full(flat).reshape(-1)
        if not self.all_active:
            active = self.full(self.mask).reshape(-1)
            slots, threads, numbers = slots[active], threads[active], numbers[active]
            where = where[active]
        return Touched(slots, threads, numbers, (slots, where) if memory.shared else (where,))

    def rows(self, op: Operation, memory: Memory, flat: Array, width: int) -> Touched:
        """The `width` neighbours from flat offsets on, a row per active thread; they must be aligned."""
        wrong = (flat % width != 0) & self.mask
        if np.any(wrong):
            offset = self.full(flat)[self.full(wrong)][0]
            raise fault(
                op, f"is misaligned: offset {offset} of {memory.name} is no multiple of {width}"
            )
        lanes = self.touched(memory, flat)
        *outer, first = (w[:, None] for w in lanes.where)
        inner = first + np.arange(width)
        lanes.where = (*(np.broadcast_to(w, inner.shape) for w in outer), inner)
        return lanes
