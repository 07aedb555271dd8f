"""`lower-to-cuda`: kernels whose memory, indices and names are those of C++.

    kernel.func @k(%x: memref<4x8xf32>, %y: memref<4xf32>) blocks(4) threads(1) {
      %i = kernel.block_id
      %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = loop.load %x[%i, %k] : memref<4x8xf32>
        %n = arith.addf %acc, %v : f32
        scf.yield %n : f32
      }
      loop.store %s, %y[%i] : memref<4xf32>
    }
becomes
    cuda.func @k(%x: memref<32xf32>, %y: memref<4xf32>) blocks(4) threads(1) index(i32) {
      %i = kernel.block_id
      %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = loop.load %x[%i * 8 + %k] : memref<32xf32>
        %n = arith.addf %acc, %v : f32
        scf.yield %n : f32
      }
      loop.store %s, %y[%i] : memref<4xf32>
    }

Memory becomes rows of elements and an index the offset in one, in `int` where `choose-index-width` says that
all of them fit, else in `long long`. An operation without a C++ form is an error. Symbols become C++
identifiers. The host function stays as it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, SymbolRefAttr, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from ...analysis.index import UNKNOWN, known_extent, value_range
from ...analysis.sizes import symbols_used
from ...dialects import cuda, kernel
from ...dialects.cuda_names import IDENTIFIER, RESERVED
from ...dialects.cuda_scalars import describe
from ...dialects.inside import ops_in, ops_of
from ...dialects.tensor_map import TensorMapType
from ...errors import DeploError
from ...machine.cuda_scalars import FUNCTIONS
from ..decisions import record
from .cuda_instructions import flat, flat_form


def mangle(symbol: str) -> str:
    """A C++ identifier for a symbol: itself if it is one, else a name made from its hash."""
    free = symbol not in RESERVED and symbol not in FUNCTIONS and "__" not in symbol
    if IDENTIFIER.fullmatch(symbol) and free:
        return symbol
    return f"k_{hashlib.blake2s(symbol.encode(), digest_size=8).hexdigest()}"


def _check_loops(function: kernel.FuncOp) -> None:
    """Raise unless all loops count from 0 to an extent by 1, so that no counter overflows."""
    for op in ops_in(function):
        if isinstance(op, scf.ForOp) and (
            (known_extent(op.lb), known_extent(op.step)) != (0, 1)
            or value_range(op.body.block.args[0]) == UNKNOWN
        ):
            raise DeploError(
                f"lower-to-cuda: the loop at {op.location} must count from 0 to an extent by 1"
            )


def _flatten(function: kernel.FuncOp) -> None:
    """Make memory rows of elements, and indices the offsets in them.

    All indices are computed while the program is as it was: their ranges depend on each other.
    """
    places = _place_shared(function)
    forms = [(op, flat_form(op, places.get(op))) for op in ops_in(function)]
    for op, new in forms:
        if not new:
            continue
        for each in new:
            each.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
        for old, result in zip(op.results, new[-1].results, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        Rewriter.erase_op(op)
    for argument in function.body.block.args:
        Rewriter.replace_value_with_new_type(argument, flat(argument.type))


def _place_shared(function: kernel.FuncOp) -> dict[Operation, int]:
    """Where shared memory lies in what a launch asks for, if it is too much to be declared."""
    places: dict[Operation, int] = {}
    if function.shared_bytes > kernel.MAX_STATIC_SHARED_BYTES:
        end = 0
        for op in ops_of(function, kernel.SharedOp):
            places[op] = -(-end // op.alignment) * op.alignment
            end = places[op] + op.size
    return places


def _erase_unused(entry: Block) -> None:
    """Erase values that nothing reads: numbers of blocks and threads, and what is computed of them."""
    for op in reversed(ops_in(entry)):
        unused = op.results and not any(result.first_use for result in op.results)
        if unused and is_side_effect_free(op):
            op.detach()
            op.erase()


def lower_kernel(function: kernel.FuncOp, name: str) -> cuda.FuncOp:
    """The C++ form of a kernel, under the symbol `name`."""
    for argument in function.body.block.args:
        if not isinstance(argument.type, MemRefType | TensorMapType):
            raise DeploError(
                f"lower-to-cuda: argument {argument.name_hint or argument.index} of "
                f"@{function.sym_name.data} is {argument.type}; sizes as arguments are not supported yet"
            )
    _check_loops(function)
    sizes = symbols_used(function)
    _flatten(function)
    _erase_unused(function.body.block)
    result = cuda.FuncOp(
        name,
        function.detach_region(0),
        function.blocks.data,
        function.threads.value.data,
        function.index_type or i64,
        sizes,
    )
    result.location = function.location
    result.resident, result.cluster = function.resident, function.cluster
    if missing := cuda.without_form(result):
        listed = ", ".join(dict.fromkeys(f"{describe(op)} at {op.location}" for op in missing))
        raise DeploError(f"lower-to-cuda: C++ has no form for {listed}; lower it before this pass")
    return result


@dataclass(frozen=True)
class LowerToCudaPass(ModulePass):
    """Turn every `kernel.func` into a `cuda.func`."""

    name = "lower-to-cuda"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [o for o in op.body.block.ops if isinstance(o, kernel.FuncOp)]
        names: dict[str, str] = {}
        for function in functions:
            old = function.sym_name.data
            names[old] = mangle(old)
            new = lower_kernel(function, names[old])
            op.body.block.insert_op_before(new, function)
            function.detach()
            function.erase()
            reason = f"indices are {new.index_type}"
            record(self.name, names[old], True, reason, new)
        for launch in ops_of(op, kernel.LaunchOp):
            old = launch.kernel.root_reference.data
            launch.kernel = SymbolRefAttr(names.get(old, old))
