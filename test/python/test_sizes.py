"""Sizes: index expressions over symbols keep their value, proofs hold, and a size is never a number."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from ir_programs import parse
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, f32
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from deplo.analysis.index import extent_range
from deplo.analysis.sizes import SizeError, solve_sizes
from deplo.dialects.index import delinearize, linearize
from deplo.dialects.multiples import Multiple, multiple_of
from deplo.dialects.sizes import (
    Size,
    UndecidedSize,
    extent_expr,
    extent_of,
    memref_of,
    shape_of,
    static_shape,
    tensor_of,
)
from deplo.index.affine import product, quotient, remainder, replace_dims
from deplo.index.ranges import bounds
from deplo.index.simplify import always_holds, never_holds, simplify
from deplo.interpreter import execute, random_inputs

ROOT = Path(__file__).resolve().parents[2]
D = [AffineExpr.dimension(i) for i in range(3)]
S = [AffineExpr.symbol(i) for i in range(2)]
s0, s1 = Size.symbol(0), Size.symbol(1)

SYMBOLS = st.lists(st.integers(1, 6), min_size=2, max_size=2)
POSITIVE = st.one_of(
    st.integers(1, 6).map(AffineExpr.constant),
    st.sampled_from([*S, product(S[0], S[1]), product(S[0], 4), S[1] + 1, product(S[0], 4) + S[1]]),
)
"""Divisors: expressions over symbols that are at least 1."""

ENDS = st.sampled_from(
    [3, S[0] + -1, product(S[0], S[1]) + -1, product(S[1], 4) + -1, S[0] + S[1], S[1] + 2]
)
RANGES = st.lists(st.tuples(st.integers(-2, 0), ENDS), min_size=3, max_size=3)


def expressions():
    leaves = st.one_of(st.sampled_from([*D, *S]), st.integers(-9, 9).map(AffineExpr.constant))

    def extend(inner):
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, POSITIVE).map(lambda p: product(*p)),
            st.tuples(inner, st.integers(-4, 4)).map(lambda p: product(*p)),
            st.tuples(inner, POSITIVE).map(lambda p: quotient(*p)),
            st.tuples(inner, POSITIVE).map(lambda p: remainder(*p)),
        )

    return st.recursive(leaves, extend, max_leaves=8)


def value(end, symbols):
    return end if isinstance(end, int) else end.eval((), symbols)


def points(data, ranges, count=12):
    """Symbols and dims within their ranges, which may depend on the symbols."""
    for _ in range(count):
        symbols = data.draw(SYMBOLS)
        ends = [(low, value(high, symbols)) for low, high in ranges]
        yield [data.draw(st.integers(*end)) for end in ends], symbols


@examples(400)
@given(expressions(), RANGES, st.data())
def test_simplify_keeps_the_value_and_bounds_hold(expr, ranges, data):
    simple = simplify(expr, ranges)
    low, high = bounds(expr, ranges)
    for dims, symbols in points(data, ranges):
        expected = expr.eval(dims, symbols)
        assert simple.eval(dims, symbols) == expected
        assert low <= expected <= high


@examples(200)
@given(expressions(), RANGES)
def test_simplify_is_idempotent(expr, ranges):
    simple = simplify(expr, ranges)
    assert simplify(simple, ranges) == simple


@examples(400)
@given(expressions(), RANGES, st.data())
def test_what_is_proven_holds(expr, ranges, data):
    always, never = always_holds(expr, ranges), never_holds(expr, ranges)
    assume(always or never)
    for dims, symbols in points(data, ranges):
        assert (expr.eval(dims, symbols) >= 0) == always


@pytest.mark.parametrize(
    ("expr", "ends", "expected"),
    [
        (quotient(product(D[0], S[0]) + D[1], S[0]), (9, S[0] + -1), D[0]),
        (remainder(product(D[0], S[0]) + D[1], S[0]), (9, S[0] + -1), D[1]),
        (product(quotient(D[0], S[0]), S[0]) + remainder(D[0], S[0]), (S[1], 0), D[0]),
        (quotient(product(D[0], 64) + D[1], product(S[0], 64)), (S[1], 63), quotient(D[0], S[0])),
        (quotient(quotient(D[0], S[0]), S[1]), (99, 0), quotient(D[0], product(S[0], S[1]))),
        (remainder(remainder(D[0], product(S[0], 4)), S[0]), (99, 0), remainder(D[0], S[0])),
        (
            quotient(product(S[0], 64) + -1 + product(D[0], -64), product(S[0], 64)),
            (S[0] + -1, 0),
            D[2],
        ),
        (quotient(product(D[0], S[0]) + D[0] + D[1], S[0] + 1), (9, S[0]), D[0]),
        (quotient(quotient(D[0], 2) + 3, 5), (99, 0), quotient(D[0] + 6, 10)),
        (quotient(quotient(D[0], S[0]) + 1, 5), (99, 0), quotient(D[0] + S[0], product(S[0], 5))),
    ],
)
def test_simplify_finds(expr, ends, expected):
    ranges = [*((0, end) for end in ends), (0, 0)]
    assert simplify(expr, ranges) == simplify(expected, ranges)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ((s0, s1, 64), (s0, s1, 4, 16)),
        ((s0, s1, 64), (s0 * s1, 64)),
        ((s0 * s1, 64), (s0, s1, 64)),
        ((s0, 4, s1, 16), (s0 * 4, s1, 16)),
        ((s0, s1 + 1, 8), (s0 * (s1 + 1), 8)),
        ((s0, s1 * 2), (s0, s1, 2)),
        ((2, 3, s0), (6 * s0,)),
    ],
)
def test_a_reshape_and_its_inverse_cancel(source, target):
    ranges = [extent_range(n) for n in source]
    dims = [AffineExpr.dimension(i) for i in range(len(source))]
    there = [simplify(e, ranges) for e in delinearize(linearize(dims, source), target)]
    back = [simplify(e, ranges) for e in delinearize(linearize(there, target), source)]
    assert back == dims


# --------------------------------------------------------------------------- sizes as extents


@examples(300)
@given(expressions(), expressions(), SYMBOLS)
def test_arithmetic_of_sizes_is_that_of_their_values(left, right, symbols):
    ones = [AffineExpr.constant(i + 1) for i in range(3)]
    left, right = (extent_of(replace_dims(e, ones)) for e in (left, right))
    a, b = (value(extent_expr(x), symbols) for x in (left, right))
    for result, expected in (
        (left + right, a + b),
        (left - right, a - b),
        (left * right, a * b),
        (left // 3, a // 3),
        (left % 3, a % 3),
        (3 - left, 3 - a),
    ):
        assert value(extent_expr(result), symbols) == expected
    try:
        less = left < right
    except UndecidedSize:
        return
    assert less == (a < b)


def test_a_size_is_no_number():
    for use in (int, bool, range, float, math.ceil, lambda n: n / 2, lambda n: 4 / n):
        with pytest.raises(UndecidedSize):
            use(s0)
    with pytest.raises(TypeError, match=r"not reckoned with 0\.5"):
        s0 * 0.5
    with pytest.raises(UndecidedSize, match="whether s0 < s1 is known only at run time"):
        min(s1, s0)


def test_equality_is_of_canonical_expressions():
    assert s0 * 2 + s1 == s1 + s0 + s0
    assert hash(s0 * 2 + s1) == hash(s1 + s0 + s0)
    assert s0 != s1
    assert s0 != 1
    assert s0 - s0 == 0
    assert isinstance((s0 * 4) // s0, int)
    assert s0 // 2 * 2 + s0 % 2 == s0
    blocks = (s0 + 1) // 2 - 1  # 0 for a size of 1, where it is nobody's divisor
    assert (blocks * 768) // (blocks * 64) == 12
    assert (blocks * 768) % (blocks * 64) == 0
    assert math.prod([2, s0, s1]) == s0 * s1 * 2
    assert sum([s0, 1]) == s0 + 1
    assert str(s0 * s1 - 1) == "s0 * s1 - 1"


def test_an_order_that_holds_for_all_sizes_is_decided():
    assert s0 > 0
    assert s0 >= 1
    assert not s0 < 1
    assert s0 * s1 >= s0
    assert max(s0 - 1, -1) == s0 - 1
    assert min(s0, s0 + s1) == s0
    assert s0 // 2 * 2 <= s0


# --------------------------------------------------------------------------- types


def test_types_name_their_sizes():
    shape = (s0, 4, s0 * s1)
    for make in (tensor_of, memref_of):
        assert shape_of(make(f32, shape)) == shape
        assert make(f32, shape) != make(f32, (s1, 4, s0 * s1))
        with pytest.raises(UndecidedSize, match="has dynamic extents"):
            static_shape(make(f32, shape))
    assert tensor_of(f32, (2, 3)) == TensorType(f32, [2, 3])
    assert memref_of(f32, (2, 3)) == MemRefType(f32, [2, 3])
    assert static_shape(TensorType(f32, [2, 3])) == (2, 3)


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        (s0, (0, Multiple())),
        (s1 * 3, (1, Multiple(3))),
        (s0 * 2 - 1, (0, Multiple(2, -1))),
        (8, None),
        (s0 * s1, None),
        (s0 + s1, None),
        (8 - s0, None),
        (s0 // 2, None),
    ],
    ids=str,
)
def test_an_extent_that_is_a_multiple_of_one_symbol_says_it(extent, said):
    assert multiple_of(extent) == said
    if said is not None:
        assert said[1].extent(Size.symbol(said[0])) == extent


def test_a_multiple_tells_the_size_of_an_extent():
    odd = Multiple(2, -1)
    assert [odd.extent(size) for size in (1, 2, 3)] == [1, 3, 5]
    assert [odd.size(extent) for extent in (1, 2, 3)] == [1, None, 2]
    assert [odd.least_size(extent) for extent in (1, 2, 3)] == [1, 2, 2]


def test_a_type_that_does_not_name_its_sizes_is_refused():
    with pytest.raises(VerifyException, match="names 0"):
        shape_of(TensorType(f32, [DYNAMIC_INDEX]))
    with pytest.raises(VerifyException, match="negative"):
        tensor_of(f32, [-1])


def test_only_the_helpers_read_raw_shapes():
    """`get_shape()` gives a number for a size too, which arithmetic would take for an extent."""
    allowed = {
        "dialects/sizes.py",
        "tools/located_parser.py",  # of `dense` literals, which xDSL refuses with `?`
    }
    rooms = "dialects analysis passes interpreter frontend tools runtime".split()
    found = {
        str(path.relative_to(ROOT))
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"\.get_shape\(\)", path.read_text())
    }
    assert found <= allowed


# --------------------------------------------------------------------------- programs

PROGRAM = """
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>, %y: tensor<?xf32, #sym.extents<s0 * 2>>)
    -> tensor<?xf32, #sym.extents<s0 * s1>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 4>, #sym.size<"seq", 3, 8, hint = 6>]} {
  %flat = tensor_ir.index_map (i) -> %x[i floordiv s1, i mod s1] if i < s0 * s1 - 1 else %y[s0]
      : (tensor<?x?xf32, #sym.extents<s0, s1>>, tensor<?xf32, #sym.extents<s0 * 2>>)
      -> tensor<?xf32, #sym.extents<s0 * s1>>
  func.return %flat : tensor<?xf32, #sym.extents<s0 * s1>>
}
"""


@pytest.mark.parametrize(("batch", "seq"), [(1, 3), (4, 6), (5, 7)])
def test_a_program_is_executed_at_the_sizes_of_its_inputs(batch, seq):
    x = np.arange(batch * seq, dtype=np.float32).reshape(batch, seq)
    y = -np.arange(batch * 2, dtype=np.float32)
    (flat,) = execute(parse(PROGRAM), [x, y])
    np.testing.assert_array_equal(flat, [*x.reshape(-1)[:-1], y[batch]])


def test_shapes_that_contradict_each_other_are_an_error():
    x, y = np.zeros((2, 3), np.float32), np.zeros(5, np.float32)
    with pytest.raises(SizeError, match=r"argument 1, axis 0: expected s0 \* 2 = 4, got 5"):
        execute(parse(PROGRAM), [x, y])
    with pytest.raises(SizeError, match="the size s1 is the extent of no axis"):
        solve_sizes([tensor_of(f32, [s0, s0 * s1])], [(2, 6)])


def test_random_inputs_have_the_hinted_sizes_then_primes_then_the_smallest():
    hinted, primes, smallest = random_inputs(parse(PROGRAM))
    assert hinted[0].shape == (4, 6)
    assert smallest[0].shape == (1, 3)
    assert primes[1].shape == (primes[0].shape[0] * 2,)
    assert 3 <= primes[0].shape[1] <= 8
