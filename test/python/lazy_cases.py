"""Random cases of the functions of lazy tensors, with numpy as the oracle.

    make test-lazy

A case is one function on views of views of random arrays: extents 0, 1 and primes, every dtype, NaN,
infinities, -0.0 and the limits of the integers. What it is made of is drawn by Hypothesis, which makes a
case that fails smaller, or by numpy from a number: many of those are one program. bfloat16, which numpy has
not, is float32 that was rounded. What is computed in floats is compared with float64, within the dtype's
rounding.
"""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from lazy_oracle import FLOATS, SPECIAL, UNSIGNED, WHOLE, quiet

import deplo.array_api as xp
from deplo.errors import DeploError
from deplo.lazy import Tensor, realize
from deplo.lazy.functions import ELEMENTWISE, PREDICATES, UNARY

EXTENTS = (0, 1, 1, 2, 3, 5, 7, 11)
EPS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
HALVES = ("bfloat16", "float16")
ALL_FLOATS = ("bfloat16", *FLOATS)
KINDS = {
    "bool": ("bool",),
    "integral": WHOLE,
    "integral or bool": ("bool", *WHOLE),
    "real floating": ALL_FLOATS,
    "floating": ALL_FLOATS,
    "real numeric": (*WHOLE, *ALL_FLOATS),
    "numeric": (*WHOLE, *ALL_FLOATS),
    "any": ("bool", *WHOLE, *ALL_FLOATS),
}


@dataclass
class Case:
    """A tensor and what it must be; floats within `scale` times the dtype's rounding."""

    name: str
    tensor: Tensor
    expected: np.ndarray
    dtype: str
    scale: np.ndarray | float = 0.0
    steps: int = 8
    """How many roundings of the result there may be."""
    signed_zeros: bool = True


def rounded(values, dtype):
    """float64 in a dtype; bfloat16 as float32."""
    values = np.asarray(values)
    if dtype != "bfloat16":
        return values.astype(dtype)
    bits = values.astype(np.float32).view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), nearest.view(np.float32)).astype(
        np.float32
    )


def drawn(rng, shape, dtype, special):
    """Elements of a dtype."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in WHOLE:
        values = rng.integers(-9, 10, shape).astype(dtype)
        limits = np.iinfo(dtype)
        wild = np.array([limits.min, limits.max, limits.min + 1, 100], dtype)
        return np.where(rng.random(shape) < 0.1 * special, rng.choice(wild, shape), values)
    values = rng.random(shape) * 4 - 2
    values = np.where(rng.random(shape) < 0.2 * special, rng.choice(SPECIAL, shape), values)
    return rounded(values, dtype)


class Choices:
    """numpy's generator, as far as cases use it, of which Hypothesis draws what is no array.

    Arrays are of a seed, which it draws, too: that their elements become simpler helps nobody.
    """

    def __init__(self, data):
        self.draw = data.draw
        self.arrays = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        self.choice = self.arrays.choice

    def integers(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        if size is not None:
            return self.arrays.integers(low, high, size)
        return self.draw(st.integers(int(low), int(high) - 1))

    def random(self, size=None):
        if size is not None:
            return self.arrays.random(size)
        return self.draw(st.integers(0, 99)) / 100

    def permutation(self, count):
        return self.draw(st.permutations(range(count)))


class Draw:
    """What a case is made of; `rng` is numpy's generator, or `Choices`."""

    def __init__(self, rng):
        self.rng = rng

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def shape(self, least=0, most=3, extents=EXTENTS):
        return tuple(int(self.pick(extents)) for _ in range(self.rng.integers(least, most + 1)))

    def axis(self, rank):
        return int(self.rng.integers(-rank, rank))

    def tensor(self, shape, dtype, special=True, depth=None):
        """A view of a view of an array, as a tensor and for numpy."""
        if depth is None:
            depth = int(self.rng.integers(0, 4))
        if depth == 0 or not shape:
            array = drawn(self.rng, shape, dtype, special)
            made = Tensor(array)
            return (made.astype("bfloat16") if dtype == "bfloat16" else made), np.asarray(array)
        axis = int(self.rng.integers(len(shape)))
        extent = shape[axis]
        way = self.pick(("transpose", "step", "reverse", "cut", "reshape", "expand", "index"))
        below = list(shape)
        key = [slice(None)] * len(shape)
        match way:
            case "transpose":
                order = [int(i) for i in self.rng.permutation(len(shape))]
                below = [shape[order.index(i)] for i in range(len(shape))]
                x, a = self.tensor(below, dtype, special, depth - 1)
                return x.permute_dims(order), a.transpose(order)
            case "reshape":
                x, a = self.tensor((math.prod(shape),), dtype, special, depth - 1)
                return x.reshape(tuple(shape)), a.reshape(shape)
            case "expand":
                below[axis] = 1
                x, a = self.tensor(below, dtype, special, depth - 1)
                return x.broadcast_to(tuple(shape)), np.broadcast_to(a, shape)
            case "step":
                below[axis], key[axis] = extent * 2, slice(None, None, 2)
            case "reverse":
                key[axis] = slice(None, None, -1)
            case "cut":
                below[axis], key[axis] = extent + 3, slice(1, extent + 1)
            case "index":
                below.insert(axis, 3)
                key.insert(axis, int(self.rng.integers(-3, 3)))
        x, a = self.tensor(below, dtype, special, depth - 1)
        return x[tuple(key)], a[tuple(key)]

    def narrower(self, shape):
        """A shape that broadcasts to another."""
        kept = shape[int(self.rng.integers(len(shape) + 1)) :]
        return tuple(n if self.rng.random() < 0.7 else 1 for n in kept)


def wide(array, dtype):
    """The array in which the oracle computes."""
    return array.astype(np.float64) if dtype in ALL_FLOATS else array


def widest(dtype):
    """The dtype in which integers are summed."""
    return "uint64" if dtype in UNSIGNED else "int64"


# --------------------------------------------------------------------------- families

COMPOSED = {
    "floor_divide": "numeric",
    "remainder": "numeric",
    "square": "numeric",
    "sign": "numeric",
    "isfinite": "numeric",
    "positive": "numeric",
    "reciprocal": "real floating",
    "hypot": "real floating",
    "logaddexp": "real floating",
    "pow": "real floating",
}
NAMES = {name: kind for name, (_, kind) in ELEMENTWISE.items()} | COMPOSED
ONE = UNARY | {"square", "sign", "isfinite", "positive", "reciprocal"}
EXACT = {"floor_divide", "remainder"}
PREDICATE = PREDICATES | {"isfinite"}


def elementwise(draw):
    name = draw.pick(list(NAMES))
    dtypes = KINDS[NAMES[name]]
    if name in EXACT:
        dtypes = [d for d in dtypes if d != "bfloat16"]
    dtype, shape = draw.pick(dtypes), draw.shape()
    x, a = draw.tensor(shape, dtype)
    tensors, arrays = [x], [a]
    if name not in ONE:
        other = draw.narrower(shape)
        if "shift" in name:
            y, b = draw.tensor(other, dtype, special=False)
            bits = np.iinfo(dtype).bits
            y, b = abs(y) % min(bits, 8), np.abs(b) % min(bits, 8)
        elif name in EXACT and dtype in WHOLE:
            y, b = draw.tensor(other, dtype)
            y, b = xp.where(y == 0, 3, y), np.where(b == 0, np.array(3, dtype), b)
        else:
            y, b = draw.tensor(other, dtype)
        if draw.rng.random() < 0.3 and name not in EXACT | {"pow"} and "shift" not in name:
            tensors, arrays = [y, x], [b, a]
        else:
            tensors, arrays = [x, y], [a, b]
    if name not in EXACT:
        arrays = [wide(each, dtype) for each in arrays]
    expected = numpys(name)(*arrays)
    result = "bool" if name in PREDICATE else dtype
    if dtype in ALL_FLOATS and result != "bool":
        expected = rounded(expected, dtype)
    scale = 1.0 if name == "logaddexp" else 0.0  # a sum, which may cancel
    return Case(name, getattr(xp, name)(*tensors), expected, result, scale)


def divided(a, b):
    """a / b of floats, and nothing of integers."""
    return np.divide(a, b) if a.dtype.kind == "f" else np.zeros_like(a)


def numpys(name):
    """numpy's function of a name, but that -0.0 is less than 0.0, where numpy gives either.

    The standard's quotients of infinities are not rounded.
    """
    function = getattr(np, name)
    if name == "floor_divide":
        return lambda a, b: np.where(np.isinf(a) ^ np.isinf(b), divided(a, b), function(a, b))
    if name not in ("maximum", "minimum"):
        return function

    def ordered(a, b):
        found = function(a, b)
        if found.dtype.kind != "f":
            return found
        signs = (np.logical_or if name == "minimum" else np.logical_and)(
            np.signbit(a), np.signbit(b)
        )
        return np.where((a == 0) & (b == 0), np.where(signs, -0.0, 0.0), found).astype(found.dtype)

    return ordered


def numbers(draw):
    """A tensor with a Python number, on either side."""
    name = draw.pick(
        ["add", "subtract", "multiply", "maximum", "minimum", "less", "equal", "where"]
    )
    dtype, shape = draw.pick((*WHOLE, *ALL_FLOATS)), draw.shape()
    x, a = draw.tensor(shape, dtype)
    number = (
        draw.pick((0, 1, 3, 7) if dtype in UNSIGNED else (0, 1, -3, 7))
        if dtype in WHOLE
        else draw.pick((0, -0.0, 0.5, -2.25, math.inf))
    )
    value = np.asarray(number, a.dtype)
    operands, arrays = (
        ((x, number), (a, value)) if draw.rng.random() < 0.5 else ((number, x), (value, a))
    )
    if name == "where":
        c, condition = draw.tensor(shape, "bool")
        operands, arrays = (c, *operands), (condition, *arrays)
    arrays = [each if each.dtype == bool else wide(each, dtype) for each in arrays]
    expected = numpys(name)(*arrays)
    result = "bool" if name in PREDICATE else dtype
    if result in ALL_FLOATS:
        expected = rounded(expected, dtype)
    return Case(f"{name} {number}", getattr(xp, name)(*operands), expected, result)


def casts(draw):
    source, target = draw.pick(KINDS["any"]), draw.pick(KINDS["any"])
    x, a = draw.tensor(draw.shape(), source)
    if source in ALL_FLOATS and target in WHOLE:  # what has no integer is anything
        x, a = xp.where(abs(x) < 3, x, 2.0), np.where(np.abs(a) < 3, a, 2).astype(a.dtype)
        if target in UNSIGNED:
            x, a = abs(x), np.abs(a)
    expected = rounded(a, target) if target in ALL_FLOATS else a.astype(target)
    return Case(f"astype {source} {target}", x.astype(target), expected, target, steps=1)


def _reshape(draw, x, a, axis):
    cut = int(draw.rng.integers(a.ndim + 1))
    shape = (math.prod(a.shape[:cut]), math.prod(a.shape[cut:]))
    return x.reshape(shape), a.reshape(shape)


def _permute(draw, x, a, axis):
    order = [int(i) for i in draw.rng.permutation(a.ndim)]
    return x.permute_dims(order), a.transpose(order)


def _tile(draw, x, a, axis):
    times = tuple(int(n) for n in draw.rng.integers(0, 3, draw.rng.integers(1, 4)))
    return xp.tile(x, times), np.tile(a, times)


def _pad(draw, x, a, axis):
    widths = [(int(p), int(q)) for p, q in draw.rng.integers(0, 3, (a.ndim, 2))]
    return xp.pad(x, widths), np.pad(a, widths)


def _shrink(draw, x, a, axis):
    bounds = [tuple(sorted(int(v) for v in draw.rng.integers(0, n + 1, 2))) for n in a.shape]
    return x.shrink(bounds), a[tuple(slice(*each) for each in bounds)]


def _joined(name):
    def function(draw, x, a, axis):
        y, b = draw.tensor(a.shape, x.dtype.name)
        got = getattr(xp, name)([x, y, x], axis=axis)
        return got, getattr(np, name)([a, b, a], axis=axis)

    return function


def _moveaxis(draw, x, a, axis):
    to = draw.axis(a.ndim)
    return xp.moveaxis(x, axis, to), np.moveaxis(a, axis, to)


def _broadcast(draw, x, a, axis):
    y, b = draw.tensor(draw.narrower(a.shape), x.dtype.name)
    return xp.broadcast_arrays(x, y)[1], np.broadcast_arrays(a, b)[1]


def _take(draw, x, a, axis):
    if not a.shape[axis]:
        return None
    index = draw.rng.integers(-a.shape[axis], a.shape[axis], 5)
    return xp.take(x, Tensor(index), axis=axis), np.take(a, index, axis)


def _take_along(draw, x, a, axis):
    if not a.shape[axis]:
        return None
    shape = [4 if i == axis % a.ndim else n for i, n in enumerate(a.shape)]
    index = draw.rng.integers(0, a.shape[axis], shape)
    return xp.take_along_axis(x, Tensor(index), axis=axis), np.take_along_axis(a, index, axis)


def _getitem(draw, x, a, axis):
    bounds, steps = (None, 0, 1, -1, -2, 4, 9), (None, 1, 2, -1, -3)
    count = int(draw.rng.integers(0, a.ndim + 1))
    key = [slice(draw.pick(bounds), draw.pick(bounds), draw.pick(steps)) for _ in range(count)]
    key = tuple(key + draw.pick(([], [...], [..., None], [None])))
    return x[key], a[key]


def _indexed(draw, x, a, axis):
    if not a.shape[0]:
        return None
    index = draw.rng.integers(-a.shape[0], a.shape[0], (2, 3))
    return x[Tensor(index)], a[index]


def _clip(draw, x, a, axis):
    low = 1 if a.dtype.kind == "u" else -1
    bounds = a.dtype.type(low), a.dtype.type(2)
    return None if a.dtype == bool else (xp.clip(x, low, 2), np.clip(a, *bounds))


def _diff(draw, x, a, axis):
    if a.dtype == bool:
        return None
    dtype = x.dtype.name
    expected = np.diff(wide(a, dtype), axis=axis)
    return xp.diff(x, axis=axis), rounded(expected, dtype) if dtype in ALL_FLOATS else expected


def _triangle(name):
    def function(draw, x, a, axis):
        k = int(draw.rng.integers(-2, 3))
        return None if a.ndim < 2 else (getattr(xp, name)(x, k=k), getattr(np, name)(a, k))

    return function


def _roll(draw, x, a, axis):
    given, by = draw.pick((None, axis)), int(draw.rng.integers(-9, 9))
    return xp.roll(x, by, axis=given), np.roll(a, by, given)


def _repeat(draw, x, a, axis):
    given, times = draw.pick((None, axis)), int(draw.rng.integers(0, 4))
    return xp.repeat(x, times, axis=given), np.repeat(a, times, given)


MOVES = {
    "reshape": _reshape,
    "permute_dims": _permute,
    "flip": lambda draw, x, a, axis: (xp.flip(x, axis=axis), np.flip(a, axis)),
    "flip all": lambda draw, x, a, axis: (xp.flip(x), np.flip(a)),
    "roll": _roll,
    "repeat": _repeat,
    "tile": _tile,
    "pad": _pad,
    "shrink": _shrink,
    "concat": _joined("concat"),
    "stack": _joined("stack"),
    "unstack": lambda draw, x, a, axis: (
        (xp.unstack(x, axis=axis)[-1], np.take(a, -1, axis)) if a.shape[axis] else None
    ),
    "expand_dims": lambda draw, x, a, axis: (
        xp.expand_dims(x, axis=axis),
        np.expand_dims(a, axis),
    ),
    "squeeze": lambda draw, x, a, axis: (xp.squeeze(xp.expand_dims(x, axis=axis), axis), a),
    "moveaxis": _moveaxis,
    "broadcast_arrays": _broadcast,
    "take": _take,
    "take_along_axis": _take_along,
    "getitem": _getitem,
    "indexed": _indexed,
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "matrix_transpose": lambda draw, x, a, axis: (x.mT, a.mT) if a.ndim > 1 else None,
    "clip": _clip,
    "diff": _diff,
}


def moved(draw):
    dtype, shape = draw.pick(KINDS["any"]), draw.shape(least=1)
    x, a = draw.tensor(shape, dtype)
    name = draw.pick(list(MOVES))
    found = MOVES[name](draw, x, a, draw.axis(len(shape)))
    return moved(draw) if found is None else Case(name, found[0], np.asarray(found[1]), dtype)


def reductions(draw):
    name = draw.pick("sum prod max min mean var std any all count_nonzero argmax argmin".split())
    kinds = {"mean": "real floating", "var": "real floating", "std": "real floating"}
    everything = name in ("any", "all", "count_nonzero")
    dtype, shape = (
        draw.pick(KINDS["any" if everything else kinds.get(name, "numeric")]),
        draw.shape(),
    )
    x, a = draw.tensor(shape, dtype)
    rank = len(shape)
    axis = draw.pick((None, draw.axis(rank), draw.axis(rank))) if rank else None
    if rank > 1 and draw.rng.random() < 0.3 and "arg" not in name:
        axis = (0, -1)
    keep = bool(draw.rng.random() < 0.3)
    folded = [shape[i] for i in (range(rank) if axis is None else np.atleast_1d(axis))]
    if 0 in folded and name in ("max", "min", "argmax", "argmin"):
        return reductions(draw)
    got = getattr(xp, name)(x, axis=axis, keepdims=keep)
    given = {"axis": axis, "keepdims": keep}
    if everything or "arg" in name:
        expected = np.asarray(getattr(np, name)(a, **given))
        return Case(name, got, expected, "bool" if name in ("any", "all") else "int64")
    exact = wide(a, dtype)
    expected = np.asarray(getattr(np, name)(exact, **given))
    if dtype in WHOLE:
        expected = expected.astype(dtype if name in ("max", "min") else widest(dtype))
        return Case(name, got, expected, str(expected.dtype))
    size = np.nan_to_num(np.abs(exact), nan=0, posinf=0)
    scales = {
        "sum": size.sum(**given),
        "mean": size.mean(**given),
        "prod": np.abs(np.nan_to_num(expected)),
    }
    scales |= {"var": (size**2).mean(**given), "std": size.max(initial=0.0) if size.size else 0.0}
    count = math.prod(folded)
    scale = np.asarray(scales.get(name, 0.0)) * max(count, 1)
    return Case(name, got, rounded(expected, dtype), dtype, scale, signed_zeros=False)


def ordered(draw):
    name = draw.pick("sort argsort cumulative_sum cumulative_prod searchsorted".split())
    dtype, shape = draw.pick(KINDS["numeric"]), draw.shape(least=1)
    x, a = draw.tensor(shape, dtype)
    axis = draw.axis(len(shape))
    exact = wide(a, dtype)
    if name in ("sort", "argsort"):
        descending = bool(draw.rng.random() < 0.3)
        got = getattr(xp, name)(x, axis=axis, descending=descending)
        keys = np.flip(a, axis) if descending else a
        order = np.argsort(keys, axis, kind="stable")
        if descending:
            order = a.shape[axis] - 1 - np.flip(order, axis)
        if name == "argsort":
            return Case(name, got, order, "int64")
        return Case(name, got, np.take_along_axis(a, order, axis), dtype)
    if name == "searchsorted":
        bounds = np.sort(drawn(draw.rng, (draw.pick(EXTENTS),), dtype, False))
        tensor = Tensor(bounds).astype(dtype)
        side = draw.pick(("left", "right"))
        return Case(
            name, xp.searchsorted(tensor, x, side=side), np.searchsorted(bounds, a, side), "int64"
        )
    function = np.cumsum if name == "cumulative_sum" else np.cumprod
    if dtype in WHOLE:
        kind = widest(dtype)
        return Case(name, getattr(xp, name)(x, axis=axis), function(a, axis, dtype=kind), kind)
    expected = function(exact, axis)
    size = np.nan_to_num(np.abs(exact), nan=0, posinf=0)
    scale = np.cumsum(size, axis) if name == "cumulative_sum" else np.abs(np.nan_to_num(expected))
    scale = scale * shape[axis]
    got = getattr(xp, name)(x, axis=axis)
    return Case(name, got, rounded(expected, dtype), dtype, scale, signed_zeros=False)


PRODUCTS = {
    "matmul": lambda space, one, two: space.matmul(one, two),
    "vecdot": lambda space, one, two: space.vecdot(one, two),
    "tensordot": lambda space, one, two: space.tensordot(one, two, axes=((0, 1), (1, 0))),
    "einsum": lambda space, one, two: space.einsum("bik,kj->jbi", one, two),
}


def products(draw):
    name, dtype = draw.pick(list(PRODUCTS)), draw.pick(KINDS["numeric"])
    m, k, n, batch = (int(draw.pick(EXTENTS)) for _ in range(4))
    matrices = (((m, k), (k, n)), ((batch, m, k), (k, n)), ((k,), (k, n)), ((m, k), (k,)))
    shapes = {
        "matmul": draw.pick(matrices),
        "vecdot": ((m, k), (k,)),
        "tensordot": ((m, k, batch), (k, m, n)),
        "einsum": ((batch, m, k), (k, n)),
    }
    (x, a), (y, b) = (draw.tensor(shape, dtype) for shape in shapes[name])
    function = PRODUCTS[name]
    expected = np.asarray(function(np, wide(a, dtype), wide(b, dtype)))
    if dtype in WHOLE:
        return Case(name, function(xp, x, y), expected.astype(dtype), dtype)
    sizes = [np.nan_to_num(np.abs(wide(each, dtype)), nan=0, posinf=0) for each in (a, b)]
    scale = np.asarray(function(np, *sizes)) * max(m * k, 1)
    got = function(xp, x, y)
    return Case(name, got, rounded(expected, dtype), dtype, scale, signed_zeros=False)


def erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def raised(x):
    return np.exp(x - x.max(-1, keepdims=True))


def softmax(x):
    return raised(x) / raised(x).sum(-1, keepdims=True)


def inverse_deviation(x):
    return 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


NEURAL = {
    "relu": lambda x: np.where(x < 0, 0.0, x),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "erf": erf,
    "exp2": np.exp2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "softmax": softmax,
    "log_softmax": lambda x: (
        x - x.max(-1, keepdims=True) - np.log(raised(x).sum(-1, keepdims=True))
    ),
    "layer_norm": lambda x: (x - x.mean(-1, keepdims=True)) * inverse_deviation(x),
    "rms_norm": lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6),
}


def neural(draw):
    name, dtype = draw.pick(list(NEURAL)), draw.pick(ALL_FLOATS)
    shape = draw.shape(least=1, extents=(1, 2, 3, 5, 7, 11))
    x, a = draw.tensor(shape, dtype)
    expected = NEURAL[name](wide(a, dtype))
    scale = 8.0 if "softmax" in name or name in ("gelu", "silu", "elu") else 0.0
    if name == "layer_norm":  # the mean's rounding, over the deviation
        scale = np.nan_to_num(inverse_deviation(wide(a, dtype))) * 16 * np.ones(shape)
    got = getattr(xp, name)(x)
    return Case(name, got, rounded(expected, dtype), dtype, scale, signed_zeros=False)


FILLS = {**dict.fromkeys(WHOLE, (0, 1, 5)), "bool": (True, False)}


def _meshgrid(draw, x, a):
    (y, b), way = draw.tensor((3,), x.dtype.name), draw.pick(("xy", "ij"))
    expected = np.meshgrid(a.reshape(-1), b, indexing=way)[0]
    return xp.meshgrid(x.reshape((x.size,)), y, indexing=way)[0], expected


def _full(draw, x, a):
    value = draw.pick(FILLS.get(x.dtype.name, (-0.0, 2.5, math.nan)))
    return xp.full(a.shape, value, dtype=x.dtype), np.full(a.shape, value, a.dtype)


def _arange(draw, x, a):
    start, end = (int(v) for v in draw.rng.integers(-5, 12, 2))
    step = draw.pick((1, 2, -1, -3))
    return xp.arange(start, end, step), np.arange(start, end, step)


def _linspace(draw, x, a):
    end, count = bool(draw.rng.random() < 0.5), draw.pick(EXTENTS)
    return xp.linspace(-2, 3, count, endpoint=end), np.linspace(-2, 3, count, end, dtype="f4")


def _eye(draw, x, a):
    m, n, k = (int(v) for v in draw.rng.integers(0, 5, 3))
    return xp.eye(m, n, k=k - 2), np.eye(m, n, k - 2, dtype="f4")


CREATED = {
    "full": _full,
    "zeros": lambda draw, x, a: (xp.zeros(a.shape, dtype=x.dtype), np.zeros_like(a)),
    "ones_like": lambda draw, x, a: (xp.ones_like(x), np.ones_like(a)),
    "asarray": lambda draw, x, a: (xp.asarray(x, copy=True), a),
    "meshgrid": _meshgrid,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
}


def created(draw):
    name, dtype = draw.pick(list(CREATED)), draw.pick(KINDS["any"])
    got, expected = CREATED[name](draw, *draw.tensor(draw.shape(), dtype))
    return Case(
        name,
        got,
        expected,
        {"arange": "int64", "linspace": "float32", "eye": "float32"}.get(name, dtype),
    )


FAMILIES = (
    *(elementwise, elementwise, elementwise, numbers, casts, moved, moved, moved),
    *(reductions, reductions, ordered, products, neural, created),
)


# --------------------------------------------------------------------------- judging


@quiet
def made(draw):
    """A case of what is drawn."""
    return draw.pick(FAMILIES)(draw)


def make(number):
    """Case `number`, whose number is numpy's seed."""
    return made(Draw(np.random.default_rng(number)))


@quiet
def judge(case, got):
    """What is wrong, or None."""
    expected = case.expected
    found = (got.shape, case.tensor.dtype.name)
    if found != (expected.shape, case.dtype):
        return f"{found}, expected {(expected.shape, case.dtype)}"
    if case.dtype not in ALL_FLOATS:
        return told(got != expected, got, expected)
    wanted, found = expected.astype(float), got.astype(float)
    finite = np.isfinite(wanted)
    as_infinite = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
    eps = max(EPS[case.dtype], EPS["float32"]) if case.dtype != "float64" else 8 * EPS["float64"]
    compute = eps if case.dtype == "float64" else EPS["float32"]
    room = (
        case.steps * eps * np.abs(wanted) * 2 + 8 * compute * case.scale + 2 * smallest(case.dtype)
    )
    is_off = ~np.where(finite, np.abs(found - wanted) <= room, as_infinite)
    zeros = (wanted == 0) & (found == 0) & case.signed_zeros
    return told(is_off | zeros & (np.signbit(found) != np.signbit(wanted)), found, wanted)


def told(is_wrong, got, expected):
    """The first element that is wrong, and how many are."""
    if not np.any(is_wrong):
        return None
    first = tuple(int(i) for i in np.argwhere(is_wrong)[0])
    return (
        f"{np.sum(is_wrong)} of {got.size}; at {first} {got[first]!r}, expected {expected[first]!r}"
    )


def smallest(dtype):
    """The smallest number of a dtype."""
    exponents = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
    return 2.0 ** exponents[dtype]


def plain(case):
    """The tensor in a dtype that numpy has."""
    return case.tensor.astype("float32") if case.dtype == "bfloat16" else case.tensor


def wrong(numbers):
    """What is wrong with cases, by number; all of them are one program."""
    cases = {number: make(number) for number in numbers}
    tensors = {number: plain(case) for number, case in cases.items()}
    try:
        realize(*tensors.values())
    except DeploError as error:
        if len(cases) == 1:
            return {number: f"{case.name}: {error}" for number, case in cases.items()}
        return {n: text for number in numbers for n, text in wrong([number]).items()}
    found = {number: judge(case, tensors[number].numpy()) for number, case in cases.items()}
    return {n: f"{cases[n].name} {cases[n].dtype}: {text}" for n, text in found.items() if text}
