"""Images with their channels last, copied for a kernel that sums over these; a part of `flatten-windows`.

    %y = loop.kernel @k_y(%x) : (tensor<8x64x56x56xbf16>) -> ... { ... %x[%b, %c, %i, %j] ... }
becomes
    %x_1 = loop.kernel @k_x(%x) : (tensor<8x64x56x56xbf16>) -> tensor<8x56x56x64xbf16> { ... }
    %y = loop.kernel @k_y(%x_1) : (tensor<8x56x56x64xbf16>) -> ... { ... %x_1[%b, %i, %j, %c] ... }
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.loop import KernelOp, LoadOp, StoreOp
from ...dialects.sizes import shape_of, tensor_of
from ..replacing import replace
from ..symbol_names import insert_kernel
from .lift_to_loops import Nest


def channel_axis(image: LoadOp, channel: SSAValue) -> int | None:
    """The axis of an image that a counter alone counts, if a copy can have it last: None otherwise."""
    exprs = list(image.map.data.results)
    axes = [
        axis
        for axis, expr in enumerate(exprs)
        if isinstance(expr, AffineDimExpr) and image.indices[expr.position] is channel
    ]
    used = sum(channel in {image.indices[d] for d in expr.used_dims()} for expr in exprs)
    alone = isinstance(image.memref, BlockArgument) and image.memref.has_one_use()
    return axes[0] if len(axes) == 1 and used == 1 and alone else None


def put_channels_last(kernel: KernelOp, image: LoadOp, axis: int) -> LoadOp:
    """Copy an image with an axis last in front of a kernel, and load that; gives the load."""
    source = image.memref
    assert isinstance(source, BlockArgument) and isinstance(source.type, MemRefType)
    shape = shape_of(source.type)
    order = [*(i for i in range(len(shape)) if i != axis), axis]
    name = source.name_hint or "image"
    type = tensor_of(source.type.element_type, [shape[i] for i in order])
    copy = KernelOp(f"k_{name}", [kernel.inputs[source.index]], [type])
    copy.location = image.location
    argument, result = copy.body.block.args
    argument.name_hint, result.name_hint = name, f"{name}_by_channel"
    copy.outputs[0].name_hint = result.name_hint
    nest = Nest(Builder(InsertPoint.at_end(copy.body.block)), [], {})
    places = [nest.open_free(shape[i], "c" if i == axis else "i") for i in order]
    read_at: list[AffineExpr] = [places[order.index(i)] for i in range(len(shape))]
    value = nest.builder.insert(LoadOp(argument, read_at, nest.counters)).result
    nest.builder.insert(StoreOp(value, result, places, nest.counters))
    insert_kernel(copy, kernel)
    kernel.operands[source.index] = copy.outputs[0]
    exprs = [image.map.data.results[i] for i in order]
    to = Rewriter.replace_value_with_new_type(source, KernelOp.buffer_type(type))
    load = LoadOp(to, exprs, list(image.indices))
    replace(image, load)
    return load
