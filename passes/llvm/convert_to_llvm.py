"""`convert-to-llvm`: kernels in control-flow form become `llvm` functions; the host's `main` stays.

    func.func @k(%x: memref<8xf32>, ..., %status: memref<1xi64>) attributes {deplo.kernel} {
      ...
    ^bb2:
      %v = loop.load %x[%i] : memref<8xf32>
      %w = arith.addf %v, %v : f32
      cf.br ^bb1(%next : index)

becomes

    llvm.func @k(%x: !llvm.ptr {llvm.noalias}, ..., %status: !llvm.ptr {llvm.noalias}) {
      ...
    ^bb2:
      %0 = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %0 : !llvm.ptr -> f32
      %w = llvm.fadd %v, %v {fastmathFlags = #llvm.fastmath<contract>} : f32
      llvm.br ^bb1(%next : i64)

An addition and a multiplication may fuse to one operation (`contract`), a subtraction may not; nothing
else about floats is relaxed. A `kernel.assert` that fails stores its number, counted from 1, to `%status` and
returns; the messages stay as the function's attribute `deplo.messages`. No pointer of a kernel
aliases another: a plan never gives a launch an output that shares memory with its other arguments.

The dynamic sizes that a kernel uses become arguments after its buffers; its attribute `deplo.sizes` says
which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, llvm, memref, vector
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.index import Range
from ...analysis.plan import MESSAGES_ATTRIBUTE, SIZES_ATTRIBUTE
from ...analysis.sizes import symbols_used
from ...dialects.amx import TileAccess, TileLoadOp, TileStoreOp
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import AssertOp
from ...dialects.loop import IndexOp, LoadOp, PrefetchOp, StoreOp, TestOp, TransposeOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import KERNEL_ATTRIBUTE, SCHEDULE_ATTRIBUTE
from ...dialects.sizes import Extent, extent_expr, shape_of
from ...errors import DeploError
from ..decisions import record
from ..replacing import builder_at
from .accesses import (
    POINTER,
    IndexEmitter,
    Known,
    compare,
    constant,
    convert_type,
    element_address,
    emit_load,
    emit_store,
    store,
)
from .llvm_functions import (
    RANGE_ARGUMENTS,
    check_arguments,
    declaration,
    extremum_declaration,
    kept_declarations,
)
from .matrix_instructions import TILE_LOWERINGS, lower_tile_access
from .nonnegative import NonNegative
from .scalars import EXTREMA, LOWERINGS
from .transposes import transpose_squares
from .vectors import VECTOR_LOWERINGS, allocate, declarations, load_masked, vector_type

PLACELESS = LOWERINGS | VECTOR_LOWERINGS | TILE_LOWERINGS
"""What becomes of operations that name no place in an array."""


@dataclass(frozen=True)
class ConvertToLlvmPass(ModulePass):
    """Needs kernels after `expand-math` and `loops-to-branches`; leaves no other functions."""

    name = "convert-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every kernel and every external function that not only others call."""
        extrema = ops_of(op, *EXTREMA)
        declared = [f for each in extrema if (f := extremum_declaration(each)) is not None]
        if ops_of(op, memref.AllocOp):
            declared += declarations()
        if declared:
            by_name = {function.sym_name.data: function for function in declared}
            first = op.body.block.first_op
            assert first is not None
            op.body.block.insert_ops_before(list(by_name.values()), first)
        functions = [each for each in op.ops if isinstance(each, func.FuncOp)]
        kept = kept_declarations(functions)
        for function in functions:
            name = function.sym_name.data
            if not function.body.blocks:
                if name not in kept:
                    _replace(function, declaration(function))
            elif KERNEL_ATTRIBUTE in function.attributes:
                check_arguments(function)
                _replace(function, _KernelConversion(function).run())
                record(self.name, name, True, "converted", function)
            elif name != "main":
                reason = f"not a kernel: has no attribute `{KERNEL_ATTRIBUTE}`"
                record(self.name, name, False, reason, function)


def _replace(old: Operation, new: Operation) -> None:
    block = old.parent
    assert block is not None
    new.location = old.location
    block.insert_op_before(new, old)
    old.detach()
    old.erase()


@dataclass
class _KernelConversion:
    """Converts one kernel's body in place, then wraps it in an `llvm.func`."""

    function: func.FuncOp
    ranges: dict[SSAValue, Range] = field(default_factory=dict[SSAValue, Range])
    buffers: dict[SSAValue, MemRefType] = field(default_factory=dict[SSAValue, MemRefType])
    messages: list[str] = field(default_factory=list[str])
    sizes: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    known: dict[Known, SSAValue] = field(default_factory=dict[Known, SSAValue])
    """What index arithmetic has computed in the block."""
    body: Region = field(default_factory=Region)

    def run(self) -> llvm.FuncOp:
        symbols = symbols_used(self.function)
        self.body = body = self.function.detach_region(self.function.body)
        self._note_ranges(body)
        for symbol in symbols:
            entry = body.blocks[0]
            self.sizes[symbol] = entry.insert_arg(i64, len(entry.args) - RANGE_ARGUMENTS)
            self.sizes[symbol].name_hint = f"s{symbol}"
        for block in list(body.blocks):
            for argument in list(block.args):
                self._convert_argument(argument)
        for block in list(body.blocks):
            self.known.clear()
            for op in list(block.ops):
                self._convert(op)
        return self._wrap(body)

    def _note_ranges(self, body: Region) -> None:
        """Ask about the operands of all index expressions while their definitions still stand."""
        proof = NonNegative(body)
        for op in ops_in(body):
            operands = _index_operands(op)
            self.ranges.update((value, proof.range_of(value)) for value in operands)

    def _convert_argument(self, argument: BlockArgument) -> None:
        old_type = argument.type
        new_type = convert_type(old_type)
        if new_type == old_type:
            return
        known = self.ranges.pop(argument, None)
        new = Rewriter.replace_value_with_new_type(argument, new_type)
        if known is not None:
            self.ranges[new] = known
        if isinstance(old_type, MemRefType):
            self.buffers[new] = cast(MemRefType, old_type)

    def _convert(self, op: Operation) -> None:
        builder = builder_at(op)
        lowering = PLACELESS.get(type(op))
        if lowering is None or (type(op) in _VECTORS and _is_of_array(op)):
            results = self._convert_access(builder, op)
        else:
            results = list(lowering(builder, op))
        self._replace_results(op, results)

    def _convert_access(self, builder: Builder, op: Operation) -> list[SSAValue]:
        """Convert an operation that asks for values of indices."""
        match op:
            case LoadOp():
                emitter = self._emitter(builder, op.indices)
                buffer = self._buffer(op.memref)
                address = emitter.address(op.memref, buffer, op.map.data.results)
                return [emit_load(builder, address, buffer.element_type, op.attributes)]
            case StoreOp():
                emitter = self._emitter(builder, op.indices)
                buffer = self._buffer(op.memref)
                address = emitter.address(op.memref, buffer, op.map.data.results)
                emit_store(builder, op.value, address, buffer.element_type, op.attributes)
            case IndexOp():
                emitter = self._emitter(builder, op.operands_)
                return [emitter.emit(op.map.data.results[0])]
            case TestOp():
                return [self._emitter(builder, op.operands_).test(op.exprs)]
            case vector.LoadOp() | vector.MaskedLoadOp():
                return [self._load_vector(builder, op)]
            case vector.StoreOp():
                return self._store_vector(builder, op)
            case PrefetchOp():
                self._prefetch(builder, op)
            case TileAccess():
                self._access_tile(builder, op)
            case AssertOp():
                self._convert_assert(builder, op)
            case TransposeOp():
                return self._transpose(builder, op)
            case memref.AllocOp():
                return self._allocate(builder, op)
            case _:
                raise _not_lowered(op)
        return []

    def _prefetch(self, builder: Builder, op: PrefetchOp) -> None:
        """Ask for a line that is to be read, in all caches."""
        buffer = self._buffer(op.memref)
        emitter = self._emitter(builder, op.indices)
        # It may lie past the end of the array.
        here = emitter.address(op.memref, buffer, op.map.data.results, inbounds=False)
        ahead = constant(builder, op.ahead.value.data)
        there = element_address(builder, here, ahead, buffer.element_type, inbounds=False)
        to_read, all_caches, data = (constant(builder, n, i32) for n in (0, 3, 1))
        arguments = [there, to_read, all_caches, data]
        builder.insert(llvm.CallIntrinsicOp("llvm.prefetch.p0", arguments, []))

    def _access_tile(self, builder: Builder, op: TileAccess) -> None:
        """Read or write the rows of a matrix tile."""
        emitter, buffer = self._emitter(builder, op.indices), self._buffer(op.memref)
        address = emitter.address(op.memref, buffer, op.map.data.results)
        lower_tile_access(builder, op, address, self._element_bytes(op.memref))

    def _load_vector(self, builder: Builder, op: vector.LoadOp | vector.MaskedLoadOp) -> SSAValue:
        """Read a vector, which may begin at any element: under a mask, in front of the array even."""
        kind, alignment = vector_type(op.result.type), self._element_bytes(op.base)
        address = self._vector_address(builder, op)
        if isinstance(op, vector.MaskedLoadOp):
            return load_masked(builder, op, address, alignment)
        return builder.insert(llvm.LoadOp(address, kind, alignment)).dereferenced_value

    def _store_vector(self, builder: Builder, op: vector.StoreOp) -> list[SSAValue]:
        """Write a vector, which may begin at any element."""
        address = self._vector_address(builder, op)
        store(builder, op.vector, address, self._element_bytes(op.base))
        return []

    def _vector_address(
        self, builder: Builder, op: vector.LoadOp | vector.MaskedLoadOp | vector.StoreOp
    ) -> SSAValue:
        emitter, buffer = self._emitter(builder, tuple(op.indices)), self._buffer(op.base)
        dims = [AffineExpr.dimension(i) for i in range(len(op.indices))]
        inbounds = not isinstance(op, vector.MaskedLoadOp)
        return emitter.address(op.base, buffer, dims, inbounds=inbounds)

    def _element_bytes(self, array: SSAValue) -> int:
        return storage_bytes(self._buffer(array).element_type)

    def _transpose(self, builder: Builder, op: TransposeOp) -> list[SSAValue]:
        emitter = self._emitter(builder, op.origin)
        source = self._buffer(op.source)
        first = emitter.address(op.source, source, op.map.data.results)
        distance: Extent = 1
        for extent in shape_of(source)[op.dimension + 1 :]:
            distance *= extent
        pitch = emitter.emit(extent_expr(distance))
        entry = self.body.blocks[0]
        made = transpose_squares(builder, entry, first, pitch, source.element_type, op.shape)
        self.buffers[made] = op.result.type
        return [made]

    def _replace_results(self, op: Operation, results: list[SSAValue]) -> None:
        for old, new in zip(op.results, results, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            if old in self.ranges:
                self.ranges[new] = self.ranges[old]
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()

    def _emitter(self, builder: Builder, operands: tuple[SSAValue, ...]) -> IndexEmitter:
        ranges = [self.ranges[value] for value in operands]
        return IndexEmitter(builder, operands, ranges, self.sizes, self.known)

    def _buffer(self, value: SSAValue) -> MemRefType:
        if value not in self.buffers:
            raise DeploError("reads or writes memory that is not an argument of the kernel")
        return self.buffers[value]

    def _allocate(self, builder: Builder, op: memref.AllocOp) -> list[SSAValue]:
        """Allocate a scratch buffer; the program stops if there is no memory."""
        pointer = allocate(builder, op)
        address = builder.insert(llvm.PtrToIntOp(pointer)).output
        has = compare(builder, address, "ne", constant(builder, 0))
        self._check(builder, op, has, "out of memory: no room for a scratch buffer")
        self.buffers[pointer] = op.memref.type
        return [pointer]

    def _convert_assert(self, builder: Builder, op: AssertOp) -> None:
        self._check(builder, op, op.condition, op.message.data)

    def _check(self, builder: Builder, op: Operation, condition: SSAValue, message: str) -> None:
        """Split the block after `op`, and leave through a block that stores the message's number."""
        if message not in self.messages:
            self.messages.append(message)
        here = op.parent
        assert here is not None
        region, following = here.parent, op.next_op
        assert region is not None
        assert following is not None
        passed = here.split_before(following)
        failed = Block()
        region.add_block(failed)
        at_end = Builder(InsertPoint.at_end(failed))
        number = constant(at_end, 1 + self.messages.index(message))
        at_end.insert(llvm.StoreOp(number, region.blocks[0].args[-1]))
        at_end.insert(llvm.ReturnOp())
        builder.insert(llvm.CondBrOp(condition, passed, [], failed, []))

    def _wrap(self, body: Region) -> llvm.FuncOp:
        inputs = list(body.blocks[0].arg_types)
        function = llvm.FuncOp(
            self.function.sym_name,
            llvm.LLVMFunctionType(inputs, llvm.LLVMVoidType()),
            linkage=llvm.LinkageAttr("external"),
            body=body,
            other_props={"arg_attrs": ArrayAttr([_argument_attributes(t) for t in inputs])},
        )
        function.attributes[KERNEL_ATTRIBUTE] = UnitAttr()
        if (schedule := self.function.attributes.get(SCHEDULE_ATTRIBUTE)) is not None:
            function.attributes[SCHEDULE_ATTRIBUTE] = schedule
        if self.sizes:
            function.attributes[SIZES_ATTRIBUTE] = ArrayAttr([IntAttr(s) for s in self.sizes])
        if self.messages:
            listed = ArrayAttr([StringAttr(message) for message in self.messages])
            function.attributes[MESSAGES_ATTRIBUTE] = listed
        return function


_VECTORS = (vector.LoadOp, vector.StoreOp)


def _is_of_array(op: Operation) -> bool:
    """Whether a vector is of an argument of the kernel, or of a buffer of several axes."""
    return isinstance(op, _VECTORS) and (len(op.indices) > 1 or isinstance(op.base, BlockArgument))


_INDICES: dict[type[Operation], str] = {
    **dict.fromkeys((LoadOp, StoreOp, PrefetchOp, TileLoadOp, TileStoreOp), "indices"),
    **dict.fromkeys((*_VECTORS, vector.MaskedLoadOp), "indices"),
    **dict.fromkeys((IndexOp, TestOp), "operands_"),
    TransposeOp: "origin",
}
"""Operation class -> the name of its operands that are indices."""


def _index_operands(op: Operation) -> Sequence[SSAValue]:
    if type(op) not in _INDICES or (type(op) in _VECTORS and not _is_of_array(op)):
        return ()
    return getattr(op, _INDICES[type(op)])


def _not_lowered(op: Operation) -> DeploError:
    if op.regions:
        return DeploError(f"{op.name} has a region; run `loops-to-branches` first")
    hint = "run `expand-math` first" if op.name.startswith("math.") else "it has no lowering"
    return DeploError(f"{op.name} cannot become an `llvm` operation: {hint}")


def _argument_attributes(type: Attribute) -> DictionaryAttr:
    return DictionaryAttr({"llvm.noalias": UnitAttr()} if type == POINTER else {})
