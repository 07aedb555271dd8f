"""`deplo.array_api`: dtypes that no IR has, indexing and assignment, extensions, libraries that use it."""

import pickle
import textwrap
import types
from math import inf

import numpy as np
import pytest
from lazy_oracle import UNSIGNED, agree, quiet

import deplo
import deplo.array_api as xp
from deplo import Tensor, Variable
from deplo.lazy import programs, realize


def close(pairs):
    """Each tensor must be of numpy's dtype and, within some roundings, of its elements."""
    pairs = list(pairs)
    realize(*(got for _, got, _ in pairs))
    for name, got, expected in pairs:
        expected = np.asarray(expected)
        assert got.numpy().dtype == expected.dtype, (name, got.dtype, expected.dtype)
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(got.numpy(), expected, 64 * eps, 64 * eps, err_msg=name)


# --------------------------------------------------------------------------- the namespace


def test_it_is_a_module_with_its_extensions():
    assert isinstance(xp, types.ModuleType)
    assert deplo.array_api is xp
    assert xp.linalg.matmul is not None
    with pytest.raises(AttributeError, match="linalg has no 'lu'"):
        _ = xp.linalg.lu
    info = xp.__array_namespace_info__()
    assert list(info.dtypes(kind=("unsigned integer", "complex floating"))) == [
        *UNSIGNED,
        *("complex64", "complex128"),
    ]
    assert info.default_dtypes()["complex floating"] is xp.complex64
    assert "bfloat16" not in info.dtypes()


def test_dtypes_meet_as_in_the_standard():
    for one, other, expected in (
        ("int8", "uint8", "int16"),
        ("uint32", "int8", "int64"),
        ("int64", "uint16", "int64"),
        ("float64", "complex64", "complex128"),
        ("float32", "complex64", "complex64"),
    ):
        assert xp.result_type(getattr(xp, one), getattr(xp, other)).name == expected
        assert (xp.ones(1, dtype=one) + xp.ones(1, dtype=other)).dtype.name == expected
    assert (xp.ones(1) * 2j).dtype is xp.complex64
    assert not xp.can_cast(xp.uint64, xp.int64)
    for act in (
        lambda: xp.result_type(xp.uint64, xp.int64),
        lambda: xp.ones(1, dtype="int64") * 2j,
        lambda: xp.ones(1, dtype="complex64") + xp.ones(1, dtype="int64"),
        lambda: xp.ones(1, dtype="complex64") < 1.0,
        lambda: xp.astype(xp.ones(1, dtype="complex64"), xp.float32),
    ):
        with pytest.raises(TypeError):
            act()


def test_nothing_is_equal_to_none():
    x = xp.asarray([1])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        _ = x + None


# --------------------------------------------------------------------------- dtypes


@quiet
def test_large_unsigned_integers():
    a = np.array([0, 1, 7, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 1], np.uint64)
    b = np.array([1, 2**63, 2**64 - 1, 2, 3, 2**63 + 4, 10], np.uint64)
    x, y = Tensor(a), Tensor(b)
    floats = np.array([0.0, 3.7, 2.0**63, 1.8e19])
    agree(
        [
            ("//", x // y, a // b),
            ("%", x % y, a % b),
            ("<", x < y, a < b),
            ("max", xp.max(x), a.max()),
            ("sort", xp.sort(x, descending=True), np.sort(a)[::-1]),
            (">>", x >> (y % 64), a >> b % 64),
            ("sum", xp.sum(x), a.sum()),
            ("pow", x ** (y % 9), a ** (b % 9)),
            ("to float", x.astype("float64"), a.astype("float64")),
            ("to float32", x.astype("float32"), a.astype("float32")),
            ("from float", Tensor(floats).astype("uint64"), floats.astype("uint64")),
            *(
                (f"cumsum {d}", xp.cumulative_sum(x, dtype=d), np.cumsum(a, dtype=d))
                for d in (*UNSIGNED, "int32")
            ),
            ("any", xp.any(x.astype("uint8")), a.astype("uint8").any()),
            ("narrow", x.astype("uint8"), a.astype("uint8")),
            ("wide", x.astype("uint32").astype("int64"), a.astype("uint32").astype("int64")),
            ("number", x * (2**64 - 1), a * np.uint64(2**64 - 1)),
            ("arange", xp.arange(250, 240, -3, dtype="uint8"), np.arange(250, 240, -3, "u1")),
        ]
    )
    assert repr(x[-1]) == "Tensor(18446744073709551615, dtype=uint64)"
    assert int(x[-1]) == 2**64 - 1
    with pytest.raises(OverflowError, match="-1 is no uint64"):
        _ = x + -1


COMPLEX = {
    "add": lambda m, z, w: z + w,
    "number": lambda m, z, w: 1.5 - z * 2j,
    "multiply": lambda m, z, w: z * w,
    "divide": lambda m, z, w: z / w,
    "negative": lambda m, z, w: -z,
    "abs": lambda m, z, w: abs(z),
    "conj": lambda m, z, w: m.conj(z),
    "real": lambda m, z, w: m.real(z) + m.imag(z),
    "sign": lambda m, z, w: m.sign(z),
    "exp": lambda m, z, w: m.exp(z),
    "expm1": lambda m, z, w: m.expm1(z),
    "log": lambda m, z, w: m.log(z),
    "log2": lambda m, z, w: m.log2(z),
    "sqrt": lambda m, z, w: m.sqrt(z),
    "tanh": lambda m, z, w: m.tanh(z),
    "pow": lambda m, z, w: z**w,
    "sum": lambda m, z, w: m.sum(z, axis=0),
    "mean": lambda m, z, w: m.mean(z),
    "prod": lambda m, z, w: m.prod(z, axis=1),
    "cumprod": lambda m, z, w: m.cumulative_prod(z, axis=1),
    "matmul": lambda m, z, w: m.matmul(z, w.T),
    "vecdot": lambda m, z, w: m.vecdot(z, w),
    "move": lambda m, z, w: m.flip(z, axis=1)[1:, ::2],
    "where": lambda m, z, w: m.where(m.real(z) > 0, z, w),
    "concat": lambda m, z, w: m.concat([z, w], axis=1),
}


@quiet
def test_complex_numbers():
    rng = np.random.default_rng(0)
    for dtype in ("complex64", "complex128"):
        a = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))).astype(dtype)
        b = (a * 1j + 2).astype(dtype)
        b[0, 0] = a[0, 0]
        close((n, f(xp, Tensor(a), Tensor(b)), f(np, a, b)) for n, f in COMPLEX.items())
        assert (Tensor(a) == Tensor(b)).tolist() == (a == b).tolist()
    strided = Tensor(a[:, ::2])
    np.testing.assert_array_equal((strided + 0).numpy(), a[:, ::2])
    assert np.shares_memory(strided.numpy(), a)
    assert pickle.loads(pickle.dumps(strided)).tolist() == a[:, ::2].tolist()
    assert complex(Tensor(1 + 2j)) == 1 + 2j
    assert xp.any(Tensor([0j, 1j])).item() is True
    with pytest.raises(TypeError, match="sort takes tensors of real numeric dtypes"):
        xp.sort(strided)


def test_tangents_of_complex_infinities_have_the_signs_of_the_standard():
    """C, and numpy, give the zero the sign of sin(2 im)."""
    turned = xp.asarray([complex(inf, 2), complex(inf, -2), complex(-inf, 2), complex(inf, 0.5)])
    assert str(xp.tanh(turned).tolist()) == "[(1+0j), (1-0j), (-1+0j), (1+0j)]"
    assert str(xp.tan(xp.asarray([complex(2, inf), complex(-2, -inf)])).tolist()) == "[1j, (-0-1j)]"


def test_a_plan_has_complex_data():
    a = np.array([1 + 1j, 2, 3j], np.complex64)
    x = Tensor(a)
    plan = deplo.prepare(x * x)
    np.testing.assert_allclose(plan.execute()[0].numpy(), a * a)
    np.testing.assert_allclose(plan.bind(x, a + 1).execute()[0].numpy(), (a + 1) ** 2)
    n = Variable("n", 1, 3)
    (found,) = deplo.prepare(x[:n] * 2j).execute_with(n=2)
    np.testing.assert_allclose(found.numpy(), a[:2] * 2j)


# --------------------------------------------------------------------------- arithmetic


@quiet
def test_powers_quotients_and_remainders():
    base, power = np.arange(-4, 5, dtype=np.int16), np.arange(9, dtype=np.int16)
    a = np.array([7.5, -7.5, 0.3, 1e300, -1e-300, 5.0])
    b = np.array([2.0, 2.0, 0.1, 7e-5, 3.0, -0.0])
    agree(
        [
            ("pow", Tensor(base) ** Tensor(power), base**power),
            *((d, Tensor(base).astype(d) ** 5, base.astype(d) ** 5) for d in UNSIGNED),
            ("large", Tensor(base) ** 99, base**99),
            ("//", Tensor(a) // Tensor(b), a // b),
            ("%", Tensor(a) % Tensor(b), a % b),
            ("nextafter", xp.nextafter(Tensor(a), Tensor(b)), np.nextafter(a, b)),
        ]
    )
    inf = xp.asarray(float("inf"))
    assert [repr(float(each)) for each in (inf // 2.0, 1.0 // -inf)] == ["inf", "-0.0"]
    with pytest.raises(ValueError, match="negative integer powers"):
        _ = Tensor(base) ** -1


# --------------------------------------------------------------------------- x[…] and x[…] = v

A = np.arange(3 * 4 * 5).reshape(3, 4, 5)
ROWS, MASK = np.array([2, -1, 0]), np.arange(12).reshape(3, 4) % 3 == 0
KEYS = (
    *(0, -1, ..., None, (), slice(1, None), (slice(None), 1), (0, 1, 2), (..., slice(3, 0, -1))),
    *((slice(None, None, 2), slice(None), slice(1, 5, 3)), (None, 1, ..., None), slice(2, 2)),
    *(
        ROWS,
        (ROWS, 1),
        (1, ROWS),
        (ROWS, ROWS, ROWS),
        (slice(None), ROWS, 0),
        (0, slice(1, 3), ROWS),
    ),
    *(
        MASK,
        (slice(None), MASK[0]),
        (0, MASK[0], ROWS[:2]),
        MASK & False,
        A > 20,
        (..., A[0, 0] > 2),
    ),
)


def tensors(key):
    """A key with tensors for its arrays."""
    items = key if isinstance(key, tuple) else (key,)
    items = tuple(Tensor(item) if isinstance(item, np.ndarray) else item for item in items)
    return items if isinstance(key, tuple) else items[0]


def said(key):
    return str(key).replace("\n", "")


@pytest.mark.parametrize("key", KEYS, ids=said)
def test_indexing_and_assignment(key):
    x, expected = Tensor(A), np.asarray(A[key])
    np.testing.assert_array_equal(x[tensors(key)].numpy(), expected, said(key))
    values = np.arange(-100, expected.size - 100).reshape(expected.shape)
    for value in (-5, values):
        y, b = Tensor(A), A.copy()
        b[key] = value
        y[tensors(key)] = Tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(y.numpy(), b, said(key))
    np.testing.assert_array_equal(x.numpy(), A)


def test_an_assignment_changes_one_tensor_only():
    data = np.zeros(3)
    x = Tensor(data)
    row, before = x[1:], x + 1
    x[1] = 7.0
    assert [each.tolist() for each in (x, row, before)] == [[0, 7, 0], [0, 0], [1, 1, 1]]
    assert data.tolist() == [0, 0, 0]
    same, other = xp.asarray(x, copy=False), xp.asarray(x)
    x[1] = 8.0
    assert [each.tolist() for each in (same, other)] == [[0, 8, 0], [0, 7, 0]]
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(x, dtype="float32", copy=False)
    z = xp.zeros(2, dtype="complex64")
    z[0] = 1j
    u = xp.zeros(2, dtype="uint64")
    u[xp.asarray([False, True])] = 2**64 - 1
    assert (z.tolist(), u.tolist()) == ([1j, 0], [0, 2**64 - 1])


def test_keys_of_tensors_without_axes():
    x = xp.arange(5)
    assert x[xp.asarray(1) : xp.asarray(4, dtype="uint8")].tolist() == [1, 2, 3]
    assert x[xp.asarray(True)].tolist() == [[0, 1, 2, 3, 4]]
    assert xp.asarray(3)[xp.asarray(False)].shape == (0,)
    places = xp.take_along_axis(x, xp.asarray([-1, 0]))
    assert places.tolist() == [4, 0]
    assert xp.eye(2, k=-(2**70)).tolist() == [[0, 0], [0, 0]]
    assert xp.repeat(x[:3], xp.asarray([2, 0, 1])).tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda x: x[xp.asarray([True])], IndexError, r"a mask of \[1\] is of axes of \[3\]"),
        (lambda x: x[xp.asarray([1.0])], IndexError, "float32 is no index"),
        (lambda x: x[xp.asarray([3])].realize(), IndexError, "expected 0 <= index < 3"),
        (lambda x: x.__setitem__(0, np.ones(1)), TypeError, "not a ndarray"),
        (lambda x: x.__setitem__(0, 1.5), TypeError, "does not meet int64"),
        (lambda x: x.__setitem__(0, xp.ones(1)), TypeError, "of different kinds"),
        (lambda x: x.__setitem__(slice(0, 2), xp.asarray([1, 2, 3])), ValueError, "expand"),
        (lambda x: x.__setitem__(3, 1), IndexError, "index 3 is outside"),
    ],
)
def test_keys_and_values_that_do_not_fit(act, error, message):
    with pytest.raises(error, match=message):
        act(xp.asarray([1, 2, 3]))


def test_elements_of_data_and_of_expressions_are_read_without_a_program_each():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    assert bool(x[0, 0] * 2 == 2)
    known = len(programs._PROGRAMS)
    assert [int(x[i, j]) for i in range(2) for j in range(3)] == [1, 2, 3, 4, 5, 6]
    assert [int(x[i, j] * 2) for i in range(2) for j in range(3)] == [2, 4, 6, 8, 10, 12]
    y = x * 3 + 1
    assert [int(y[i, 0]) for i in range(2)] == [4, 13]
    assert y.node.array is not None
    assert len(programs._PROGRAMS) <= known + 2


# --------------------------------------------------------------------------- what numpy computes


def test_sets_and_places():
    a = np.array([[3.0, np.nan, 1.0], [3.0, np.nan, -0.0]])
    x = Tensor(a)
    assert [each.tolist() for each in xp.nonzero(Tensor(a == 3))] == [[0, 1], [0, 0]]
    found = xp.unique_all(x)
    assert found.counts.tolist() == [1, 1, 2, 1, 1]
    assert found.inverse_indices.shape == a.shape
    assert xp.unique_values(Tensor([2, 1, 2])).tolist() == [1, 2]
    assert xp.unique_counts(Tensor([2, 1, 2])).counts.tolist() == [1, 2]
    assert xp.unique_inverse(Tensor([[2, 1]])).inverse_indices.tolist() == [[1, 0]]


def test_linear_algebra():
    rng = np.random.default_rng(1)
    m, wide = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 4))
    square = m @ m.swapaxes(1, 2) + np.eye(3)
    x, w, s = Tensor(m), Tensor(wide), Tensor(square)
    la = xp.linalg
    q, r = la.qr(w)
    u, values, vh = la.svd(w, full_matrices=False)
    close(
        [
            ("outer", la.outer(w[0, :], w[1, :]), np.outer(wide[0], wide[1])),
            ("cross", la.cross(x, x[:, ::-1, :]), np.cross(m, m[:, ::-1])),
            ("diagonal", la.diagonal(x, offset=1), np.diagonal(m, 1, 1, 2)),
            ("beyond", la.diagonal(x, offset=5), np.diagonal(m, 5, 1, 2)),
            ("trace", la.trace(x), np.trace(m, 0, 1, 2)),
            ("cholesky", la.cholesky(s, upper=True), np.linalg.cholesky(square).swapaxes(1, 2)),
            ("det", la.det(x), np.linalg.det(m)),
            ("inv", la.inv(x) @ x, np.broadcast_to(np.eye(3), m.shape)),
            ("solve", la.solve(x, w), np.linalg.solve(m, np.broadcast_to(wide, (2, 3, 4)))),
            (
                "vector",
                la.solve(x, w[:, 0]),
                np.linalg.solve(m, np.ones((2, 1, 1)) * wide[:, :1])[..., 0],
            ),
            ("eigh", la.eigh(s).eigenvalues, np.linalg.eigvalsh(square)),
            ("qr", q @ r, wide),
            ("svd", (u * values) @ vh, wide),
            ("pinv", la.pinv(w), np.linalg.pinv(wide)),
            ("slogdet", la.slogdet(x).logabsdet, np.linalg.slogdet(m)[1]),
            ("norm", la.vector_norm(w, axis=0, ord=3), np.linalg.norm(wide, 3, 0)),
            *(
                (f"norm {o}", la.matrix_norm(w, ord=o), np.linalg.norm(wide, o))
                for o in ("fro", "nuc", 1, -2)
            ),
        ]
    )
    assert la.matrix_rank(Tensor(np.ones((2, 3, 3)))).tolist() == [1, 1]
    with pytest.raises(np.linalg.LinAlgError):
        la.inv(xp.zeros((2, 2)))


def test_fourier_transforms():
    a = np.random.default_rng(2).normal(size=(3, 8))
    for dtype in ("float32", "float64"):
        b = a.astype(dtype)
        x, f = Tensor(b), np.fft
        close(
            [
                ("rfft", xp.fft.rfft(x), f.rfft(b)),
                ("irfft", xp.fft.irfft(xp.fft.rfft(x), norm="ortho"), f.irfft(f.rfft(b), norm="ortho")),
                ("fftn", xp.fft.fftn(x, s=(2, 4)), f.fftn(b, (2, 4), (0, 1))),
                ("shift", xp.fft.fftshift(x), f.fftshift(b)),
                ("unshift", xp.fft.ifftshift(x[:, :7]), f.ifftshift(b[:, :7])),
                ("freq", xp.fft.fftfreq(7, d=0.5, dtype=dtype), f.fftfreq(7, 0.5).astype(dtype)),
                ("rfreq", xp.fft.rfftfreq(8, dtype=dtype), f.rfftfreq(8).astype(dtype)),
            ]
        )  # fmt: skip


# --------------------------------------------------------------------------- libraries

SCIPY = """
    import deplo
    from scipy import ndimage, signal, stats
    programs = {
        "stats": lambda a: stats.ttest_ind(stats.zscore(a), a).pvalue,
        "signal": lambda a: signal.hilbert(signal.detrend(a[:, 0])),
        "ndimage": lambda a: ndimage.gaussian_filter(a, 1.0),
    }
"""
SKLEARN = """
    import deplo
    import sklearn
    from sklearn import decomposition, linear_model, preprocessing
    sklearn.set_config(array_api_dispatch=True)
    programs = {
        "PCA": lambda a: decomposition.PCA(2, svd_solver="full").fit_transform(a),
        "Ridge": lambda a: linear_model.Ridge(solver="svd").fit(a, a[:, 0]).predict(a),
        "scaler": lambda a: preprocessing.StandardScaler().fit_transform(a),
    }
"""


@pytest.mark.parametrize(("library", "code"), [("scipy", SCIPY), ("sklearn", SKLEARN)])
def test_libraries_compute_with_tensors(library, code, python, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check = """
    import numpy as np
    a = np.random.default_rng(0).normal(size=(12, 4))
    for name, program in programs.items():
        got = program(deplo.Tensor(a))
        assert isinstance(got, deplo.Tensor), name
        np.testing.assert_allclose(got.numpy(), program(a), 1e-9, 1e-12, err_msg=name)
    """
    done = python(textwrap.dedent(code + check))
    assert done.returncode == 0, done.stderr
