"""What gives elements other places, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dialects.sizes import Extent
from ..lazy.dtypes import bool_
from ..lazy.expression import Node
from ..lazy.manipulation import broadcast_shape
from .building import (
    axes_of,
    axis_of,
    cast,
    concat,
    count,
    expand,
    full,
    integers,
    narrow,
    op,
    pad,
    permute,
    reshape,
    static_extent,
    static_shape,
    unsqueeze,
    where,
)
from .dtypes import dtype_of
from .rules import Call, Refused, rule, same_dtype
from .shapes import slice_places

MAX_PADDING = 1 << 24
"""Elements beside an axis that repeat others."""

LAYOUT = (1, 13, 21, 23, 24, 25)
"""Versions in which operators that move elements got more dtypes."""


@rule("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(call: Call) -> Node:
    """The tensor itself."""
    return call.tensor(0)


@rule("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast_to(call: Call) -> Node:
    """The elements in another dtype."""
    call.whatever("saturate", "round_mode")  # of floats of 8 bits, which are refused
    return cast(call.tensor(0), dtype_of(call.integer("to")))


@rule("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(call: Call) -> Node:
    """The elements in the dtype of another tensor."""
    call.whatever("saturate", "round_mode")
    return cast(call.tensor(0), call.tensor(1).dtype)


@rule("Dropout", 7, 10, 12, 13, 22)
def dropout(call: Call) -> Sequence[Node | None]:
    """The tensor itself, as nothing is dropped outside of training."""
    x = call.tensor(0)
    call.whatever("seed", "ratio")
    if call.version >= 12:
        call.has(1)
        if call.has(2) and bool(call.array(2, "training_mode").item()):
            ratio = float(call.array(1, "ratio").item()) if call.has(1) else 0.5
            if ratio:
                raise Refused("training_mode")
    if call.version < 10:
        return [x]
    return [x, full(x.shape, True, bool_)]


# ---- shapes


@rule("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape_to(call: Call) -> Node:
    """The elements in row-major order under another shape."""
    x, asked = call.tensor(0), call.extents(1, "shape")
    keeps_zero = call.version >= 14 and call.flag("allowzero")
    has = x.shape
    if any(n < -1 for n in asked) or asked.count(-1) > 1:
        raise Refused(f"shape {asked}")
    if not keeps_zero and any(n == 0 and i >= len(has) for i, n in enumerate(asked)):
        raise Refused(f"shape {asked} of a tensor of {len(has)} axes")
    shape = [has[i] if n == 0 and not keeps_zero else n for i, n in enumerate(asked)]
    if -1 in shape:
        rest = count([n for n in shape if n != -1])
        if rest == 0 or count(has) % rest != 0:
            raise Refused(f"shape {asked} of {list(has)}")
        shape[shape.index(-1)] = count(has) // rest
    if count(shape) != count(has):
        raise Refused(f"shape {asked} of {list(has)}")
    return reshape(x, shape)


@rule("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def flatten(call: Call) -> Node:
    """A matrix: the axes before one, and the rest."""
    x, axis = call.tensor(0), call.integer("axis")
    shape = x.shape
    if not -len(shape) <= axis <= len(shape):
        raise Refused(f"axis {axis} of a tensor of {len(shape)} axes")
    axis += len(shape) if axis < 0 else 0
    return reshape(x, (count(shape[:axis]), count(shape[axis:])))


@rule("Transpose", *LAYOUT)
def transpose(call: Call) -> Node:
    """The axes in another order, or backwards."""
    x, order = call.tensor(0), call.given("perm")
    rank = len(x.shape)
    axes = list(reversed(range(rank))) if order is None else [int(i) for i in order]
    if sorted(axes) != list(range(rank)):
        raise Refused(f"perm = {axes}")
    return permute(x, axes)


def _axes(call: Call, rank: int) -> Sequence[int] | None:
    """The axes of Squeeze and Unsqueeze, an input since version 13."""
    given = call.given("axes") if call.version < 13 else None
    if call.version >= 13 and call.has(1):
        given = call.integers(1, "axes")
    return None if given is None else axes_of([int(i) for i in given], rank)


@rule("Squeeze", 1, 11, 13, 21, 23, 24, 25)
def squeeze(call: Call) -> Node:
    """Without axes of extent 1."""
    x = call.tensor(0)
    shape = x.shape
    axes = _axes(call, len(shape))
    if axes is None:
        axes = [i for i, n in enumerate(shape) if n == 1]
    if any(shape[i] != 1 for i in axes):
        raise Refused(f"axes {list(axes)} of {list(shape)} are not all of extent 1")
    return reshape(x, [n for i, n in enumerate(shape) if i not in axes])


@rule("Unsqueeze", 1, 11, 13, 21, 23, 24, 25)
def unsqueeze_at(call: Call) -> Node:
    """New axes of extent 1."""
    x = call.tensor(0)
    given = call.given("axes") if call.version < 13 else call.integers(1, "axes")
    if given is None:
        raise Refused("attribute 'axes' is missing")
    return unsqueeze(x, *axes_of([int(i) for i in given], len(x.shape) + len(given)))


@rule("Expand", 8, 13)
def expand_to(call: Call) -> Node:
    """The shape that the tensor's and another broadcast to."""
    x = call.tensor(0)
    shape = broadcast_shape(x.shape, call.extents(1, "shape"))
    return expand(x, shape)


@rule("Tile", 6, 13)
def tile(call: Call) -> Node:
    """The tensor so many times along each axis."""
    x, times = call.tensor(0), call.integers(1, "repeats")
    if len(times) != len(x.shape) or min(times, default=0) < 0:
        raise Refused(f"repeats {times} of {list(x.shape)}")
    return op("repeat.default", x, repeats=tuple(times)) if times else x


@rule("Concat", 4, 11, 13)
def concatenate(call: Call) -> Node:
    """Tensors joined along an axis."""
    nodes = call.tensors()
    same_dtype(*nodes)
    return concat(nodes, axis_of(call.integer("axis"), len(nodes[0].shape)))


@rule("Split", 2, 11, 13, 18)
def split(call: Call) -> Sequence[Node]:
    """Parts of an axis: of sizes that are said, or as equal as they can be."""
    x = call.tensor(0)
    axis = axis_of(call.integer("axis"), len(x.shape))
    extent, number = static_extent(x, axis), len(call.outputs)
    sizes = call.given("split") if call.version < 13 else None
    if call.version >= 13 and call.has(1):
        sizes = call.integers(1, "split")
    if call.version >= 18 and (asked := call.given("num_outputs")) is not None:
        if sizes is not None or asked != number:
            raise Refused(f"num_outputs = {asked} with {number} outputs")
        each = -(-extent // number)
        sizes = [each] * (number - 1) + [extent - each * (number - 1)]
    if sizes is None:
        if extent % number:
            raise Refused(f"{extent} elements in {number} equal parts")
        sizes = [extent // number] * number
    if len(sizes) != number or sum(sizes) != extent or min(sizes) < 0:
        raise Refused(f"parts of {list(sizes)} of {extent} elements")
    ends = np.cumsum(sizes).tolist()
    return [narrow(x, axis, end - n, end) for n, end in zip(sizes, ends, strict=True)]


@rule("Slice", 1, 10, 11, 13)
def slice_axes(call: Call) -> Node:
    """Every step-th position of axes, from a start to before an end."""
    x = call.tensor(0)
    steps = None
    if call.version == 1:
        starts, ends = call.needed("starts"), call.needed("ends")
        given = call.given("axes")
    else:
        starts, ends = call.extents(1, "starts"), call.extents(2, "ends")
        given = call.integers(3, "axes") if call.has(3) else None
        steps = call.integers(4, "steps") if call.has(4) else None
    axes = axes_of(range(len(starts)) if given is None else given, len(x.shape))
    steps = [1] * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent = x.shape[axis]
        if step == 0:
            raise Refused("steps of 0")
        if isinstance(extent, int) and isinstance(start, int) and isinstance(end, int):
            x = _sliced(x, axis, slice_places(start, end, step, extent))
        elif step == 1:
            x = narrow(x, axis, _bound(start, extent), _bound(end, extent))
        else:
            raise Refused(f"steps of {step} along an axis that calls choose")
    return x


def _bound(given: Extent, extent: Extent) -> Extent:
    """A bound of a slice as a position from 0 to the extent. Raises UndecidedSize if sizes decide it."""
    place = given + extent if given < 0 else given
    return 0 if place < 0 else extent if place > extent else place


def _sliced(x: Node, axis: int, places: range) -> Node:
    """The positions of an axis, in their order."""
    if not places:
        return narrow(x, axis, 0, 0)
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    found = narrow(x, axis, low, high + 1, abs(places.step))
    backwards = places.step < 0 and len(places) > 1
    return op("flip.default", found, dims=(axis,)) if backwards else found


@rule("Trilu", 14)
def trilu(call: Call) -> Node:
    """The part on one side of a diagonal, 0 on the other."""
    x = call.tensor(0)
    diagonal = int(call.array(1, "k").item()) if call.has(1) else 0
    if len(x.shape) < 2:
        raise Refused(f"a tensor of {len(x.shape)} axes, which is no matrix")
    name = "triu" if call.flag("upper") else "tril"
    return op(f"{name}.default", x, diagonal=diagonal)


# ---- padding


@rule("Pad", 2, 11, 13, 18, 19, 21, 23, 24, 25)
def pad_axes(call: Call) -> Node:
    """More positions at the ends of axes, or fewer."""
    x = call.tensor(0)
    mode = call.text("mode", "constant", "reflect", "edge", "wrap")
    axes = range(len(x.shape))
    value: Any = 0
    if call.version == 2:
        pads, value = call.needed("pads"), call.real("value", 0.0)
    else:
        pads = call.integers(1, "pads")
        if call.has(2):
            value = call.tensor(2)
        if call.version >= 18 and call.has(3):
            axes = axes_of(call.integers(3, "axes"), len(x.shape))
    if len(pads) != 2 * len(axes):
        raise Refused(f"pads {list(pads)} of {len(axes)} axes")
    widths = [(0, 0)] * len(x.shape)
    for i, axis in enumerate(axes):
        widths[axis] = int(pads[i]), int(pads[i + len(axes)])
    if mode != "constant":
        return padded_by_index(x, widths, mode)
    return padded(call, x, widths, value)


def padded(call: Call, x: Node, widths: Sequence[tuple[int, int]], value: Any) -> Node:
    """Positions that are a number, or a tensor of one element."""
    is_known = isinstance(value, Node) and not call.depends(value)
    if is_known and x.dtype.name != "bfloat16":
        found = call.know(value)
        if found.size != 1:
            raise Refused(f"{found.size} values for what is padded")
        value = found.reshape(-1)[0]
    if not isinstance(value, Node):
        return pad(x, widths, value)
    inside = pad(full(x.shape, True, bool_), widths, False)
    return where(inside, pad(x, widths), reshape(value, ()))


def padded_by_index(x: Node, widths: Sequence[tuple[int, int]], mode: str) -> Node:
    """Positions that repeat others, as numpy's `pad` says which."""
    shape = static_shape(x)
    for axis, (before, after) in enumerate(widths):
        cut = max(-before, 0), shape[axis] - max(-after, 0)
        added = max(before, 0), max(after, 0)
        if cut != (0, shape[axis]):
            x = narrow(x, axis, cut[0], max(cut))
        if any(added):
            if cut[1] <= cut[0] or sum(added) > MAX_PADDING:
                raise Refused(f"{sum(added)} elements beside {max(cut[1] - cut[0], 0)} others")
            how: Any = mode
            places = np.pad(np.arange(cut[1] - cut[0]), added, mode=how)
            x = op("index.Tensor", x, (integers(places.tolist()),), dim=axis)
    return x


# ---- blocks


@rule("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(call: Call) -> Node:
    """Channels that become blocks of pixels."""
    x, size = call.tensor(0), call.integer("blocksize")
    mode = "DCR" if call.version < 11 else call.text("mode", "DCR", "CRD")
    n, c, h, w = static_shape(x)
    if size < 1 or c % (size * size):
        raise Refused(f"{c} channels in blocks of {size}")
    left = c // (size * size)
    if mode == "DCR":
        apart, order = (n, size, size, left, h, w), (0, 3, 4, 1, 5, 2)
    else:
        apart, order = (n, left, size, size, h, w), (0, 1, 4, 2, 5, 3)
    return reshape(permute(reshape(x, apart), order), (n, left, h * size, w * size))


@rule("SpaceToDepth", 1, 13, 28)
def space_to_depth(call: Call) -> Node:
    """Blocks of pixels that become channels."""
    x, size = call.tensor(0), call.integer("blocksize")
    mode = "DCR" if call.version < 28 else call.text("mode", "DCR", "CRD")
    n, c, h, w = static_shape(x)
    if size < 1 or h % size or w % size:
        raise Refused(f"{h} by {w} pixels in blocks of {size}")
    apart = reshape(x, (n, c, h // size, size, w // size, size))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshape(permute(apart, order), (n, c * size * size, h // size, w // size))
