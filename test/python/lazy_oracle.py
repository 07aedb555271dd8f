"""Lazy tensors against numpy: what the tests of `deplo.lazy` share."""

import functools
import warnings

import numpy as np
from hypothesis import strategies as st

from deplo.lazy import Tensor, realize
from deplo.lazy.dtypes import as_dtype

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
WHOLE = (*INTEGERS, *UNSIGNED)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 5, 7]), max_size=3).map(tuple)


def array(rng, shape, dtype, special=True):
    """Elements of a dtype: some of the values that tell implementations apart, the others small."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in WHOLE:
        return rng.integers(-9, 9, shape).astype(dtype)
    values = (rng.random(shape) * 4 - 2).astype(dtype)
    if special:
        values = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), values)
    return np.asarray(values).astype(dtype)


def agree(pairs):
    """Realize the tensors of (name, tensor, expected) in one program; each must be what numpy gives."""
    realize(*(tensor for _, tensor, _ in pairs))
    for name, tensor, expected in pairs:
        expected = np.asarray(expected)
        assert tensor.shape == expected.shape, (name, tensor.shape, expected.shape)
        assert tensor.dtype is as_dtype(expected.dtype), (name, tensor.dtype, expected.dtype)
        got = tensor.numpy()
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(got, expected, err_msg=name)
            continue
        eps = np.finfo(expected.dtype).eps
        rtol = 8 * max(eps, np.finfo(np.float32).eps) if eps < 1e-3 else 2 * eps
        if expected.dtype == np.float64:
            rtol = 64 * eps
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol, err_msg=name)
        zero = (expected == 0) & (got == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]), name)


def quiet(function):
    """Without numpy's warnings about NaN, overflow and empty means."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return wrapped


def lazily(*arrays):
    """Tensors of arrays."""
    return [Tensor(each) for each in arrays]
