"""A `tensor_ir.sort` as a CPU kernel: the positions of each row are put in order by their keys.

    %v, %i = tensor_ir.sort %x along 1 : tensor<8x1000xf32> -> (tensor<8x10xf32>, tensor<8x10xi64>)

is, a row to a block,

    scf.for %part = 0 to 6 {                 // elements 0 to 32, 32 to 64, 64 to 128, ..., 512 to 1000
      scf.for %j { if word(%x[%row, %j]) < %limit, append it to %words }
      sort %words; keep the first 10; %limit is the last of them
    }
    scf.for %r = 0 to 10 { %i[%row, %r] = position in %words[%r]; %v[%row, %r] = %x[%row, that] }

or one part of all where most are wanted. A word is a key of 32 bits, unsigned and in the order asked for,
above the position: so no two are equal, and equal keys keep their order. Few words count how many are
smaller; more are shared out by a byte of their keys at a time, the lowest first (Knuth, The Art of Computer
Programming, vol. 3, 5.2.5, "Sorting by distribution"), but for bytes that all have in common. Keys of 64 bits
come in two halves, the lower first.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, i1, i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.allowed_sizes import MAX_SIZE
from ...dialects.sizes import shape_of
from ...dialects.tensor_ir_indexed import SortOp
from ...errors import DeploError
from ...index.affine import quotient
from ..host import Device
from ..loop.scalar_code import emit_constant
from .ordered_kernels import OrderedKernel, bits_type, place_along
from .sort_keys import emit_key, key_bits
from .sort_words import ALL_BITS, FEW_WORDS, KEY_BITS, Words, WordSorter

INDEX = IndexType()
D0, D1 = (AffineExpr.dimension(i) for i in range(2))

CHUNK = 16
"""Neighbours that are compared together."""

LEAST_PART = 32
"""Elements of the first part at least."""


def sort_kernel(op: SortOp, name: str, in_place: bool) -> Device:
    """The kernel; its arguments are the input, the values and the positions."""
    assert not in_place
    values = [op.input, op.values, op.positions]
    return _Sort(op, OrderedKernel(name, values, ["x", "values", "positions"])).build()


class _Sort:
    """Writes the kernel of one sort."""

    def __init__(self, op: SortOp, kernel: OrderedKernel):
        self.op, self.kernel, self.code = op, kernel, kernel.code
        self.input, self.values, self.positions = kernel.buffers
        self.shape = shape_of(bits_type(op.input.type))
        self.axis = op.axis.value.data
        self.extent = self.shape[self.axis]
        if isinstance(self.extent, int) and self.extent > MAX_SIZE:
            raise DeploError(f"a row of {self.extent} elements has more than a sort can count")
        self.count = shape_of(bits_type(op.values.type))[self.axis]
        self.descending = op.descending is not None
        self.halves = key_bits(bits_type(op.input.type).element_type) // KEY_BITS
        self.first = self._first_part()
        is_small = self.halves == 1 and isinstance(self.extent, int) and self.extent <= FEW_WORDS
        self.sorter = WordSorter(kernel, self.extent, are_few=is_small)

    def _first_part(self) -> int | None:
        """Elements of the first of several parts; None if there is one."""
        if self.halves > 1 or not isinstance(self.count, int):
            return None
        first = max(LEAST_PART, self.count * 2)
        whole = isinstance(self.extent, int) and first * 2 > self.extent
        return None if whole else first

    def build(self) -> Device:
        """The kernel, complete."""
        kernel, code, constants = self.kernel, self.code, self.kernel.constants
        extents = [1 if i == self.axis else n for i, n in enumerate(self.shape)]
        with kernel.blocks(extents) as self.counters:
            base = self._all() if self.first is None else self._first_few(self.first)
            with code.loop(constants.get(self.count), "r") as r:
                position = self.sorter.position_in(self.sorter.load(base, r))
                number = code.insert(arith.IndexCastOp(position, i64))
                kernel.store(number, self.positions, *self._at(r))
                kernel.store(
                    kernel.load(self.input, *self._at(position)), self.values, *self._at(r)
                )
        return kernel.finish(self.op, "puts rows in order")

    def _at(self, position: SSAValue) -> tuple[list[AffineExpr], list[SSAValue]]:
        """A place in this block's row."""
        return place_along(self.counters, self.axis, position)

    def _key(self, position: SSAValue) -> SSAValue:
        value = self.kernel.load(self.input, *self._at(position))
        return emit_key(self.code, value, descending=self.descending)

    def _word(self, position: SSAValue, half: int = 0) -> SSAValue:
        """The word of an element: 32 bits of its key, the lowest if `half` is 0, above its position."""
        code, number = self.code, self.sorter.number
        key = self._key(position)
        if key.type == i32:
            key = code.insert(arith.ExtUIOp(key, i64))
        elif half == 1:
            key = code.insert(arith.ShRUIOp(key, number(KEY_BITS)))
        high = code.insert(arith.ShLIOp(key, number(KEY_BITS)))
        low = code.insert(arith.IndexCastOp(position, i64))
        return code.insert(arith.OrIOp(high, low), "word")

    def _all(self) -> SSAValue:
        """Sort all words; gives where they begin."""
        code, constants, sorter = self.code, self.kernel.constants, self.sorter
        base, count = constants.get(0), constants.get(self.extent)
        with code.loop(count, "j") as j:
            sorter.store(self._word(j), base, j)
        if self.halves == 1:
            return sorter.sort(Words(base, count), may_be_few=not isinstance(self.extent, int))
        base = sorter.by_bytes(Words(base, count))
        with code.loop(count, "j") as j:
            sorter.store(self._word(sorter.position_in(sorter.load(base, j)), 1), base, j)
        return sorter.by_bytes(Words(base, count))

    def _first_few(self, first: int) -> SSAValue:
        """Sort part after part, keeping the words that are wanted; gives where they begin."""
        code, constants, sorter = self.code, self.kernel.constants, self.sorter
        extent, wanted = constants.get(self.extent), constants.get(self.count)
        zero, above_all = constants.get(0), sorter.number(ALL_BITS)
        end = constants.get(first)
        if not isinstance(self.extent, int):
            end = code.smaller(end, extent)
        init = [zero, end, zero, zero, above_all]
        body, loop = code.sweep(self._parts(first), "part", init)
        with code.into(body):
            _, start, end, base, kept, limit = body.args
            found = Words(base, self._append(start, end, Words(base, kept), limit))
            base = sorter.sort(found, may_be_few=True)
            kept = code.smaller(found.count, wanted)
            last = sorter.load(base, constants.get(self.count - 1))
            are_all = code.insert(arith.CmpiOp(found.count, wanted, "uge"))
            limit = code.insert(arith.SelectOp(are_all, last, above_all))
            next_end = code.smaller(code.index(D0 * 2, [end]), extent)
            body.add_op(scf.YieldOp(end, next_end, base, kept, limit))
        return loop.results[2]

    def _parts(self, first: int) -> SSAValue:
        """How many parts there are, each but the first two twice as long as the one before."""
        code, constants, number = self.code, self.kernel.constants, self.sorter.number
        firsts = (self.extent + -1) // first
        if isinstance(firsts, int):
            return constants.get(1 + firsts.bit_length())
        left = code.insert(arith.IndexCastOp(constants.get(firsts), i64))
        body, loop = code.sweep(constants.get(MAX_SIZE.bit_length()), "bit", [number(1)])
        with code.into(body):
            bit = code.insert(arith.IndexCastOp(body.args[0], i64))
            rest = code.insert(arith.ShRUIOp(left, bit))
            more = code.insert(arith.CmpiOp(rest, number(0), "ne"))
            one = code.insert(arith.ExtUIOp(more, i64))
            body.add_op(scf.YieldOp(code.insert(arith.AddiOp(body.args[1], one))))
        return code.insert(arith.IndexCastOp(loop.results[0], INDEX), "parts")

    def _append(self, start: SSAValue, end: SSAValue, kept: Words, limit: SSAValue) -> SSAValue:
        """Add the words of a part that are below a limit to those kept; gives how many there are then.

        Where none of `CHUNK` neighbours is below it, they are passed over together.
        """
        code, number = self.code, self.sorter.number
        high = code.insert(arith.ShRUIOp(limit, number(KEY_BITS)))
        most = code.insert(arith.TruncIOp(high, i32), "most")
        chunks = code.index(quotient(D1 - D0, AffineExpr.constant(CHUNK)), [start, end])
        body, loop = code.sweep(chunks, "chunk", [kept.count])
        with code.into(body):
            chunk, count = body.args
            first = code.index(D0 + D1 * CHUNK, [start, chunk])
            last = code.index(D0 + CHUNK, [first])
            added = code.choose(
                self._any_up_to(most, first),
                lambda: self._append_each(first, last, Words(kept.base, count), limit),
                lambda: count,
            )
            body.add_op(scf.YieldOp(added))
        rest = code.index(D0 + D1 * CHUNK, [start, chunks])
        return self._append_each(rest, end, Words(kept.base, loop.results[0]), limit)

    def _any_up_to(self, most: SSAValue, first: SSAValue) -> SSAValue:
        """Whether a key of the chunk from `first` on is not above one."""
        code, start = self.code, emit_constant(self.code.builder, False, i1)
        body, loop = code.sweep(self.kernel.constants.get(CHUNK), "e", [start])
        with code.into(body):
            e, found = body.args
            key = self._key(code.index(D0 + D1, [first, e]))
            below = code.insert(arith.CmpiOp(key, most, "ule"))
            body.add_op(scf.YieldOp(code.insert(arith.OrIOp(found, below))))
        return loop.results[0]

    def _append_each(
        self, start: SSAValue, end: SSAValue, kept: Words, limit: SSAValue
    ) -> SSAValue:
        code, sorter = self.code, self.sorter
        body, loop = code.sweep(end, "j", [kept.count], start)
        with code.into(body):
            j, count = body.args
            word = self._word(j)
            sorter.store(word, kept.base, count)
            below = code.insert(arith.CmpiOp(word, limit, "ult"))
            more = code.insert(arith.ExtUIOp(below, i64))
            step = code.insert(arith.IndexCastOp(more, INDEX))
            body.add_op(scf.YieldOp(sorter.add(count, step)))
        return loop.results[0]
