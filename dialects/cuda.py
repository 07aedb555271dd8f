"""The `cuda` dialect: kernels as they are printed in CUDA C++.

    cuda.func @k_sum(%x: memref<65536xf32>, %y: memref<32xf32>) blocks(32) threads(256) index(i32) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2048 = arith.constant 2048 : index
      %row = kernel.block_id
      %sum = scf.for %k = %c0 to %c2048 step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = loop.load %x[%row * 2048 + %k] : memref<65536xf32>
        %s = arith.addf %acc, %v : f32
        scf.yield %s : f32
      }
      loop.store %sum, %y[%row] : memref<32xf32>
    }

What C++ adds is the function and what its memory is: one row of elements, so that an index is the offset in
it. Inside are operations of `arith`, `math`, `scf`, `loop` and `kernel`, each an expression, a declaration or
a statement of C++; one without a C++ form is refused. What a loop or a branch hands on is a variable. Types
are C++'s: i32 is `int`, i64 `long long`, i1 `bool`, `index` whichever of the first two the function says; f16
and bf16 values are their bits, which only loads, stores, selects and conversions touch.
"""

from __future__ import annotations

from itertools import pairwise

from xdsl.dialects import scf
from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType
from xdsl.ir import BlockArgument, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .cuda_names import IDENTIFIER
from .cuda_scalars import describe, form_of, is_number
from .inside import ops_in, ops_of
from .kernel_device import DeviceFunction
from .kernel_shared import SharedOp
from .loop import IndexOp, RegistersOp, TestOp
from .loop_access import LoadOp, StoreOp, in_registers
from .mbarriers import MbarriersOp
from .scalars import verify_bits
from .tensor_map import TensorMapType

# --------------------------------------------------------------------------- functions


@irdl_op_definition
class FuncOp(DeviceFunction):
    """A `__global__` function with its launch bounds; see the dialect's example.

    `resident(2)` after the threads is the second launch bound: blocks that a multiprocessor must have room
    for; `cluster(2)` are its `__cluster_dims__`. `sizes(s0, s2)` after the index type are dynamic sizes it
    uses: arguments behind the pointers.
    """

    name = "cuda.func"

    @property
    def parts(self) -> list[SharedOp]:
        """The parts of the shared memory that its launch asks for."""
        return [op for op in ops_in(self) if isinstance(op, SharedOp) and op.offset is not None]

    @property
    def launch_shared_bytes(self) -> int:
        """Bytes of shared memory that its launch asks for."""
        return max((op.place[1] for op in self.parts if op.place is not None), default=0)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block, declared or asked for."""
        declared = (
            op.size
            for op in ops_in(self)
            if isinstance(op, MbarriersOp) or (isinstance(op, SharedOp) and op.offset is None)
        )
        return self.launch_shared_bytes + sum(declared)

    def verify_(self) -> None:
        self.verify_launch()
        if self.index_type is None:
            raise VerifyException("says whether its indices are i32 or i64")
        if not IDENTIFIER.fullmatch(self.sym_name.data):
            raise VerifyException(f"{self.sym_name.data!r} is not a C++ identifier")
        for argument in self.body.block.args:
            if not isinstance(argument.type, MemRefType | TensorMapType):
                raise VerifyException(f"arguments are memrefs or tensor maps, got {argument.type}")
        self._verify_memory()
        if any({"unroll", "rolled"} <= op.attributes.keys() for op in ops_in(self)):
            raise VerifyException("a loop is to be unrolled, or it is not")
        self._verify_registers()
        if missing := without_form(self):
            listed = ", ".join(dict.fromkeys(describe(op) for op in missing))
            raise VerifyException(f"C++ has no form for {listed}")
        places = sorted(op.place for op in self.parts if op.place is not None)
        for (first, end), (begin, _) in pairwise(places):
            if begin < end:
                raise VerifyException(
                    f"shared memory at {first} ends at {end}, that at {begin} begins before"
                )

    def _verify_registers(self) -> None:
        """Raise unless every place in an array of registers is a number once all loops are unrolled."""
        for op in ops_of(self, LoadOp, StoreOp):
            if in_registers(op.memref) and not all(map(_is_unrolled, op.indices)):
                name = op.memref.name_hint or "an array"
                raise VerifyException(
                    f"registers have no addresses: places in {name} are numbers, or follow from counters "
                    "of loops that are unrolled"
                )

    def _verify_memory(self) -> None:
        """Raise unless memory is rows of elements, and scalars are what memory may hold."""
        results = [result for op in ops_in(self) for result in op.results]
        for value in (*self.body.block.args, *results):
            if isinstance(value.type, MemRefType):
                verify_bits(value.type.element_type)
                if value.type.get_num_dims() != 1:
                    raise VerifyException(f"memory is one row of elements, got {value.type}")
            elif isinstance(value.type, IntegerType | AnyFloat):
                verify_bits(value.type)


def _is_unrolled(value: SSAValue) -> bool:
    """Whether a value is the counter of a loop that is unrolled."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(loop, scf.ForOp) and "unroll" in loop.attributes


def without_form(function: FuncOp) -> list[Operation]:
    """The operations of a function that C++ cannot say."""
    return [
        op
        for op in ops_in(function)
        if op.dialect_name() not in ("cuda", "kernel")
        and not isinstance(op, _STATEMENTS)
        and not is_number(op)
        and form_of(op) is None
    ]


_STATEMENTS = (LoadOp, StoreOp, RegistersOp, IndexOp, TestOp, scf.ForOp, scf.IfOp, scf.YieldOp)

Cuda = Dialect("cuda", [FuncOp])
