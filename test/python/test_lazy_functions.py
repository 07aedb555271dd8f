"""The functions of the array API on lazy tensors, with numpy as the oracle."""

import math

import lazy_cases
import numpy as np
import pytest
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st
from lazy_oracle import FLOATS, SHAPES, WHOLE, agree, array, quiet

import deplo
import deplo.array_api as xp
from deplo import Tensor
from deplo.lazy.functions import ELEMENTWISE, UNARY

KINDS = {
    "bool": ("bool",),
    "integral": WHOLE,
    "integral or bool": ("bool", *WHOLE),
    "real floating": FLOATS,
    "floating": FLOATS,
    "real numeric": (*WHOLE, *FLOATS),
    "numeric": (*WHOLE, *FLOATS),
    "any": ("bool", *WHOLE, *FLOATS),
}
COMPOSED = {
    "integral": ("floor_divide", "remainder"),
    "numeric": ("square", "sign", "isfinite", "positive"),
    "real floating": ("reciprocal", "hypot", "logaddexp", "pow"),
}
ONE = UNARY | {"square", "sign", "isfinite", "positive", "reciprocal"}


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "uint64", *FLOATS])
@quiet
def test_element_wise_functions(dtype):
    rng = np.random.default_rng(0)
    a, b = array(rng, (5, 7), dtype), array(rng, (7,), dtype)
    nonzero = np.where(b == 0, 1, b).astype(dtype)
    names = [(n, kind) for n, (_, kind) in ELEMENTWISE.items()]
    names += [(name, kind) for kind, several in COMPOSED.items() for name in several]
    names += [(n, "real floating") for n in COMPOSED["integral"]]
    pairs = []
    for name, kind in names:
        if dtype not in KINDS[kind]:
            continue
        right = np.abs(b) % 7 if "shift" in name else b
        if dtype in WHOLE and name in COMPOSED["integral"]:
            right = nonzero
        operands = (a,) if name in ONE else (a, right)
        function = lazy_cases.numpys(name)
        pairs.append((name, getattr(xp, name)(*map(Tensor, operands)), function(*operands)))
    agree(pairs)


@settings(max_examples=20)
@given(st.data(), SHAPES, st.sampled_from(["bool", "int16", *FLOATS]))
@quiet
def test_element_wise_functions_of_views_that_broadcast(data, shape, dtype):
    rng = np.random.default_rng(6)
    known = [
        name
        for name, (_, kind) in ELEMENTWISE.items()
        if dtype in KINDS[kind] and "shift" not in name
    ]
    pairs = []
    for name in data.draw(st.lists(st.sampled_from(known), min_size=4, max_size=4)):
        a = array(rng, shape, dtype)
        keep = data.draw(st.integers(0, len(shape)))
        ones = [n if data.draw(st.booleans()) else 1 for n in shape[keep:]]
        b = array(rng, ones, dtype)
        x, y = Tensor(a.T).permute_dims(range(a.ndim)[::-1]), xp.flip(Tensor(b))
        operands, views = ((a,), (x,)) if name in ONE else ((a, np.flip(b)), (x, y))
        pairs.append((name, getattr(xp, name)(*views), getattr(np, name)(*operands)))
    agree(pairs)


@quiet
def test_numbers_meet_tensors_in_the_tensor_s_dtype():
    rng = np.random.default_rng(1)
    x, i, b = array(rng, (5,), "float32"), array(rng, (5,), "int16"), array(rng, (5,), "bool")
    lx, li, lb = Tensor(x), Tensor(i), Tensor(b)
    f = np.float32
    agree(
        [
            ("-", 2.5 - lx, f(2.5) - x),
            ("/", 1 / lx, f(1) / x),
            ("**2", lx**2, x**2),
            ("**-1", lx**-1, f(1) / x),
            ("2**", 2.0**lx, f(2) ** x),
            ("i**3", li**3, i**3),
            ("i//", li // 4, i // np.int16(4)),
            ("i%", -7 % (li * li + 1), np.int16(-7) % (i * i + 1)),
            ("<<", li << 2, i << np.int16(2)),
            ("&", lb & True, b & True),
            ("~", ~li, ~i),
            ("abs", abs(-lx), np.abs(-x)),
            ("==", li == 3, i == 3),
            ("clip", xp.clip(lx, -1, Tensor(np.float32(0.5))), np.clip(x, f(-1), f(0.5))),
            ("where", xp.where(lb, lx, 0.0), np.where(b, x, f(0))),
        ]
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@quiet
def test_reductions(dtype):
    rng = np.random.default_rng(2)
    pairs = []
    for shape, axes in (((3, 5, 2), (None, 1, (0, -1))), ((2, 0), (None, 0)), ((), (None, ()))):
        a = array(rng, shape, dtype, special=shape == (3, 5, 2))
        x = Tensor(a)
        for axis in axes:
            for keep in (False, True) if axis == 1 else (axis is None,):
                given = {"axis": axis, "keepdims": keep}
                names = ["any", "all", "count_nonzero"]
                empty = 0 in (
                    shape if axis is None else np.take(shape, axis, mode="wrap").reshape(-1)
                )
                if dtype != "bool":
                    names += ["sum", "prod"]
                    names += [] if empty else ["max", "min"]
                if dtype in FLOATS:
                    names += ["mean", "var", "std"]
                for name in names:
                    expected = getattr(np, name)(a, **given)
                    if dtype == "float16" and name in ("sum", "mean", "prod", "var", "std"):
                        expected = getattr(np, name)(a.astype("float32"), **given).astype(dtype)
                    pairs.append(
                        (f"{name} {shape} {given}", getattr(xp, name)(x, **given), expected)
                    )
    agree(pairs)


@quiet
def test_orders_and_searches():
    rng = np.random.default_rng(3)
    pairs = []
    for dtype in ("int16", "float32"):
        a = array(rng, (3, 7), dtype)
        x = Tensor(a)
        for axis in (0, 1):
            pairs += [
                ("argmax", xp.argmax(x, axis=axis), a.argmax(axis)),
                ("argmin", xp.argmin(x, axis=axis, keepdims=True), a.argmin(axis, keepdims=True)),
                ("sort", xp.sort(x, axis=axis), np.sort(a, axis, kind="stable")),
                ("argsort", xp.argsort(x, axis=axis), np.argsort(a, axis, kind="stable")),
                ("diff", xp.diff(x, axis=axis), np.diff(a, axis=axis)),
                ("diff2", xp.diff(x, axis=axis, n=2, prepend=x), np.diff(a, 2, axis, prepend=a)),
            ]
        wide = np.dtype("int64" if dtype == "int16" else dtype)
        order = np.array([[2, -1, 0], [1, 1, 0], [0, 6, 3]])
        ascending = np.arange(5).astype(dtype)
        pairs += [
            ("argmax all", xp.argmax(x), a.argmax()),
            ("cumsum", xp.cumulative_sum(x, axis=1), np.cumsum(a, 1, dtype=wide)),
            (
                "cumsum initial",
                xp.cumulative_sum(x, axis=0, include_initial=True),
                np.cumulative_sum(a, axis=0, dtype=wide, include_initial=True),
            ),
            ("cumprod", xp.cumulative_prod(x, axis=0), np.cumprod(a, 0, dtype=wide)),
            ("take", xp.take(x, Tensor([2, 0, -1]), axis=1), np.take(a, [2, 0, -1], 1)),
            (
                "take_along_axis",
                xp.take_along_axis(x, Tensor(order % 7), axis=1),
                np.take_along_axis(a, order % 7, 1),
            ),
            (
                "searchsorted",
                xp.searchsorted(Tensor(ascending), x, side="right"),
                np.searchsorted(ascending, a, side="right"),
            ),
        ]
    agree(pairs)


def test_creation():
    f, i = np.float32, np.int64
    v, w = np.arange(3.0), np.arange(2.0)
    meshes = [xp.meshgrid(Tensor(v), Tensor(w), indexing=each) for each in ("xy", "ij")]
    expected = [np.meshgrid(v, w, indexing=each) for each in ("xy", "ij")]
    agree(
        [
            ("arange", xp.arange(5), np.arange(5)),
            ("arange down", xp.arange(7, 0, -3), np.arange(7, 0, -3)),
            ("arange floats", xp.arange(0.5, 3.0, 0.5), np.arange(0.5, 3, 0.5, f)),
            ("linspace", xp.linspace(0, 1, 7), np.linspace(0, 1, 7, dtype=f)),
            ("open", xp.linspace(-1, 1, 4, endpoint=False), np.linspace(-1, 1, 4, False, dtype=f)),
            ("eye", xp.eye(3, 5, k=1), np.eye(3, 5, k=1, dtype=f)),
            ("zeros", xp.zeros((2, 0)), np.zeros((2, 0), f)),
            ("ones", xp.ones(3, dtype="bool"), np.ones(3, bool)),
            ("full", xp.full((2, 3), 7), np.full((2, 3), 7, i)),
            ("like", xp.ones_like(Tensor([1, 2])), np.ones(2, i)),
            ("tril", xp.tril(xp.ones((3, 4)), k=1), np.tril(np.ones((3, 4), f), 1)),
            ("triu", xp.triu(xp.ones((2, 3, 3)), k=-1), np.triu(np.ones((2, 3, 3), f), -1)),
            *(
                ("mesh", x, y)
                for m, e in zip(meshes, expected, strict=True)
                for x, y in zip(m, e, strict=True)
            ),
        ]
    )


@given(st.data())
def test_random_cases(data):
    """`make test-lazy` tries 5,000."""
    case = lazy_cases.made(lazy_cases.Draw(lazy_cases.Choices(data)))
    note(f"{case.name} {case.dtype}")
    tensor = lazy_cases.plain(case)
    assert lazy_cases.judge(case, tensor.numpy()) is None


def test_random_cases_as_one_program():
    assert lazy_cases.wrong(range(100)) == {}


def test_a_wrong_result_is_a_wrong_case():
    """What the judge is given is looked at: values, signs of zeros, NaN, dtypes."""
    cases = [lazy_cases.make(number) for number in range(30)]
    tensors = [lazy_cases.plain(case) for case in cases]
    deplo.lazy.realize(*tensors)
    for case, tensor in zip(cases, tensors, strict=True):
        got = tensor.numpy()
        assert lazy_cases.judge(case, got) is None
        if not got.size:
            continue
        other = got.copy()
        other.flat[0] = ~other.flat[0] if got.dtype.kind in "biu" else other.flat[0] + 1
        if got.dtype.kind in "biu" or np.isfinite(got.flat[0]):
            assert lazy_cases.judge(case, other) is not None, case.name
        if got.dtype.kind == "f" and not np.isnan(got.flat[0]):
            other.flat[0] = np.nan
            assert lazy_cases.judge(case, other) is not None, case.name


# --------------------------------------------------------------------------- movement

MOVES = (
    "reshape",
    "permute",
    "flip",
    "slice",
    "expand",
    "pad",
    "concat",
    "stack",
    "roll",
    "repeat",
    "tile",
)


def move(data, x, a):
    """A movement of a tensor and of an array."""
    rank = a.ndim
    axis = data.draw(st.integers(0, rank - 1)) if rank else 0
    match data.draw(st.sampled_from(MOVES)) if rank else "reshape":
        case "reshape":
            cut = data.draw(st.integers(0, rank))
            shape = (math.prod(a.shape[:cut]), math.prod(a.shape[cut:]))
            return xp.reshape(x, shape), a.reshape(shape)
        case "permute":
            order = data.draw(st.permutations(range(rank)))
            return xp.permute_dims(x, order), a.transpose(order)
        case "flip":
            return xp.flip(x, axis=axis), np.flip(a, axis)
        case "slice":
            bound = st.none() | st.integers(-8, 8)
            step = data.draw(st.sampled_from([1, 2, -1, -3, None]))
            key = (..., slice(data.draw(bound), data.draw(bound), step))
            return x[key], a[key]
        case "expand":
            return xp.broadcast_to(x[None], (2, *a.shape)), np.broadcast_to(a, (2, *a.shape))
        case "pad":
            widths = [
                data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(rank)
            ]
            return xp.pad(x, widths), np.pad(a, widths)
        case "concat":
            return xp.concat([x, xp.flip(x, axis=0)], axis=axis), np.concat([a, a[::-1]], axis)
        case "stack":
            return xp.stack([x, x], axis=axis), np.stack([a, a], axis)
        case "roll":
            return xp.roll(x, 2, axis=axis), np.roll(a, 2, axis)
        case "repeat":
            return xp.repeat(x, 2, axis=axis), np.repeat(a, 2, axis)
        case _:
            return xp.tile(x, (2,)), np.tile(a, (2,))


@settings(max_examples=25)
@given(st.data(), SHAPES, st.sampled_from(["bool", "int32", "float16", "float64"]))
def test_views_of_views(data, shape, dtype):
    a = array(np.random.default_rng(4), shape, dtype)
    pairs = []
    for _ in range(3):
        moved, expected = Tensor(a), a
        for _ in range(data.draw(st.integers(1, 3))):
            moved, expected = move(data, moved, expected)
            if expected.size > 2000 or expected.ndim > 4:
                break
        pairs.append((str(moved.node.operator), moved, expected))
    agree(pairs)


@settings(max_examples=20)
@given(st.data())
def test_indexing(data):
    a = np.arange(3 * 5 * 2).reshape(3, 5, 2)
    x, pairs = Tensor(a), []
    bound = st.none() | st.integers(-6, 6)
    steps = st.sampled_from([None, 1, 2, -1, -2])
    of_extent = [st.integers(-n, n - 1) | st.builds(slice, bound, bound, steps) for n in a.shape]
    for _ in range(6):
        key = [data.draw(of_extent[i]) for i in range(data.draw(st.integers(0, 3)))]
        if data.draw(st.booleans()):
            key.insert(data.draw(st.integers(0, len(key))), None)
        if data.draw(st.booleans()):
            key.append(...)
        pairs.append((str(key), x[tuple(key)], a[tuple(key)]))
    agree(pairs)


def test_indexing_by_tensors():
    a = np.arange(3 * 5 * 2).reshape(3, 5, 2)
    x, i, j = Tensor(a), np.array([[2, -1], [0, 1]]), np.array([1, -5])
    agree(
        [
            ("rows", x[Tensor(i)], a[i]),
            ("two", x[Tensor(i), Tensor(j)], a[i, j]),
            ("inner", x[1:, Tensor(j), ::-1], a[1:, j, ::-1]),
            ("0-d", x[Tensor(2)], a[2]),
        ]
    )
    with pytest.raises(IndexError, match="expected 0 <= index < 3"):
        x[Tensor([3])].realize()


def test_the_rest_of_manipulation():
    a = np.arange(24.0).reshape(2, 1, 3, 4)
    x = Tensor(a)
    agree(
        [
            ("squeeze", xp.squeeze(x, 1), a.squeeze(1)),
            ("expand_dims", xp.expand_dims(x, axis=-1), np.expand_dims(a, -1)),
            ("moveaxis", xp.moveaxis(x, (0, 1), (-1, 0)), np.moveaxis(a, (0, 1), (-1, 0))),
            ("roll all", xp.roll(x, 5), np.roll(a, 5)),
            ("flat", xp.concat([x, x], axis=None), np.concat([a, a], axis=None)),
            ("unstack", xp.unstack(x, axis=2)[1], a[:, :, 1]),
            ("repeat all", xp.repeat(x, 2), np.repeat(a, 2)),
            ("tile", xp.tile(x, (2, 1, 1, 1, 2)), np.tile(a, (2, 1, 1, 1, 2))),
            ("shrink", x[0, 0].shrink([(1, 3), (0, 2)]), a[0, 0, 1:3, 0:2]),
            ("broadcast", xp.broadcast_arrays(x, Tensor(a[0]))[1], np.broadcast_to(a[0], a.shape)),
        ]
    )


# --------------------------------------------------------------------------- products and models


def test_products():
    rng = np.random.default_rng(5)
    a, b, v = rng.random((2, 3, 5)), rng.random((5, 7)), rng.random(5)
    x, y, z = Tensor(a), Tensor(b), Tensor(v)
    whole = rng.integers(-5, 5, (3, 3)).astype(np.int32)
    agree(
        [
            ("matmul", x @ y, a @ b),
            ("vector", z @ y, v @ b),
            ("integers", Tensor(whole) @ Tensor(whole), whole @ whole),
            ("empty", Tensor(a[:, :, :0]) @ Tensor(b[:0]), a[:, :, :0] @ b[:0]),
            ("mT", y.mT, b.T),
            ("vecdot", xp.vecdot(x, z), np.vecdot(a, v)),
            ("tensordot", xp.tensordot(x, y, axes=1), np.tensordot(a, b, 1)),
            (
                "axes",
                xp.tensordot(x, y, axes=((2,), (0,))),
                np.tensordot(a, b, ((2,), (0,))),
            ),
            ("einsum", xp.einsum("bik,kj->jbi", x, y), np.einsum("bik,kj->jbi", a, b)),
            ("trace-like", xp.einsum("bik,k->", x, z), np.einsum("bik,k->", a, v)),
        ]
    )


def test_what_models_need():
    torch.manual_seed(0)
    image, filters = torch.randn(2, 4, 7, 7), torch.randn(6, 2, 3, 3)
    x, w, b = torch.randn(3, 8), torch.randn(5, 8), torch.randn(5)
    scale, shift = torch.randn(8), torch.randn(8)
    q, k, v = torch.randn(3, 2, 4, 6, 8)
    functional = torch.nn.functional
    li, lf, lx, lw, lb, ls, lh, lq, lk, lv = map(
        Tensor, (image, filters, x, w, b, scale, shift, q, k, v)
    )
    pairs = [
        (
            functional.conv2d(image, filters, None, 2, 1, 1, 2),
            li.convolution(lf, stride=2, padding=1, groups=2),
        ),
        (functional.max_pool2d(image, 3, 2, 1), li.max_pool2d(3, stride=2, padding=1)),
        (functional.avg_pool2d(image, 2), li.avg_pool2d(2)),
        (functional.linear(x, w, b), lx.linear(lw, lb)),
        (functional.layer_norm(x, (8,), scale, shift), lx.layer_norm(ls, lh)),
        (functional.layer_norm(x, (8,), None, shift), lx.layer_norm(None, lh)),
        (functional.rms_norm(x, (8,), scale, 1e-6), lx.rms_norm(ls)),
        (x.softmax(0), lx.softmax(axis=0)),
        (x.log_softmax(-1), lx.log_softmax()),
        (functional.gelu(x, approximate="tanh"), lx.gelu(approximate="tanh")),
        (functional.elu(x, 0.5), lx.elu(alpha=0.5)),
        (functional.silu(x), lx.silu()),
        (
            functional.scaled_dot_product_attention(q, k, v, is_causal=True),
            lq.scaled_dot_product_attention(lk, lv, is_causal=True),
        ),
        (w[torch.tensor([4, 0])], lw.embedding(Tensor([4, 0]))),
    ]
    agree([(str(i), lazy, eager.numpy()) for i, (eager, lazy) in enumerate(pairs)])


def test_a_model_has_the_kernels_of_its_twin_in_pytorch():
    x, w, scale = torch.randn(4, 8), torch.randn(16, 8), torch.randn(16)

    def eager(x, w, scale):
        hidden = torch.nn.functional.silu(torch.nn.functional.linear(x, w))
        return torch.nn.functional.rms_norm(hidden, (16,), scale, 1e-6)

    lazy = Tensor(x).linear(Tensor(w)).silu().rms_norm(Tensor(scale))
    twin = deplo.compile(eager, (x, w, scale), target="cpu")
    assert [k.source for k in lazy.program().plan.kernels] == [k.source for k in twin.kernels]


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda x, i: x + i, TypeError, "different kinds"),
        (lambda x, i: i + 1.5, TypeError, "a Python float does not meet int64"),
        (lambda x, i: x + True, TypeError, "a Python bool does not meet float32"),
        (lambda x, i: Tensor([1], "int8") + 1000, OverflowError, "1000 is no int8"),
        (
            lambda x, i: xp.sqrt(i),
            TypeError,
            "sqrt takes tensors of floating dtypes, not int64",
        ),
        (lambda x, i: i / i, TypeError, "divide takes tensors of floating"),
        (lambda x, i: xp.add(1, 2), TypeError, "add takes at least one deplo.Tensor"),
        (lambda x, i: xp.exp([1.0]), TypeError, "takes deplo.Tensors, not list"),
        (lambda x, i: x + xp.zeros(2), ValueError, "add: shapes .* do not broadcast"),
        (lambda x, i: x.reshape((2, 2)), ValueError, r"reshape: size \[2, 2\] does not hold 3"),
        (lambda x, i: x.sum(axis=1), IndexError, "axis 1 is outside"),
        (lambda x, i: x.sum(axis=(0, -1)), ValueError, "name one axis twice"),
        (lambda x, i: xp.zeros((0, 2)).max(axis=0), ValueError, "max of .* needs one element"),
        (lambda x, i: x[3], IndexError, "index 3 is outside axis 0 of extent 3"),
        (lambda x, i: x[0, 0], IndexError, "2 indices do not fit"),
        (lambda x, i: x[1.5], IndexError, "not 1.5"),
        (lambda x, i: x @ xp.zeros(4), ValueError, "matmul: cannot multiply"),
        (lambda x, i: x.nothing, AttributeError, "has no 'nothing'"),
        (lambda x, i: x.to_device("gpu"), ValueError, "computed on the CPU"),
        (lambda x, i: xp.squeeze(x, 0), ValueError, "not all of extent 1"),
        (lambda x, i: xp.einsum("ii->", xp.zeros((2, 2))), ValueError, "einsum: 'ii'"),
    ],
)
def test_refusals(act, error, said):
    with pytest.raises(error, match=said):
        act(Tensor([1.0, -2.0, 3.0]), Tensor([1, 2, 3]))
