"""Products that are not multiplied out, views that take no memory, and what is too large all the same."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ir_programs import make_context, parse
from xdsl.ir.affine import AffineExpr

from deplo.interpreter import NotExecutable, execute, loop_lanes
from deplo.interpreter import loop as loop_machine
from deplo.interpreter.product import Product, as_array, multiply
from deplo.interpreter.tensor_ir import evaluate_index
from deplo.interpreter.views import MAX_ELEMENTS, Place, compact, linear_terms
from deplo.passes import get_all_passes

LIMIT = 1 << 20
VALUES = st.sampled_from([0.0, -0.0, 1.0, -2.0, 3.0, np.inf, -np.inf, np.nan])


@st.composite
def factors(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Two arrays that broadcast, with special values, and how many of the last axes to sum."""
    extents = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    shapes = [[n if draw(st.booleans()) else 1 for n in extents] for _ in range(2)]
    lhs, rhs = (draw(arrays.arrays(np.float32, shape, elements=VALUES)) for shape in shapes)
    return lhs, rhs, draw(st.integers(0, len(extents)))


@given(factors())
def test_a_product_has_the_values_of_the_sum_of_products(case) -> None:
    lhs, rhs, summed = case
    product = Product(lhs, rhs)
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    for extent in reversed(shape[len(shape) - summed :]):
        product = product.sum_last(extent)
    axes = tuple(range(len(shape) - summed, len(shape)))
    with np.errstate(all="ignore"):
        expected = np.sum(lhs * rhs, axis=axes, dtype=np.float32)
    actual = np.broadcast_to(as_array(product, LIMIT), expected.shape)
    np.testing.assert_array_equal(actual, expected)
    aligned = product.align(len(product.shape) + 2)
    assert aligned.shape == (*product.shape, 1, 1)
    np.testing.assert_array_equal(as_array(aligned, LIMIT).reshape(actual.shape), actual)


@given(factors(), st.randoms())
def test_a_masked_product_is_0_where_the_condition_does_not_hold(case, random) -> None:
    lhs, rhs, _ = case
    shape = tuple(
        n if random.random() < 0.5 else 1 for n in np.broadcast_shapes(lhs.shape, rhs.shape)
    )
    condition = np.array([random.random() < 0.5 for _ in range(prod(shape))], bool).reshape(shape)
    masked = Product(lhs, rhs).masked(condition)
    assert masked is not None
    with np.errstate(all="ignore"):
        expected = np.where(condition, lhs * rhs, np.float32(0))
    actual = np.broadcast_to(as_array(masked, LIMIT), expected.shape)
    np.testing.assert_array_equal(actual, expected)


def test_a_product_is_not_masked_where_a_factor_becomes_too_large() -> None:
    row = np.broadcast_to(np.float32(1), (1, 1 << 14))
    condition = np.broadcast_to(np.True_, (1 << 13, 1 << 14))
    assert Product(row, np.ones((3, 1, 1), np.float32)).masked(condition) is None


def test_an_axis_that_neither_factor_has_is_summed_as_often_as_it_is_long() -> None:
    x, y = np.float32([[2.0], [3.0]]), np.float32([[5.0], [7.0]])
    assert Product(x, y).sum_last(4).array().tolist() == [40.0, 84.0]


def test_only_a_product_that_is_larger_than_both_factors_is_deferred() -> None:
    row, column = np.ones((1, 3), np.float32), np.ones((4, 1), np.float32)
    assert isinstance(multiply(row, column, LIMIT), Product)
    assert isinstance(multiply(row, row, LIMIT), np.ndarray)
    assert isinstance(multiply(np.broadcast_to(row, (4, 3)), row, LIMIT), np.ndarray)
    assert isinstance(multiply(np.broadcast_to(row, (4, 3)), column, LIMIT), Product)


# --------------------------------------------------------------------------- views


@st.composite
def places(draw: st.DrawFn) -> tuple[np.ndarray, Place]:
    """An array of different numbers and a place, not always inside of it."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    extents = draw(st.lists(st.integers(0, 4), max_size=3))
    step = st.integers(-2, 2)
    steps = tuple(tuple(draw(step) for _ in extents) for _ in shape)
    base = tuple(draw(st.integers(-1, n)) for n in shape)
    return np.arange(np.prod(shape)).reshape(shape), Place(base, steps, tuple(extents))


@given(places())
def test_a_place_selects_what_its_indices_do(case) -> None:
    array, place = case
    count = prod(place.extents)
    counters = np.indices(place.extents).reshape(len(place.extents), count)
    steps = np.array(place.steps, np.int64).reshape(array.ndim, len(place.extents))
    indices = np.array(place.base)[:, None] + steps @ counters
    inside = bool(np.all((indices >= 0) & (indices < np.array(array.shape)[:, None])))
    assert place.inside(array.shape) == (inside and count > 0)
    if not place.inside(array.shape):
        return
    expected = array[tuple(indices)].reshape(place.extents)
    np.testing.assert_array_equal(np.broadcast_to(place.of(array), place.extents), expected)
    different = np.unique(expected).size == expected.size
    assert different or not place.distinct(array)
    axes = place.counter_of_axis(array.shape)
    if axes is not None:
        kept = [axis for axis in axes if axis is not None]
        order = [*kept, *(n for n in range(len(place.extents)) if n not in kept)]
        np.testing.assert_array_equal(expected.transpose(order).reshape(array.shape), array)


@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))
def test_linear_terms_are_the_expression(a: int, b: int, c: int) -> None:
    i, j = AffineExpr.dimension(0), AffineExpr.dimension(1)
    terms = linear_terms((i * a + j) * b + c + j, 2)
    assert terms is not None
    (f, g), constant = terms
    for x, y in ((0, 0), (1, 0), (0, 1), (5, 7)):
        dims = [np.asarray(x), np.asarray(y)]
        assert f * x + g * y + constant == evaluate_index((i * a + j) * b + c + j, dims)
    assert linear_terms(i + (j // 2), 2) is None
    assert linear_terms(i % 3, 1) is None


def test_compact_cuts_the_axes_that_repeat() -> None:
    x = np.broadcast_to(np.ones((3, 1, 2)), (5, 3, 4, 2))
    assert compact(x).shape == (1, 3, 1, 2)


# --------------------------------------------------------------------------- large programs

ROWS, COLUMNS, INNER = 32, 1 << 12, 1 << 11


def product_program(function: str, combiner: str) -> str:
    """A program of 2**28 elements in between: combiner over k of function(x[i, k], w[j, k])."""
    wide = f"tensor<{ROWS}x{COLUMNS}x{INNER}xf32>"
    x, w, y = (
        f"tensor<{a}x{b}{c}xf32>"
        for a, b, c in ((ROWS, INNER, ""), (COLUMNS, INNER, ""), (ROWS, COLUMNS, "x1"))
    )
    return f"""
    func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : ({x}) -> {wide}
      %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : ({w}) -> {wide}
      %p = tensor_ir.elementwise {function}(%a, %b) : ({wide}, {wide}) -> {wide}
      %s = tensor_ir.reduce {combiner}(%p) over [2] : {wide} -> {y}
      func.return %s : {y}
    }}"""


@pytest.fixture(scope="module")
def operands() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = (ROWS, INNER), (COLUMNS, INNER)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("passes", [[], ["lift-to-loops"], ["lift-to-loops", "fuse-loops"]])
def test_a_large_sum_of_products_takes_little_memory(passes, operands) -> None:
    assert ROWS * COLUMNS * INNER > MAX_ELEMENTS
    module = parse(product_program("mul", "add"))
    for each in passes:
        get_all_passes()[each]()().apply(make_context(), module)
    (actual,) = execute(module, operands)
    np.testing.assert_allclose(actual[..., 0], operands[0] @ operands[1].T, atol=1e-2)


@pytest.mark.parametrize("passes", [[], ["lift-to-loops"]])
def test_another_large_tensor_is_not_computed(passes, operands) -> None:
    module = parse(product_program("max", "add"))
    for each in passes:
        get_all_passes()[each]()().apply(make_context(), module)
    with pytest.raises(NotExecutable, match="needs an array of 268435456 elements"):
        execute(module, operands)


PARTS = """
func.func @main(%x: tensor<16x40xf32>, %w: tensor<16x40xf32>) -> tensor<3x16x16xf32> {
  %y = loop.kernel @k(%x, %w) : (tensor<16x40xf32>, tensor<16x40xf32>) -> tensor<3x16x16xf32> {
  ^bb0(%a: memref<16x40xf32>, %b: memref<16x40xf32>, %c: memref<3x16x16xf32>):
    tile.launch (%part = 3 : block, %i = 16 : thread, %j = 16 : thread) {
      %sum = loop.for %chunk = 0 to 2 reduce(add) -> f32 {
        %slab = tile.stage %b[0, %part * 16 + %chunk * 8] : memref<16x40xf32> -> memref<16x8xf32, "shared">
        %one = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %inside = loop.test[%part * 16 + %chunk * 8 + %k < 40]
          %r = scf.if %inside -> (f32) {
            %l = loop.load %a[%i, %part * 16 + %chunk * 8 + %k] : memref<16x40xf32>
            %s = loop.load %slab[%j, %k] : memref<16x8xf32, "shared">
            %m = arith.mulf %l, %s : f32
            scf.yield %m : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %r : f32
        }
        loop.yield %one : f32
      }
      loop.store %sum, %c[%part, %i, %j] : memref<3x16x16xf32>
    }
  }
  func.return %y : tensor<3x16x16xf32>
}
"""


def test_the_parts_of_a_split_product_are_products_of_matrices(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((16, 40)).astype(np.float32) for _ in range(2))
    x[3, 39] = np.inf  # behind the end of the last part, it is not multiplied by 0
    monkeypatch.setattr(loop_lanes, "MAX_LANES", 3 * 16 * 16)  # of 3 * 16 * 16 * 16 products
    whole: list[bool] = []
    start = loop_machine.LoopMachine.__init__
    monkeypatch.setattr(
        loop_machine.LoopMachine,
        "__init__",
        lambda self, *, sliced: (whole.append(not sliced), start(self, sliced=sliced))[1],
    )
    (result,) = execute(parse(PARTS), [x, w])
    expected = [x[:, k : k + 16] @ w[:, k : k + 16].T for k in (0, 16, 32)]
    np.testing.assert_allclose(result, np.stack(expected), rtol=1e-5, atol=1e-5)
    assert whole == [True]
