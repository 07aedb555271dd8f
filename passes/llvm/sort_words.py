"""Putting words in order, as loops of a CPU kernel; see `sort_kernel.py`.

Words are unsigned integers of 64 bits: a key of 32 above the position that it came from. They lie in one
half of a buffer, from `base` on, and move to the other half and back.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.sizes import Extent
from ..loop.scalar_code import emit_constant
from .ordered_kernels import OrderedKernel

INDEX = IndexType()
D0, D1 = (AffineExpr.dimension(i) for i in range(2))

KEY_BITS = 32
POSITION_MASK = (1 << KEY_BITS) - 1
ALL_BITS = -1
"""The word that is above all others."""

FEW_WORDS = 128
"""So many words count how many are smaller; more are shared out by bytes of their keys."""

BYTES, VALUES = KEY_BITS // 8, 256


@dataclass(frozen=True)
class Words:
    """Some words: where the first lies in the buffer, and how many there are."""

    base: SSAValue
    count: SSAValue


class WordSorter:
    """Inserts code that sorts words of a buffer which has room for `room` of them, twice."""

    def __init__(self, kernel: OrderedKernel, room: Extent, *, are_few: bool):
        """With `are_few` there are never more than `FEW_WORDS`."""
        self.kernel, self.code = kernel, kernel.code
        self.room = kernel.constants.get(room)
        self.buffer = kernel.scratch(i64, room * 2, "words")
        self.are_few = are_few
        self._table: SSAValue | None = None

    def number(self, value: int, type: IntegerType = i64) -> SSAValue:
        """A constant."""
        return emit_constant(self.code.builder, value, type)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two indices."""
        return self.code.index(D0 + D1, [a, b])

    def load(self, base: SSAValue, position: SSAValue) -> SSAValue:
        """The word at a position from `base` on."""
        word = self.code.load(self.buffer, (D0 + D1, [base, position]))
        word.name_hint = "word"
        return word

    def store(self, word: SSAValue, base: SSAValue, position: SSAValue) -> None:
        """Write the word at a position from `base` on."""
        self.code.store(word, self.buffer, (D0 + D1, [base, position]))

    def position_in(self, word: SSAValue) -> SSAValue:
        """The position that a word came from."""
        low = self.code.insert(arith.AndIOp(word, self.number(POSITION_MASK)))
        return self.code.insert(arith.IndexCastOp(low, INDEX))

    def sort(self, words: Words, *, may_be_few: bool) -> SSAValue:
        """Sort words, no two of which are equal; gives where they begin afterwards.

        With `may_be_few`, how many there are decides how, when it is known.
        """
        if self.are_few:
            return self._by_counting(words)
        if not may_be_few:
            return self.by_bytes(words)
        limit = self.kernel.constants.get(FEW_WORDS)
        are_few = self.code.insert(arith.CmpiOp(words.count, limit, "ule"))
        return self.code.choose(
            are_few, lambda: self._by_counting(words), lambda: self.by_bytes(words)
        )

    def _other(self, base: SSAValue) -> SSAValue:
        """Where the other half of the buffer begins."""
        return self.code.index(D0 - D1, [self.room, base])

    def _by_counting(self, words: Words) -> SSAValue:
        """Each word counts how many are smaller: that is its place."""
        code = self.code
        other = self._other(words.base)
        with code.loop(words.count, "i") as i:
            word = self.load(words.base, i)
            body, loop = code.sweep(words.count, "j", [self.number(0)])
            with code.into(body):
                less = code.insert(arith.CmpiOp(self.load(words.base, body.args[0]), word, "ult"))
                one = code.insert(arith.ExtUIOp(less, i64))
                body.add_op(scf.YieldOp(code.insert(arith.AddiOp(body.args[1], one))))
            self.store(word, other, code.insert(arith.IndexCastOp(loop.results[0], INDEX)))
        return other

    # ------------------------------------------------------------------ by bytes

    @property
    def table(self) -> SSAValue:
        """For each byte of the keys, how many words have each value there; then where the next one goes."""
        if self._table is None:
            self._table = self.kernel.scratch(i32, BYTES * VALUES, "table")
        return self._table

    def by_bytes(self, words: Words) -> SSAValue:
        """Share the words out by each byte of their keys, the lowest first, each time in order."""
        code, constants = self.code, self.kernel.constants
        self._count(words)
        body, loop = code.sweep(constants.get(BYTES), "byte", [words.base])
        with code.into(body):
            byte, base = body.args
            first = self._value(self.load(base, constants.get(0)), byte)
            number = code.insert(arith.IndexCastOp(self._entry(byte, first), INDEX))
            shared = code.insert(arith.CmpiOp(number, words.count, "eq"))
            moved = self.code.choose(
                shared, lambda: base, lambda: self._move(Words(base, words.count), byte)
            )
            body.add_op(scf.YieldOp(moved))
        return loop.results[0]

    def _value(self, word: SSAValue, byte: SSAValue) -> SSAValue:
        """The value of a byte of a word's key, as an index."""
        code = self.code
        shift = code.insert(arith.IndexCastOp(code.index(D0 * 8 + KEY_BITS, [byte]), i64))
        low = code.insert(arith.ShRUIOp(word, shift))
        value = code.insert(arith.AndIOp(low, self.number(VALUES - 1)))
        return code.insert(arith.IndexCastOp(value, INDEX), "value")

    def _entry(self, byte: SSAValue, value: SSAValue) -> SSAValue:
        return self.code.load(self.table, (D0 * VALUES + D1, [byte, value]))

    def _set(self, byte: SSAValue, value: SSAValue, entry: SSAValue) -> None:
        self.code.store(entry, self.table, (D0 * VALUES + D1, [byte, value]))

    def _step(self, byte: SSAValue, value: SSAValue) -> SSAValue:
        """The entry for a value, which goes up by one."""
        entry = self._entry(byte, value)
        more = self.code.insert(arith.AddiOp(entry, self.number(1, i32)))
        self._set(byte, value, more)
        return entry

    def _count(self, words: Words) -> None:
        code, constants = self.code, self.kernel.constants
        with code.loop(constants.get(BYTES * VALUES), "v") as value:
            self._set(constants.get(0), value, self.number(0, i32))
        with code.loop(words.count, "i") as i:
            word = self.load(words.base, i)
            for number in range(BYTES):
                byte = constants.get(number)
                self._step(byte, self._value(word, byte))

    def _move(self, words: Words, byte: SSAValue) -> SSAValue:
        """Move the words to the other half, in the order of one byte; gives where that begins."""
        code, constants = self.code, self.kernel.constants
        body, _ = code.sweep(constants.get(VALUES), "v", [self.number(0, i32)])
        with code.into(body):
            value, before = body.args
            here = self._entry(byte, value)
            self._set(byte, value, before)
            body.add_op(scf.YieldOp(code.insert(arith.AddiOp(before, here))))
        other = self._other(words.base)
        with code.loop(words.count, "i") as i:
            word = self.load(words.base, i)
            place = self._step(byte, self._value(word, byte))
            self.store(word, other, code.insert(arith.IndexCastOp(place, INDEX)))
        return other
