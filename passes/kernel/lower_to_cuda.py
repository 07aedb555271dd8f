"""`lower-to-cuda`: kernels with the memory, the variables and the control flow of C++.

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
      %zero = arith.constant 0.0 : f32
      %s = cuda.variable %zero : f32
      cuda.for %k = 0 to 8 {
        %v = loop.load %x[%i * 8 + %k] : memref<32xf32>
        %n = arith.addf %s, %v : f32
        cuda.assign %s, %n : f32
      }
      loop.store %s, %y[%i] : memref<4xf32>
    }

Loops and branches become those of C++, with variables for what they hand on. Operations on scalars stay;
one without a C++ form is an error. Memory becomes rows of elements and an index the offset in one, in `int`
where `choose-index-width` says that all of them fit, else in `long long`. Symbols become C++ identifiers.
The host function stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from ...analysis.index import known_extent, operand_ranges, value_range
from ...analysis.sizes import symbols_used
from ...dialects import cuda, kernel, loop
from ...dialects.cuda_scalars import describe
from ...dialects.cuda_values import IDENTIFIER, RESERVED
from ...dialects.inside import ops_in
from ...dialects.sizes import Extent, extent_expr
from ...dialects.tensor_map import TensorMapType
from ...errors import DeploError
from ...index.ranges import is_bounded, numbers
from ...machine.cuda_scalars import FUNCTIONS
from ..decisions import record
from .cuda_indices import nonnegative
from .cuda_instructions import flat, lower_instruction, lower_product, lower_wait


def mangle(symbol: str) -> str:
    """A C++ identifier for a symbol: itself if it is one, else a name made from its hash."""
    free = symbol not in RESERVED and symbol not in FUNCTIONS and "__" not in symbol
    if IDENTIFIER.fullmatch(symbol) and free:
        return symbol
    return f"k_{hashlib.blake2s(symbol.encode(), digest_size=8).hexdigest()}"


@dataclass
class _Lowering:
    """Translates one kernel.

    `values` maps its SSA values to those of the C++ function, `places` says where its shared memory lies in
    what the launch asks for.
    """

    builder: Builder
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    places: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def block(self, block: Block, target: Block, assign: Sequence[SSAValue] = ()) -> None:
        """Translate a block's operations to the end of `target`; its yields assign to variables."""
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(target))
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                self.assign(assign, [self.values[v] for v in op.arguments])
            else:
                self.translate(op)
        self.builder = outer

    def assign(self, variables: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Assign in parallel: a value that is itself one of the variables is copied first."""
        changed = [
            (variable, value)
            for variable, value in zip(variables, values, strict=True)
            if variable is not value
        ]
        copies = {
            value: self.builder.insert(cuda.VariableOp(value.type, value)).result
            for _, value in changed
            if value in variables and len(variables) > 1
        }
        for variable, value in changed:
            self.builder.insert(cuda.AssignOp(variable, copies.get(value, value)))

    def translate(self, op: Operation) -> None:
        """Translate one operation."""
        block = self.builder.insertion_point.block
        last = block.last_op
        if (handler := _HANDLERS.get(type(op))) is not None:
            handler(self, op)
        elif isinstance(op, _AS_THEY_ARE) or op.dialect_name() == kernel.Kernel.name:
            lower_instruction(self, op)
        else:
            self.builder.insert(op.clone(self.values))
        new = block.first_op if last is None else last.next_op
        while new is not None:
            new.location = op.location
            new = new.next_op

    def simple(self, op: Operation, new: Operation) -> None:
        """Insert `new` in place of `op`, with its names."""
        new.location = op.location
        self.builder.insert(new)
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            self.values[old] = result


def _end_of(op: scf.ForOp) -> tuple[SSAValue | None, Extent | None]:
    """The index at which a loop ends, if it is computed, and the extent that it has at most."""
    if (extent := known_extent(op.ub)) is not None:
        return None, extent
    if isinstance(least := op.ub.owner, arith.MinSIOp):
        return op.ub, known_extent(least.rhs)
    low, high = numbers(value_range(op.ub))
    return op.ub, high if is_bounded(low, high) else None


def _lower_for(state: _Lowering, op: scf.ForOp) -> None:
    (first, step), (end, extent) = (known_extent(v) for v in (op.lb, op.step)), _end_of(op)
    if first != 0 or extent is None or step != 1:
        raise DeploError(
            f"lower-to-cuda: the loop at {op.location} must count from 0 to an extent by 1"
        )
    variables: list[SSAValue] = []
    for initial, argument, result in zip(op.iter_args, op.body.block.args[1:], op.res, strict=True):
        variable = state.builder.insert(cuda.VariableOp(result.type, state.values[initial]))
        variable.result.name_hint = result.name_hint
        variables.append(variable.result)
        state.values[argument] = state.values[result] = variable.result
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = op.body.block.args[0].name_hint
    state.values[op.body.block.args[0]] = body.args[0]
    limit = None if end is None else state.values[end]
    hints = {hint: hint in op.attributes for hint in ("unroll", "rolled")}
    new = cuda.ForOp(extent, Region(body), **hints, end=limit)
    new.location = op.location
    state.builder.insert(new)
    state.block(op.body.block, body, variables)


def _lower_if(state: _Lowering, op: scf.IfOp) -> None:
    variables: list[SSAValue] = []
    for result in op.output:
        variable = state.builder.insert(cuda.VariableOp(result.type))
        variable.result.name_hint = result.name_hint
        variables.append(variable.result)
        state.values[result] = variable.result
    then, otherwise = Block(), Block()
    has_else = bool(op.false_region.blocks) and len(list(op.false_region.block.ops)) > 1
    has_else = has_else or bool(op.output)
    new = cuda.IfOp(state.values[op.cond], Region(then), Region(otherwise) if has_else else None)
    new.location = op.location
    state.builder.insert(new)
    state.block(op.true_region.block, then, variables)
    if has_else:
        state.block(op.false_region.block, otherwise, variables)


def _lower_least(state: _Lowering, op: arith.MinSIOp) -> None:
    """A computed end of a loop, at most an extent."""
    most = known_extent(op.rhs)
    if most is None or not isinstance(op.result.type, IndexType):
        state.builder.insert(op.clone(state.values))
        return
    index = state.values[op.lhs]
    end = state.builder.insert(loop.IndexOp(extent_expr(most), []))
    expr = extent_expr(most) + AffineExpr.dimension(0) * -1
    less = state.builder.insert(loop.TestOp([expr], [index]))
    state.simple(op, arith.SelectOp(less.result, index, end.result))


def _lower_index(state: _Lowering, op: loop.IndexOp) -> None:
    expr = nonnegative(op.map.data.results[0], operand_ranges(op.operands_))
    state.simple(op, loop.IndexOp(expr, [state.values[v] for v in op.operands_]))


def _lower_test(state: _Lowering, op: loop.TestOp) -> None:
    exprs = [nonnegative(e, operand_ranges(op.operands_)) for e in op.exprs]
    state.simple(op, loop.TestOp(exprs, [state.values[v] for v in op.operands_]))


def _lower_shared(state: _Lowering, op: kernel.SharedOp) -> None:
    align, memref = None if op.align is None else op.alignment, flat(op.result.type)
    assert isinstance(memref, MemRefType)
    state.simple(op, kernel.SharedOp(memref, align, state.places.get(op)))


_AS_THEY_ARE = (loop.LoadOp, loop.StoreOp, loop.RegistersOp)

_HANDLERS: dict[type[Operation], Callable[..., None]] = {
    arith.MinSIOp: _lower_least,
    scf.ForOp: _lower_for,
    scf.IfOp: _lower_if,
    loop.IndexOp: _lower_index,
    loop.TestOp: _lower_test,
    kernel.SharedOp: _lower_shared,
    kernel.WgmmaOp: lower_product,
    kernel.WgmmaWaitOp: lower_wait,
}


def _place_shared(function: kernel.FuncOp) -> dict[Operation, int]:
    """Where shared memory lies in what a launch asks for, if it is too much to be declared."""
    places: dict[Operation, int] = {}
    if function.shared_bytes > kernel.MAX_STATIC_SHARED_BYTES:
        end = 0
        for op in [o for o in ops_in(function) if isinstance(o, kernel.SharedOp)]:
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
    entry = Block()
    state = _Lowering(Builder(InsertPoint.at_end(entry)), places=_place_shared(function))
    for argument in function.body.block.args:
        type = flat(argument.type)
        if not isinstance(type, MemRefType | TensorMapType):
            raise DeploError(
                f"lower-to-cuda: argument {argument.name_hint or argument.index} of "
                f"@{function.sym_name.data} is {type}; sizes as arguments are not supported yet"
            )
        new = entry.insert_arg(type, len(entry.args))
        new.name_hint = argument.name_hint
        state.values[argument] = new
    state.block(function.body.block, entry)
    _erase_unused(entry)
    result = cuda.FuncOp(
        name,
        Region(entry),
        function.blocks.data,
        function.threads.value.data,
        function.index_type or i64,
        symbols_used(function),
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
        for launch in [o for o in ops_in(op) if isinstance(o, kernel.LaunchOp)]:
            old = launch.kernel.root_reference.data
            launch.kernel = SymbolRefAttr(names.get(old, old))
