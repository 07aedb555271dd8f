"""Builds `tensor_ir.scan` and the function that it runs.

    scan(e, step, ([h], [x], [w]))  ->  func.func private @step(%h, %x, %w) { ... }
                                        %hs = tensor_ir.scan @step carried(%h) slices(%x) shared(%w) : ...

A slice must begin at a multiple of `SLICE_BYTES`. Where its size is none, its last axis is padded with zeros;
`step` and the caller see tensors without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects.scalars import storage_bytes
from ...dialects.sizes import Extent, extent_expr, tensor_of
from ...dialects.tensor_ir_scan import SLICE_BYTES, ScanOp, is_aligned
from ...dialects.torch_base import Shape
from ..symbol_names import function_names
from .lowering import Lowering, dims, element_of, shape_of

Values = Sequence[SSAValue]
Step = Callable[[Lowering, Values, Values, Values], Values]
"""The carried values of the next step, and further outputs, for carried values, slices and shared values."""


def scan(
    e: Lowering, step: Step, operands: tuple[Values, Values, Values], *, reversed: bool = False
) -> list[SSAValue]:
    """What `step` gives in each step of the leading axis of the slices, stacked along a new leading axis.

    `operands` are the carried values of the first step, the slices, and what all steps share.
    """
    carried, slices, shared = operands
    given = [_padded(e, value, 0) for value in carried]
    sliced = [_padded(e, value, 1) for value in slices]
    types = [value.type for value in given]
    types += [tensor_of(element_of(value), shape_of(value)[1:]) for value in sliced]
    block = Block(arg_types=[*types, *(value.type for value in shared)])
    for argument, value in zip(block.args, (*given, *sliced, *shared), strict=True):
        argument.name_hint = value.name_hint
    inner = e.inside(block)
    shapes = [shape_of(value) for value in carried] + [shape_of(value)[1:] for value in slices]
    inputs = [_cut(inner, v, shape) for v, shape in zip(block.args, shapes, strict=False)]
    first, last = len(carried), len(shapes)
    results = step(inner, inputs[:first], inputs[first:], block.args[last:])
    returned = [_padded(inner, value, 0) for value in results]
    block.add_op(func.ReturnOp(*returned))
    name = _insert_function(e, block, [value.type for value in returned])
    trips = shape_of(slices[0])[0]
    stacked = [tensor_of(element_of(v), (trips, *shape_of(v))) for v in returned]
    op = ScanOp(name, (given, sliced, shared), stacked, reversed=reversed)
    e.place(op)
    for result in op.results:
        result.name_hint = f"{e.hint}_steps"
    return [
        _cut(e, stack, (trips, *shape_of(value)))
        for stack, value in zip(op.results, results, strict=True)
    ]


def _insert_function(e: Lowering, block: Block, results: Sequence[Attribute]) -> str:
    """Make a private function of a block, in front of the one that is lowered; gives its name."""
    module = e.op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    name = function_names(module).fresh(f"{e.hint}_step")
    types = list(block.arg_types), list(results)
    function = func.FuncOp(name, types, Region(block), visibility="private")
    function.location = e.op.location
    around = e.op.parent_op()
    assert around is not None
    module.body.block.insert_op_before(function, around)
    return name


def _padded(e: Lowering, value: SSAValue, lead: int) -> SSAValue:
    """`value`, its last axis as long as slices need that begin behind its first `lead` axes."""
    shape, element = shape_of(value), element_of(value)
    if is_aligned(element, shape[lead:]):
        return value
    unit = SLICE_BYTES // storage_bytes(element)
    width: Extent = (shape[-1] + (unit - 1)) // unit * unit
    inside = dims(len(shape))[-1] * -1 + extent_expr(shape[-1] - 1)
    place = [dims(len(shape))]
    padded = (*shape[:-1], width)
    return e.index_map([value], place, padded, conditions=[[inside]], fill=0.0, suffix="pad")


def _cut(e: Lowering, value: SSAValue, shape: Shape) -> SSAValue:
    """The first elements of the last axis of `value`."""
    if shape_of(value) == shape:
        return value
    return e.index_map([value], [dims(len(shape))], shape, suffix="cut")
