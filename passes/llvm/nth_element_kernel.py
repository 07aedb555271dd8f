"""A `tensor_ir.nth_element` as a CPU kernel: the bits of the key that is wanted, the highest first.

    %i = tensor_ir.nth_element %n of %x along 1 : (tensor<8x1xi64>, tensor<8x1000xf32>) -> tensor<8x1xi64>
becomes
    scf.for %j = 0 to 1000 { %keys[%j] = key of %x[%row, %j] }
    scf.for %step = 0 to 32 iter_args(%bit = 1 << 31, %key = 0) {
      %count = how many of %keys are below %key | %bit
      yield %bit >> 1, %count <= %n ? %key | %bit : %key
    }
    and with as many bits as a position has: how many of %keys before it are equal to %key

The key at place n is the largest number that at most n keys are below, its position the largest that at most
as many equal keys are before as n has left. Keys (`sort_keys.py`) are compared in whole vectors: 32 times
that is less work than to move each of them once.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.allowed_sizes import MAX_SIZE
from ...dialects.sizes import shape_of
from ...dialects.tensor_ir_indexed import NthElementOp
from ...errors import DeploError
from ..host import Device
from ..loop.scalar_code import emit_constant
from .ordered_kernels import OrderedKernel, bits_type, place_along
from .sort_keys import emit_key, key_bits

INDEX = IndexType()
D0 = AffineExpr.dimension(0)


def nth_element_kernel(op: NthElementOp, name: str, in_place: bool) -> Device:
    """The kernel; its arguments are the places, the input and the positions."""
    assert not in_place
    values = [op.places, op.input, op.positions]
    return _NthElement(op, OrderedKernel(name, values, ["places", "x", "positions"])).build()


class _NthElement:
    """Writes the kernel of one choice of places."""

    def __init__(self, op: NthElementOp, kernel: OrderedKernel):
        self.op, self.kernel, self.code = op, kernel, kernel.code
        self.places, self.input, self.positions = kernel.buffers
        input = bits_type(op.input.type)
        self.axis, self.shape = op.axis.value.data, shape_of(input)
        self.extent = self.shape[self.axis]
        if isinstance(self.extent, int) and self.extent > MAX_SIZE:
            raise DeploError(f"a row of {self.extent} elements has more than a kernel can count")
        self.key_type = IntegerType(key_bits(input.element_type))
        self.keys = kernel.scratch(self.key_type, self.extent, "keys")

    def build(self) -> Device:
        """The kernel, complete."""
        kernel, code, constants = self.kernel, self.code, self.kernel.constants
        extents = [1 if i == self.axis else n for i, n in enumerate(self.shape)]
        count = shape_of(bits_type(self.op.places.type))[self.axis]
        with kernel.blocks(extents) as self.counters:
            with code.loop(constants.get(self.extent), "j") as j:
                key = emit_key(code, kernel.load(self.input, *self._at(j)), descending=False)
                code.store(self._signed(key), self.keys, (D0, [j]))
            with code.loop(constants.get(count), "r") as r:
                position = self._position(self._inside(kernel.load(self.places, *self._at(r))))
                kernel.store(position, self.positions, *self._at(r))
        return kernel.finish(self.op, "chooses the element at a place of rows")

    def _at(self, position: SSAValue) -> tuple[list[AffineExpr], list[SSAValue]]:
        """A place in this block's row."""
        return place_along(self.counters, self.axis, position)

    def _number(self, value: int, type: IntegerType) -> SSAValue:
        return emit_constant(self.code.builder, value, type)

    def _signed(self, key: SSAValue) -> SSAValue:
        """A key as a signed integer in the same order: not all CPUs compare vectors of unsigned ones."""
        lowest = self._number(-1 << (self.key_type.width.data - 1), self.key_type)
        return self.code.insert(arith.XOrIOp(key, lowest))

    def _inside(self, place: SSAValue) -> SSAValue:
        """A place, or the nearest that there is, as wide as a key."""
        code, last = self.code, self.kernel.constants.get(self.extent + -1)
        place = code.insert(arith.MaxSIOp(place, self._number(0, i64)))
        place = code.insert(arith.MinSIOp(place, code.insert(arith.IndexCastOp(last, i64))))
        if self.key_type != i64:
            place = code.insert(arith.TruncIOp(place, self.key_type))
        return place

    def _position(self, place: SSAValue) -> SSAValue:
        """Where the element at a place of the order stands."""
        code, extent = self.code, self.kernel.constants.get(self.extent)

        def below(limit: SSAValue) -> SSAValue:
            return self._count(extent, "slt", self._signed(limit))

        key = self._largest(self.key_type, self.key_type.width.data, below, place)
        left = code.insert(arith.SubiOp(place, below(key)), "left")

        def equal_before(limit: SSAValue) -> SSAValue:
            end = code.insert(arith.IndexCastOp(limit, INDEX))
            return self._count(code.smaller(end, extent), "eq", self._signed(key))

        bits = self.extent.bit_length() if isinstance(self.extent, int) else MAX_SIZE.bit_length()
        return self._largest(i64, bits, equal_before, left)

    def _largest(
        self, type: IntegerType, bits: int, count: Callable[[SSAValue], SSAValue], most: SSAValue
    ) -> SSAValue:
        """The largest number of so many bits whose count, which grows with it, is not above `most`."""
        code, zero = self.code, self._number(0, type)
        first = self._number(1 << (bits - 1), type)
        body, loop = code.sweep(self.kernel.constants.get(bits), "step", [first, zero])
        with code.into(body):
            _, bit, low = body.args
            high = code.insert(arith.OrIOp(low, bit))
            fits = code.insert(arith.CmpiOp(count(high), most, "ule"))
            next_bit = code.insert(arith.ShRUIOp(bit, self._number(1, type)))
            body.add_op(scf.YieldOp(next_bit, code.insert(arith.SelectOp(fits, high, low))))
        return loop.results[1]

    def _count(self, end: SSAValue, how: str, limit: SSAValue) -> SSAValue:
        """How many of the first keys are below a limit, or equal to it; as wide as they are."""
        code, type = self.code, self.key_type
        body, loop = code.sweep(end, "j", [self._number(0, type)])
        with code.into(body):
            j, count = body.args
            key = code.load(self.keys, (D0, [j]))
            holds = code.insert(arith.CmpiOp(key, limit, how))
            one = code.insert(arith.ExtUIOp(holds, type))
            body.add_op(scf.YieldOp(code.insert(arith.AddiOp(count, one))))
        return loop.results[0]
