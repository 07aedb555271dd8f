"""The index simplifier keeps the value of every expression and finds the forms it promises."""

import itertools

import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from deplo.analysis.index import UNKNOWN, bounds, simplify
from deplo.dialects.index import delinearize, linearize

D = [AffineExpr.dimension(i) for i in range(3)]


def expressions():
    leaves = st.one_of(st.sampled_from(D), st.integers(-20, 20).map(AffineExpr.constant))

    def extend(inner):
        divisors = st.integers(1, 12)
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, st.integers(-6, 12)).map(lambda p: p[0] * p[1]),
            st.tuples(inner, divisors).map(lambda p: p[0] // p[1]),
            st.tuples(inner, divisors).map(lambda p: p[0] % p[1]),
            st.tuples(inner, divisors).map(lambda p: p[0].ceil_div(p[1])),
        )

    return st.recursive(leaves, extend, max_leaves=10)


RANGES = st.tuples(*[st.tuples(st.integers(-9, 9), st.integers(0, 9)) for _ in D]).map(
    lambda rs: [(low, low + width) for low, width in rs]
)


@examples(400)
@given(expressions(), RANGES, st.data())
def test_simplify_keeps_the_value_and_bounds_hold(expr, ranges, data):
    simple = simplify(expr, ranges)
    low, high = bounds(expr, ranges)
    assert bounds(simple, ranges)[0] <= bounds(simple, ranges)[1]
    for _ in range(20):
        point = [data.draw(st.integers(a, b)) for a, b in ranges]
        value = expr.eval(point, ())
        assert simple.eval(point, ()) == value
        assert low <= value <= high


@examples(300)
@given(expressions(), RANGES)
def test_simplify_is_idempotent(expr, ranges):
    simple = simplify(expr, ranges)
    assert simplify(simple, ranges) == simple


@pytest.mark.parametrize(
    ("expr", "ranges", "expected"),
    [
        ((D[0] * 4 + D[1]) // 4, [(0, 7), (0, 3)], D[0]),
        ((D[0] * 4 + D[1]) % 4, [(0, 7), (0, 3)], D[1]),
        ((D[0] * 64 + D[1] * 8 + D[2]) % 64, [(0, 3), (0, 7), (0, 7)], D[1] * 8 + D[2]),
        ((D[0] // 3) // 5, [(0, 99)], D[0] // 15),
        ((D[0] // 3 + D[1]) // 5, [(0, 99), (0, 99)], (D[1] * 3 + D[0]) // 15),
        ((D[0] // 4) * 4 + D[0] % 4, [(0, 99)], D[0]),
        ((D[0] % 8) % 4, [(0, 99)], D[0] % 4),
        (((D[0] + 4) // 4), [(0, 99)], D[0] // 4 + 1),
        ((D[0] * 6) // 4, [(0, 99)], (D[0] * 3) // 2),
        (D[0] + D[1], [(0, 0), (0, 5)], D[1]),
        # A counter that nothing bounds is not bounded by its half.
        ((D[0] // 2 * -1 + 2) // 2, [(0, UNKNOWN[1])], (D[0] // 2 * -1) // 2 + 1),
    ],
)
def test_simplify_finds(expr, ranges, expected):
    assert simplify(expr, ranges) == expected


def test_a_part_of_an_array_has_one_place_in_memory_whatever_its_counters_are():
    """Parts of one and a half channels of images of three."""
    shape, place = (8, 3, 224, 224), D[0] * 75264 + D[1]
    within = [(0, 15), (0, 75263)]
    indices = [simplify(each, within) for each in delinearize(place, shape)]
    assert simplify(linearize(indices, shape), within) == place
    anywhere = [(0, UNKNOWN[1])] * 2
    assert simplify(linearize(delinearize(place, shape), shape), anywhere) == place


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ((2, 3, 4), (24,)),
        ((4, 6), (2, 2, 6)),
        ((2, 3, 4), (6, 4)),
        ((6, 4), (2, 3, 4)),
        ((1, 5), (5,)),
    ],
)
def test_a_reshape_and_its_inverse_cancel(source, target):
    ranges = [(0, n - 1) for n in source]
    dims = [AffineExpr.dimension(i) for i in range(len(source))]
    there = [simplify(e, ranges) for e in delinearize(linearize(dims, source), target)]
    back = [simplify(e, ranges) for e in delinearize(linearize(there, target), source)]
    assert back == [simplify(d, ranges) for d in dims]
    for point in itertools.product(*[range(n) for n in source]):
        offset = linearize(dims, source).eval(point, ())
        assert linearize(there, target).eval(point, ()) == offset
