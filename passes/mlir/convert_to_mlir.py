"""`convert-to-mlir`: CPU kernels and the host function in upstream dialects alone.

    func.func @k_neg(%x: memref<2x8xf32>, %y: memref<2x8xf32>,
                     %block_begin: index, %block_end: index, %status: memref<1xi64>)
        attributes {deplo.kernel} {
      scf.for %i = %block_begin to %block_end step %c1 {
        scf.for %j = %c0 to %c8 step %c1 { ... loop.load %x[%i, %j] ... }
      }
    }
    func.func @main(%x: memref<2x8xf32>) -> memref<2x8xf32> {
      %y = kernel.alloc : memref<2x8xf32>
      kernel.launch @k_neg(%x, %y) blocks(2) threads(1) ...

becomes

    func.func @k_neg(%x: memref<2x8xf32>, %y: memref<2x8xf32>) {
      scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
        scf.for %j = %c0 to %c8 step %c1 { ... memref.load %x[%i, %j] ... }
      }
    }
    func.func @program(%x: memref<2x8xf32>, %y: memref<2x8xf32>) {
      func.call @k_neg(%x, %y) ...

What is left is func, scf, memref, arith and math, and `cf.assert` for what a kernel checks as it runs. All
blocks of a kernel run in one call, in parallel where there are several; scratch buffers belong to a block.
The program's results are arguments after its inputs, which the caller has allocated. Where C or MLIR leave
an integer operation undefined, the code around it gives what deplo defines: by zero 0, what does not fit
the smallest integer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from ...analysis.index import constant_of
from ...analysis.plan import buffer_bytes
from ...analysis.sizes import sizes_of
from ...dialects.inside import ops_in
from ...dialects.kernel import AllocOp, AssertOp, CallOp, LaunchOp, LoopOp
from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp, TransposeOp
from ...dialects.scalars import ui8
from ...dialects.schedule import KERNEL_ATTRIBUTE
from ...dialects.sizes import static_extent, static_shape
from ...errors import DeploError
from ..decisions import record
from ..levels import require
from ..lower_loops import IndexConstants
from ..replacing import replace
from .index_arith import IndexArithmetic, Ranges
from .total_integers import make_total

PROGRAM = "program"
"""The name of the host function: C keeps `main` to itself."""

STACK_BYTES = 128 * 1024
"""Scratch buffers up to this size are on the stack."""

ALIGNMENT = 64
"""Bytes that buffers begin at a multiple of: a line of the cache."""


@dataclass(frozen=True)
class ConvertToMlirPass(ModulePass):
    """Needs `scf` kernels without vectors, calls inlined, of constant shapes; leaves upstream dialects."""

    name = "convert-to-mlir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every kernel, then the host function."""
        require(op, "scf", {"host", "mlir"})
        main = SymbolTable.lookup_symbol(op, "main")
        if not isinstance(main, func.FuncOp) or not main.body.blocks:
            raise DeploError("the module has no host function @main; run `lower-tile-to-scf` first")
        if sizes := sizes_of(main):
            reason = f"{', '.join(size.label.data for size in sizes)} may change; export the program without"
            raise DeploError(f"MLIR and C have constant shapes only, and {reason} dynamic shapes")
        blocks: dict[str, int] = {}
        for launch in main.walk():
            if isinstance(launch, LaunchOp):
                blocks[launch.kernel.root_reference.data] = static_extent(launch.blocks.data)
            elif isinstance(launch, CallOp):
                raise DeploError(f"the program calls {launch.callee.data}, which MLIR and C cannot")
            elif isinstance(launch, LoopOp):
                raise DeploError("a recurrent network is a loop of launches, which MLIR and C do not have")
        for function in list(op.ops):
            if not isinstance(function, func.FuncOp) or function is main:
                continue
            name = function.sym_name.data
            if KERNEL_ATTRIBUTE not in function.attributes or name not in blocks:
                raise DeploError(f"@{name} is not a kernel that the program launches")
            if blocks[name] and _does_something(function):
                _Kernel(function, blocks[name]).convert()
                record(self.name, name, True, f"runs {blocks[name]} blocks in one call", function)
            else:
                record(self.name, name, False, "there is nothing for it to do", function)
                blocks[name] = 0
                function.detach()
                function.erase()
        _convert_host(main, {name for name, count in blocks.items() if count})


# --------------------------------------------------------------------------- kernels


def _does_something(function: func.FuncOp) -> bool:
    """Whether a kernel stores anything: `canonicalize` drops the loops of one that does not."""
    return any(isinstance(op, StoreOp) for op in ops_in(function.body))


@dataclass
class _Kernel:
    """Converts one kernel in place."""

    function: func.FuncOp
    blocks: int
    ranges: Ranges = field(init=False)
    constants: IndexConstants = field(init=False)

    def convert(self) -> None:
        entry = self.function.body.block
        *buffers, begin, end, status = entry.args
        loop = self._block_loop(begin, end)
        self.constants = IndexConstants(entry)
        self.ranges = Ranges({loop.body.block.args[0]: (0, self.blocks - 1)})
        # What is asked while all operations still stand is known when they are rewritten.
        for op in ops_in(entry):
            for value in (*_index_operands(op), *op.results):
                if isinstance(value.type, IndexType):
                    self.ranges.of(value)
        for op in ops_in(entry):
            self._convert(op)
        self._run_all_blocks(loop)
        _merge_constants(entry)
        for argument in (status, end, begin):
            if argument.first_use is not None:
                raise DeploError(f"@{self.function.sym_name.data} uses its blocks in another way")
            entry.erase_arg(argument)
        self.function.function_type = FunctionType.from_lists([b.type for b in buffers], [])
        self.function.attributes.clear()

    def _block_loop(self, begin: SSAValue, end: SSAValue) -> scf.ForOp:
        """The one loop over the blocks."""
        uses = [use.operation for value in (begin, end) for use in value.uses]
        loop = uses[0] if uses else None
        if not isinstance(loop, scf.ForOp) or uses != [loop, loop] or loop.res:
            raise DeploError(
                f"@{self.function.sym_name.data} is not one loop over blocks, as `lower-tile-to-scf` makes it"
            )
        return loop

    def _convert(self, op: Operation) -> None:
        match op:
            case LoadOp():
                indices = self._indices(op, op.map.data.results, op.indices)
                replace(op, _without_attributes(op, memref.LoadOp.get(op.memref, indices)))
            case StoreOp():
                indices = self._indices(op, op.map.data.results, op.indices)
                replace(
                    op, _without_attributes(op, memref.StoreOp.get(op.value, op.memref, indices))
                )
            case IndexOp():
                (value,) = self._indices(op, op.map.data.results, op.operands_)
                self.ranges.rename(op.result, value)
                _substitute(op, value)
            case TestOp():
                arithmetic = IndexArithmetic(op, self.constants, self.ranges)
                _substitute(op, arithmetic.test(op.exprs, op.operands_))
            case arith.MinSIOp() if (least := self._least(op)) is not None:
                _substitute(op, least)
            case AssertOp():
                replace(op, cf.AssertOp(op.condition, op.message))
            case TransposeOp():
                self._transpose(op)
            case _:
                make_total(op)

    def _indices(
        self, op: Operation, exprs: tuple[AffineExpr, ...], operands: tuple[SSAValue, ...]
    ) -> list[SSAValue]:
        arithmetic = IndexArithmetic(op, self.constants, self.ranges)
        return [arithmetic.index(expr, list(operands)) for expr in exprs]

    def _least(self, op: arith.MinSIOp) -> SSAValue | None:
        """The one of two indices that is never above the other."""
        (low, high), (other_low, other_high) = (self.ranges.of(v) for v in op.operands)
        if high <= other_low:
            return op.lhs
        return op.rhs if other_high <= low else None

    def _transpose(self, op: TransposeOp) -> None:
        """Copy the squares element by element."""
        rows, columns = op.shape
        copy = memref.AllocaOp.get(
            op.result.type.element_type,  # pyright: ignore[reportUnknownMemberType]
            IntegerAttr(ALIGNMENT, i64),
            op.shape,
        )
        place = len(op.origin)
        exprs = list(op.map.data.results)
        exprs[op.dimension] = exprs[op.dimension] + AffineExpr.dimension(place + 1)
        exprs[-1] = exprs[-1] + AffineExpr.dimension(place)
        inner = Block(arg_types=[IndexType()])
        outer = Block(arg_types=[IndexType()])
        (row,), (column,) = outer.args, inner.args
        row.name_hint, column.name_hint = "row", "column"
        load = LoadOp(op.source, exprs, [*op.origin, row, column])
        end = scf.YieldOp()
        inner.add_ops([load, end])
        inner.insert_op_before(memref.StoreOp.get(load.result, copy.memref, [row, column]), end)
        zero, one = self.constants.get(0), self.constants.get(1)
        body = scf.ForOp(zero, self.constants.get(columns), one, [], inner)
        outer.add_ops([body, scf.YieldOp()])
        loop = scf.ForOp(zero, self.constants.get(rows), one, [], outer)
        assert op.parent is not None
        op.parent.insert_ops_before([copy, loop], op)
        copy.memref.name_hint = op.result.name_hint or "turned"
        for value in load.indices:
            self.ranges.of(value)
        self._convert(load)
        op.result.replace_all_uses_with(copy.memref)
        op.detach()
        op.erase()

    def _run_all_blocks(self, loop: scf.ForOp) -> None:
        """Let the function run all blocks; each has scratch buffers of its own."""
        zero, one = self.constants.get(0), self.constants.get(1)
        region = loop.detach_region(loop.body)
        body = region.block
        _move_scratch(self.function.body.block, loop, body)
        end = body.last_op
        assert end is not None and loop.parent is not None
        count = self.constants.get(self.blocks)
        run: Operation
        if self.blocks == 1:
            run = scf.ForOp(zero, count, one, [], region)
        else:
            end.detach()
            end.erase()
            body.add_op(scf.ReduceOp())
            run = scf.ParallelOp([zero], [count], [one], region)
        run.location = loop.location
        loop.parent.insert_op_before(run, loop)
        loop.detach()
        loop.erase()


def _merge_constants(entry: Block) -> None:
    """Let every index constant stand once at the top, as it did before this pass made its own."""
    first: dict[int, SSAValue] = {}
    for op in list(entry.ops):
        if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, IndexType):
            number = constant_of(op.result)
            assert number is not None
            if number in first:
                _substitute(op, first[number])
            else:
                first[number] = op.result


def _index_operands(op: Operation) -> tuple[SSAValue, ...]:
    match op:
        case LoadOp() | StoreOp():
            return tuple(op.indices)
        case IndexOp() | TestOp():
            return tuple(op.operands_)
        case TransposeOp():
            return tuple(op.origin)
        case arith.MinSIOp():
            return tuple(op.operands)
        case _:
            return ()


def _without_attributes(old: Operation, new: Operation) -> Operation:
    """`new`, to take the place of `old`, whose attributes are deplo's own."""
    old.attributes.clear()
    return new


def _substitute(op: Operation, value: SSAValue) -> None:
    (result,) = op.results
    if value.name_hint is None:
        value.name_hint = result.name_hint
    result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _move_scratch(entry: Block, loop: scf.ForOp, body: Block) -> None:
    """Let each block have the scratch buffers that the function had, small ones on its stack.

    `body` is that of the loop over blocks; loops in front of it fill buffers for all of them.
    """
    end, first = body.last_op, body.first_op
    assert end is not None and first is not None
    for op in [each for each in entry.ops if isinstance(each, memref.AllocOp)]:
        frees = [u.operation for u in op.memref.uses if isinstance(u.operation, memref.DeallocOp)]
        for free in frees:
            free.detach()
            free.erase()
        op.detach()
        if op.memref.first_use is None:
            op.erase()
        elif static_extent(buffer_bytes(op.memref.type)) <= STACK_BYTES:
            local = memref.AllocaOp.get(
                op.memref.type.element_type,  # pyright: ignore[reportUnknownMemberType]
                IntegerAttr(ALIGNMENT, i64),
                static_shape(op.memref.type),
            )
            body.insert_op_before(local, first)
            local.memref.name_hint = op.memref.name_hint
            op.memref.replace_all_uses_with(local.memref)
            op.erase()
        else:
            body.insert_op_before(op, first)
            body.insert_op_before(memref.DeallocOp.get(op.memref), end)
    for op in [each for each in entry.ops if isinstance(each, scf.ForOp) and each is not loop]:
        op.detach()
        body.insert_op_before(op, first)


# --------------------------------------------------------------------------- the host function


def _convert_host(main: func.FuncOp, kernels: set[str]) -> None:
    """Call the kernels; the caller allocates results, all else lives from its first launch to its last."""
    entry = main.body.block
    for value in [*entry.args, *(result for op in entry.ops for result in op.results)]:
        Rewriter.replace_value_with_new_type(value, _signless(value.type))
    end = entry.last_op
    assert isinstance(end, func.ReturnOp)
    for position in range(len(end.arguments)):
        value = end.arguments[position]
        result = entry.insert_arg(value.type, len(entry.args))
        if isinstance(value.owner, AllocOp):
            value.replace_all_uses_with(result)
        else:
            result.name_hint = f"{value.name_hint or 'result'}_{position}"
            entry.insert_op_before(memref.CopyOp(value, result), end)
    entry.insert_op_before(func.ReturnOp(), end)
    end.detach()
    end.erase()
    for op in list(entry.ops):
        match op:
            case LaunchOp():
                _convert_launch(op, kernels)
            case AllocOp():
                _convert_buffer(op)
            case _:
                pass
    main.function_type = FunctionType.from_lists(list(entry.arg_types), [])
    main.arg_attrs = None
    main.attributes.clear()
    main.sym_name = type(main.sym_name)(PROGRAM)


def _signless(type: Attribute) -> Attribute:
    """Memory as the kernels see it, and as upstream's dialects know it: ui8 is i8."""
    if isinstance(type, MemRefType) and type.element_type == ui8:
        return MemRefType(i8, type.shape, type.layout, type.memory_space)
    return type


def _convert_launch(op: LaunchOp, kernels: set[str]) -> None:
    if op.kernel.root_reference.data in kernels:
        replace(op, func.CallOp(op.kernel, list(op.arguments), []))
    else:
        op.detach()
        op.erase()


def _convert_buffer(op: AllocOp) -> None:
    block = op.parent
    if block is not None and (users := [use.operation for use in op.result.uses]):
        alloc = memref.AllocOp([], [], op.result.type, IntegerAttr(ALIGNMENT, i64))
        block.insert_op_before(alloc, op)
        alloc.memref.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(alloc.memref)
        last = max(users, key=block.get_operation_index)
        block.insert_op_after(memref.DeallocOp.get(alloc.memref), last)
    op.detach()
    op.erase()
