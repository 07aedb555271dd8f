"""Lazy tensors: expressions that exist once, what is computed when, what the data are."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from lazy_oracle import agree, lazily

import deplo.array_api as xp
from deplo import Tensor
from deplo.lazy import expression, prepare, realize
from deplo.lazy.tensor import VERSION


def nodes_of(*tensors):
    """All nodes that tensors are computed from."""
    found, waiting = set(), [tensor.node for tensor in tensors]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.sources
    return found


# --------------------------------------------------------------------------- expressions


def test_equal_expressions_are_one_node_and_one_kernel():
    a, b = lazily(np.ones((3, 4), np.float32), np.ones(4, np.float32))
    x, y = xp.exp(a + b) * 2, xp.exp(a + b) * 2
    assert x.node is y.node
    # two leaves, add, exp, 2.0, mul
    assert len(nodes_of(x, y)) == 6
    assert len(prepare(x, y).kernels) == 1


def test_numbers_that_differ_only_in_sign_or_type_are_different():
    x = Tensor(np.ones(3, np.float32))
    fills = [xp.full(3, v, dtype="float32") for v in (0.0, -0.0, float("nan"), float("nan"))]
    assert len({f.node for f in fills}) == 3
    assert (x * 1).node is (x * 1.0).node
    assert xp.full(3, 1).node is not xp.full(3, True).node


def test_leaves_of_the_same_memory_are_one_node_and_others_are_not():
    data = np.arange(4.0)
    assert Tensor(data).node is Tensor(data).node
    assert Tensor(data).node is not Tensor(data[::-1]).node
    assert Tensor(data).node is not Tensor(data.copy()).node


def test_expressions_that_nobody_holds_go_away():
    x = Tensor(np.ones(3, np.float32))
    gc.collect()
    before = len(expression._NODES)
    y = xp.exp(x) + xp.sin(x)
    assert len(expression._NODES) == before + 3
    del y
    gc.collect()
    assert len(expression._NODES) == before


def test_what_was_computed_forgets_what_it_came_from():
    x = Tensor(np.ones(3, np.float32))
    for _ in range(5):
        x = (x + 1).realize()
    assert nodes_of(x) == {x.node}
    assert x.tolist() == [6.0, 6.0, 6.0]


def test_movement_fuses_into_its_reader():
    x = Tensor(np.arange(6, dtype=np.float32))
    y = x.reshape([2, 3]).expand([4, 2, 3]).sum(axis=0)
    assert len(y.program().kernels) == 1
    text = y.program().ir("loop")
    assert text.count("loop.kernel") == 1
    assert "%i * 3 + %j" in text
    assert y.tolist() == [[0.0, 4.0, 8.0], [12.0, 16.0, 20.0]]


def test_a_structure_is_compiled_once():
    first, second = (Tensor(np.full(3, v, np.float32)) for v in (1.0, 2.0))

    def code(tensor):
        return tensor.program().code

    assert code(first * 3) is code(second * 3)
    assert code(first * 3) is not code(first * 4)
    assert code(first * Tensor(3.0)) is code(first * Tensor(4.0))
    assert code(first * second) is not code(first * first)


def test_deep_expressions_need_no_deep_stack():
    x = y = Tensor(np.ones(2, np.float32))
    for _ in range(3000):
        y = -y
    assert len(nodes_of(y)) == 3001
    assert y.node.shape == x.shape
    del y


def test_a_program_takes_and_gives_several_tensors():
    a, b = lazily(np.arange(3.0), np.arange(3.0) + 1)
    total, product = a + b, a * b
    realize(total, product, total, a)
    assert total.node.array is not None
    assert product.tolist() == [0.0, 2.0, 6.0]
    assert (total - product).tolist() == [1.0, 1.0, -1.0]


def test_threads_may_compute_the_same_expression():
    x = Tensor(np.arange(4.0))
    y = [x * 2, x * 2 + 1]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: y[i % 2].tolist(), range(8)))
    assert found == [[0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0]] * 4


# --------------------------------------------------------------------------- data


def test_arrays_are_read_where_they_are():
    data = np.arange(12.0).reshape(3, 4)
    assert Tensor(data).numpy() is not None
    assert np.shares_memory(Tensor(data).numpy(), data)
    view = Tensor(data[::2, ::-1])
    np.testing.assert_array_equal((view + 0).numpy(), data[::2, ::-1])
    assert not np.shares_memory(xp.asarray(data, copy=True).numpy(), data)


def test_torch_tensors_come_in_and_go_out_without_a_copy():
    data = torch.arange(6.0).reshape(2, 3)
    x = Tensor(data.T)
    assert x.shape == (3, 2)
    back = torch.from_dlpack(x)
    assert back.data_ptr() == data.data_ptr()
    torch.testing.assert_close(torch.from_dlpack(x * 2), data.T * 2)
    half = Tensor(torch.tensor([1.5, 2.5], dtype=torch.bfloat16))
    assert half.dtype is xp.bfloat16
    assert repr(half + 1) == "Tensor([2.5, 3.5], dtype=bfloat16)"


def test_numpy_can_read_tensors_and_does_not_compute_with_them():
    x = Tensor([1, 2])
    np.testing.assert_array_equal(np.asarray(x), [1, 2])
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2])
    for act in (lambda: np.ones(2) + x, lambda: x + np.ones(2), lambda: x == np.ones(2)):
        with pytest.raises(TypeError, match=r"ndarray is no deplo\.Tensor, make one of it"):
            act()


def test_python_numbers_have_the_default_dtypes():
    assert [Tensor(v).dtype.name for v in (True, 1, 1.0)] == ["bool", "int64", "float32"]
    assert [Tensor([v]).dtype.name for v in (True, 1, 1.0)] == ["bool", "int64", "float32"]
    assert Tensor([[1, 2], [3, 4]], dtype="float64").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert Tensor([1.5], "bfloat16").item() == 1.5
    assert Tensor([]).shape == (0,)
    assert Tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]


def test_a_tensor_without_axes_is_a_number():
    x = Tensor([3, 4])
    assert float(x[0]) == 3.0
    assert int(x[1]) == 4
    assert [10, 20, 30, 40][x[0]] == 40
    assert bool(x.sum() == 7)
    for act in (lambda: float(x), lambda: bool(x), lambda: [1][Tensor(1.0)], lambda: x.item()):
        with pytest.raises(TypeError):
            act()


def test_tensors_can_be_copied_and_pickled():
    x = Tensor(np.arange(3.0)) * 2
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (other + x).dtype is xp.float64
        assert (other + x).tolist() == [0.0, 4.0, 8.0]


def test_data_that_are_no_tensor_are_refused():
    for data, said in (
        (np.zeros(2, "m8[s]"), "timedelta64.* is no dtype"),
        ("text", "not of 'text'"),
        ([[1], [2, 3]], "not of one length"),
        ([2**70], "object"),
        (None, "not of None"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            Tensor(data)
    with pytest.raises(TypeError, match="Python floats, not int32"):
        Tensor([1.5], "int32")
    for wide, dtype in ((300, "int8"), (2**63, None), (-1, "uint8"), (2**64, "uint64")):
        with pytest.raises((OverflowError, TypeError)):
            Tensor([wide], dtype)
    with pytest.raises(TypeError, match="Python complexs, not float32"):
        Tensor([1j], "float32")
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray([1], copy=False)


# --------------------------------------------------------------------------- the namespace

STANDARD = """
e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
complex64 complex128 __array_api_version__ __array_namespace_info__ astype can_cast finfo iinfo
isdtype result_type arange asarray empty empty_like eye from_dlpack full full_like linspace
meshgrid ones ones_like tril triu zeros zeros_like abs acos acosh add asin asinh atan atan2 atanh
bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip
conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag
isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc take
take_along_axis matmul matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat
expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax
argmin count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse
unique_values argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any
diff
""".split()
"""The names of array API 2024.12, without its extensions."""


def test_the_namespace_has_each_name_of_the_standard():
    space = Tensor([1]).__array_namespace__(api_version=VERSION)
    assert space is xp
    assert [name for name in STANDARD if not hasattr(space, name)] == []
    with pytest.raises(AttributeError, match="array_api has no 'nothing'"):
        _ = space.nothing
    with pytest.raises(ValueError, match=r"array API 2024\.12, not 2099"):
        Tensor([1]).__array_namespace__(api_version="2099.12")


def test_torch_is_not_imported_unless_the_data_are_torch_s(python):
    code = "import sys, deplo; x = deplo.Tensor([1.0]); print(x + 1); print('torch' in sys.modules)"
    assert python(code).stdout == "Tensor([2.], dtype=float32)\nFalse\n"


def test_a_bfloat16_result_is_rounded_once_per_operation():
    x = torch.tensor([1.0, 3.0, 7.0], dtype=torch.bfloat16)
    y = Tensor(x) / 3.0 + 0.1
    expected = (x / 3.0 + 0.1).float().numpy()
    agree([("bfloat16", y.astype("float32"), expected)])
