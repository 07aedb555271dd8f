"""`lift-to-loops`: each tensor operation becomes a kernel of its own.

    %s = tensor_ir.reduce add(%x) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
becomes
    %s = loop.kernel @k_s(%x) : (tensor<4x8xf32>) -> tensor<4x1xf32> {
    ^bb0(%x: memref<4x8xf32>, %s: memref<4x1xf32>):
      loop.for %i = 0 to 4 {
        %acc = loop.for %j = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %x[%i, %j] : memref<4x8xf32>
          loop.yield %v : f32
        }
        loop.store %acc, %s[%i, 0] : memref<4x1xf32>
      }
    }

Needs `tensor_ir`; leaves `loop` kernels that each store their output at its identity
index. Results of the program are memory of their own: one that is an argument, or is returned twice, is
copied. Axes of extent 1 get no loop. Constants are written where they are read. From here on loops over
dynamic extents run at least once: extents that sizes of at least 1 could make 0 are listed in the attribute
`sym.positive` of `@main`, and the runtime checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.launches import kernels_of
from ...analysis.sizes import require_positive
from ...dialects.index import ZERO, condition_exprs
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import (
    CheckedIndexOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ...dialects.scalars import Combiner, bits_of, is_bool, ui8
from ...dialects.sizes import Extent, extent_expr, shape_of
from ...dialects.syntax import tensor_type
from ...dialects.tensor_ir import (
    CastOp,
    ConstantOp,
    ElementwiseOp,
    IndexMapOp,
    IotaOp,
    ReduceOp,
    SizeOp,
)
from ...dialects.tensor_ir_indexed import GatherOp
from ...index.affine import replace_dims
from ..decisions import record
from ..symbol_names import FreshNames
from .scalar_code import emit_cast, emit_constant_attr, emit_function

TENSOR_OPS = (ElementwiseOp, ReduceOp, IndexMapOp, CastOp, ConstantOp, SizeOp, IotaOp, GatherOp)

_AXIS_NAMES = "ijklmn"


def axis_name(axis: int) -> str:
    """The name of the counter of an output axis: i, j, k, ..."""
    return _AXIS_NAMES[axis] if axis < len(_AXIS_NAMES) else f"i{axis}"


@dataclass
class Nest:
    """A kernel under construction: the open loops and where the next operation goes."""

    builder: Builder
    counters: list[SSAValue]
    buffers: dict[SSAValue, SSAValue]

    def open_free(self, extent: Extent, name: str) -> AffineExpr:
        """Open a free loop unless its extent is 1; gives the counter as an index expression."""
        if extent == 1:
            return ZERO
        loop = self.builder.insert(ForOp(extent, Region(Block(arg_types=[IndexType()]))))
        assert loop.body.block.last_op is not None
        self.builder = Builder(InsertPoint.before(loop.body.block.last_op))
        return self._count(loop, name)

    def _count(self, loop: ForOp, name: str) -> AffineExpr:
        loop.induction_var.name_hint = name
        self.counters.append(loop.induction_var)
        return AffineExpr.dimension(len(self.counters) - 1)

    def reduce(
        self,
        extent: Extent,
        name: str,
        combiner: Combiner,
        contribution: Callable[[AffineExpr], SSAValue],
    ) -> SSAValue:
        """Fold what `contribution` builds for each index of an axis."""
        if extent == 1:
            return contribution(ZERO)
        block = Block(arg_types=[IndexType()])
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        block.args[0].name_hint = name
        self.counters.append(block.args[0])
        value = contribution(AffineExpr.dimension(len(self.counters) - 1))
        self.builder.insert(YieldOp(value))
        self.builder = outer
        loop = ForOp(extent, Region(block), combiners=[combiner], result_types=[value.type])
        self.builder.insert(loop)
        loop.res[0].name_hint = value.name_hint or "acc"
        return loop.res[0]

    def read(self, tensor: SSAValue, index: Sequence[AffineExpr]) -> SSAValue:
        """The element of an input at `index`; a constant is written out instead of loaded."""
        if isinstance(tensor.owner, ConstantOp):
            return emit_constant_attr(self.builder, tensor.owner.value)
        load = self.builder.insert(LoadOp(self.buffers[tensor], index, self.counters))
        load.result.name_hint = tensor.name_hint
        return load.result


def _element(nest: Nest, op: Operation, index: Sequence[AffineExpr]) -> SSAValue:
    """Build the value of one element of the result of `op`."""
    match op:
        case ElementwiseOp():
            args = [nest.read(v, index) for v in op.inputs]
            return emit_function(nest.builder, op.function.data, args)
        case CastOp():
            value, source = nest.read(op.input, index), tensor_type(op.input).element_type
            target = tensor_type(op.result).element_type
            return emit_cast(nest.builder, value, target, unsigned=source == ui8)
        case ConstantOp():
            return emit_constant_attr(nest.builder, op.value)
        case SizeOp():
            size = nest.builder.insert(IndexOp(extent_expr(op.extent.data), []))
            return emit_cast(nest.builder, size.result, tensor_type(op.result).element_type)
        case IotaOp():
            counter = nest.builder.insert(IndexOp(index[op.axis.value.data], nest.counters))
            return emit_cast(nest.builder, counter.result, tensor_type(op.result).element_type)
        case ReduceOp():
            return _reduction(nest, op, list(index), list(op.axes.get_values()))
        case IndexMapOp():
            return _piece(nest, op, index, 0)
        case GatherOp():
            return _gathered(nest, op, index)
        case _:
            raise AssertionError(f"not a tensor operation: {op.name}")


def _reduction(nest: Nest, op: ReduceOp, index: list[AffineExpr], axes: Sequence[int]) -> SSAValue:
    if not axes:
        return nest.read(op.input, index)

    def contribution(counter: AffineExpr) -> SSAValue:
        inner = [*index]
        inner[axes[0]] = counter
        return _reduction(nest, op, inner, axes[1:])

    extent = shape_of(tensor_type(op.input))[axes[0]]
    return nest.reduce(extent, axis_name(axes[0]), op.combiner.data, contribution)


def _piece(nest: Nest, op: IndexMapOp, index: Sequence[AffineExpr], position: int) -> SSAValue:
    """The element that source `position` or a later one, or the fill, gives."""
    if position == len(op.sources):
        assert op.fill is not None
        return emit_constant_attr(nest.builder, op.fill)
    exprs = [replace_dims(e, index) for e in op.maps.data[position].data.results]
    conditions = condition_exprs(op.conditions.data[position].data)
    if not conditions:
        return nest.read(op.sources[position], exprs)
    holds = nest.builder.insert(TestOp([replace_dims(c, index) for c in conditions], nest.counters))
    if position + 1 == len(op.sources) and _is_true_else_false(op, position):
        return holds.result
    outer = nest.builder
    regions: list[Region] = []
    for build in (
        lambda: nest.read(op.sources[position], exprs),
        lambda: _piece(nest, op, index, position + 1),
    ):
        block = Block()
        nest.builder = Builder(InsertPoint.at_end(block))
        nest.builder.insert(scf.YieldOp(build()))
        regions.append(Region(block))
    nest.builder = outer
    element = bits_of(tensor_type(op.result).element_type)
    then, otherwise = regions
    return outer.insert(scf.IfOp(holds.result, [element], then, otherwise)).output[0]


def _is_true_else_false(op: IndexMapOp, position: int) -> bool:
    """Whether an element is true where a source is read, as those of a triangle are, and else false."""
    source, fill = op.sources[position].owner, op.fill
    if not isinstance(source, ConstantOp) or not is_bool(tensor_type(op.result).element_type):
        return False
    assert isinstance(source.value, IntegerAttr)
    assert isinstance(fill, IntegerAttr)
    return source.value.value.data != 0 and fill.value.data == 0


def _gathered(nest: Nest, op: GatherOp, index: Sequence[AffineExpr]) -> SSAValue:
    axis = op.axis.value.data
    rank = tensor_type(op.indices).get_num_dims()
    position = nest.read(op.indices, index[axis : axis + rank])
    extent = shape_of(tensor_type(op.source))[axis]
    row = nest.builder.insert(CheckedIndexOp(position, extent))
    row.result.name_hint = "row"
    nest.counters.append(row.result)
    picked = AffineExpr.dimension(len(nest.counters) - 1)
    return nest.read(op.source, [*index[:axis], picked, *index[axis + rank :]])


def lift(op: Operation) -> KernelOp:
    """The kernel that computes one tensor operation."""
    result = op.results[0]
    inputs = list(dict.fromkeys(v for v in op.operands if not isinstance(v.owner, ConstantOp)))
    kernel = KernelOp(f"k_{result.name_hint or 'value'}", inputs, [result.type])
    for argument, value in zip(kernel.body.block.args, [*inputs, result], strict=True):
        argument.name_hint = value.name_hint
    buffers = dict(zip(inputs, kernel.input_args, strict=True))
    nest = Nest(Builder(InsertPoint.at_end(kernel.body.block)), [], dict(buffers))
    shape = shape_of(tensor_type(result))
    index = [nest.open_free(extent, axis_name(axis)) for axis, extent in enumerate(shape)]
    outputs = nest.counters[:]
    value = _element(nest, op, index)
    value.name_hint = value.name_hint or result.name_hint
    nest.builder.insert(StoreOp(value, kernel.output_args[0], index, outputs))
    for inner in ops_in(kernel):
        inner.location = op.location
    return kernel


def _own_results(function: func.FuncOp) -> None:
    """Copy a result that is an argument or an earlier result, so that each is memory of its own."""
    returned = function.body.block.last_op
    assert isinstance(returned, func.ReturnOp)
    seen: set[SSAValue] = set(function.body.block.args)
    for position, value in enumerate(returned.arguments):
        if value in seen and isinstance(value.type, TensorType):
            shape = shape_of(tensor_type(value))
            copy = IndexMapOp([value], [AffineMap.identity(len(shape))], shape)
            copy.result.name_hint = value.name_hint
            function.body.block.insert_op_before(copy, returned)
            returned.operands[position] = copy.result
        seen.add(value)


@dataclass(frozen=True)
class LiftToLoopsPass(ModulePass):
    """One `loop.kernel` for each `tensor_ir` operation."""

    name = "lift-to-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in ops_in(op) if isinstance(o, func.FuncOp) and o.body.blocks]:
            _own_results(function)
        require_positive(op)
        todo = ops_of(op, *TENSOR_OPS)
        names = FreshNames(kernel.sym_name.data for kernel in kernels_of(op))
        for tensor_op in todo:
            result = tensor_op.results[0]
            if isinstance(tensor_op, ConstantOp) and all(
                isinstance(use.operation, TENSOR_OPS) for use in result.uses
            ):
                record(self.name, result.name_hint or "constant", False, "written where it is read")
                continue
            kernel = lift(tensor_op)
            kernel.sym_name = StringAttr(names.fresh(kernel.sym_name.data))
            kernel.outputs[0].name_hint = result.name_hint
            assert tensor_op.parent is not None
            tensor_op.parent.insert_op_before(kernel, tensor_op)
            for use in list(result.uses):
                if not (
                    isinstance(tensor_op, ConstantOp) and isinstance(use.operation, TENSOR_OPS)
                ):
                    use.operation.operands[use.index] = kernel.outputs[0]
            record(
                self.name, kernel.sym_name.data, True, f"one kernel for {tensor_op.name}", kernel
            )
        for tensor_op in reversed(todo):
            tensor_op.detach()
            tensor_op.erase()
