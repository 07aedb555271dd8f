"""Tensors out of numbers: constants, shapes, ranges."""

from __future__ import annotations

from math import ceil

import numpy as np

from ..lazy.dtypes import float32, int64
from ..lazy.expression import Node
from .building import add, arange, cast, compare, count, full, known, length, reshape, sub
from .dtypes import array_of, dtype_of, is_float
from .rules import Call, Refused, rule, same_dtype

MAX_ELEMENTS = 1 << 24
"""Elements of a range that is made while a model is imported."""


@rule("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def constant(call: Call) -> Node:
    """The tensor, number or list that an attribute says."""
    if (tensor := call.given("value")) is not None:
        return known(*array_of(tensor))
    for name, storage, dtype in (("float", np.float32, float32), ("int", np.int64, int64)):
        for each in (f"value_{name}", f"value_{name}s"):
            if (value := call.given(each)) is not None:
                return known(np.array(value, storage), dtype)
    raise Refused(f"attribute {', '.join(repr(name) for name in sorted(call.said))}")


@rule("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(call: Call) -> Node:
    """A tensor that is a number everywhere."""
    shape = call.extents(0, "shape")
    tensor = call.given("value")
    if any(n < 0 for n in shape):
        raise Refused(f"shape {shape}")
    if tensor is None:
        return full(shape, 0, float32)
    array, dtype = array_of(tensor)
    if array.size != 1 or dtype.name == "bfloat16":
        raise Refused(f"value of {array.size} elements of {dtype}")
    return full(shape, array.reshape(-1)[0], dtype)


@rule("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape_of(call: Call) -> Node:
    """The extents of axes."""
    shape = call.tensor(0).shape
    if call.version >= 15:
        shape = shape[slice(call.given("start"), call.given("end"))]
    return length(shape)


@rule("Size", 1, 13, 19, 21, 23, 24, 25)
def size_of(call: Call) -> Node:
    """The number of elements."""
    return full((), count(call.tensor(0).shape), int64)


@rule("Range", 11, 27)
def numbers(call: Call) -> Node:
    """The numbers from a start by steps to before a limit."""
    dtype = same_dtype(*call.tensors())
    names = ("start", "limit", "delta")
    if dtype is int64 and any(call.is_sized(i) for i in range(3)):
        first, last, step = (call.extents(i, name)[0] for i, name in enumerate(names))
        if step != 1 or call.given("stash_type") not in (None, 1):
            raise Refused("a range of sizes by steps other than 1")
        return add(arange(last - first), full((), first, int64))
    start, limit, delta = (call.array(i, name).reshape(-1) for i, name in enumerate(names))
    call.only("stash_type", None, 1)
    if any(each.size != 1 for each in (start, limit, delta)) or delta[0] == 0:
        raise Refused("a start, limit or step that is not one number")
    if is_float(dtype):
        spans = [each.astype(np.float64)[0] for each in (start, limit, delta)]
        number = max(ceil((spans[1] - spans[0]) / spans[2]), 0)
        if number > MAX_ELEMENTS:
            raise Refused(f"{number} elements")
        places = np.arange(number, dtype=np.float64)
        return known((spans[0] + places * spans[2]).astype(dtype.storage), dtype)
    places = range(int(start[0]), int(limit[0]), int(delta[0]))
    if len(places) > MAX_ELEMENTS:
        raise Refused(f"{len(places)} elements")
    return known(np.arange(places.start, places.stop, places.step).astype(dtype.storage), dtype)


@rule("EyeLike", 9, 22)
def eye_like(call: Call) -> Node:
    """1 on a diagonal, else 0."""
    x, diagonal = call.tensor(0), call.integer("k")
    given = call.given("dtype")
    dtype = x.dtype if given is None else dtype_of(given)
    if len(x.shape) != 2:
        raise Refused(f"a tensor of {len(x.shape)} axes, which is no matrix")
    rows, columns = arange(x.shape[0]), arange(x.shape[1])
    apart = sub(columns, reshape(rows, (x.shape[0], 1)))
    return cast(compare("eq", apart, full((), diagonal, int64)), dtype)
