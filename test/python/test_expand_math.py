"""Functions of the CPU back end against float64, over all of float32 and at its edges."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
import torch
from cpu_programs import BLOCK, elementwise

from deplo.machine.host_cpu import host_cpu
from deplo.passes.llvm import expand_math

EDGES = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45),
        *(1.17549435e-38, -1.17549435e-38, 3.4028235e38, -3.4028235e38, 88.72283, 88.72284),
        *(-87.33655, -103.97208, -103.97209, 128.0, 127.99999, -149.0, -149.5, -150.0, -126.0),
        *(-86.0, -86.00001, -124.0, -124.00001, 1e38),
        *(
            -104.6,
            -104.60001,
            -104.3,
            -176.0,
            -176.00002,
            89.0,
            89.00001,
            -254.0,
            -254.5,
            129.0,
            129.5,
        ),
        *(
            -17.32868,
            -17.328682,
            -20.0,
            -20.000002,
            88.8,
            88.37626,
            88.37627,
            0.34657359,
            0.3465736,
        ),
        *(89.415985, 89.41599, 89.5, 2.0**-12, 0.00024414062),
        *(1.0000001, 0.50000006, 0.49999997),
        *(0.625, 0.62499994, 9.0, 20.0, -20.0, 3.92, 3.9200003, 4.0, -0.99999994, -1.0000001),
        *(1 - 2.0**-24, 1 + 2.0**-23, 2.0**-24, 2.0**-25, 16777216.0, 1e10, -1e10),
    ],
    np.float32,
)

BLOCKS = 1024


def sample() -> np.ndarray:
    """Floats of every exponent and sign with random mantissas, and the edges."""
    count = BLOCKS * BLOCK
    step = 2**32 // count
    low = np.random.default_rng(1).integers(0, step, count, dtype=np.uint64)
    bits = np.arange(count, dtype=np.uint64) * step + low
    x = bits.astype(np.uint32).view(np.float32).copy()
    x[: EDGES.size] = EDGES
    return x


def exact(function: str, x: np.ndarray) -> np.ndarray:
    """The function in float64."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if function == "erf":
            return np.vectorize(math.erf)(wide)
        if function == "rsqrt":
            return 1.0 / np.sqrt(wide)
        inverse = function.startswith("a")
        return getattr(np, f"arc{function[1:]}" if inverse else function)(wide)


# Patterns for NaN are among the samples; converting those is "invalid" to numpy.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")


FUNCTIONS = """exp exp2 expm1 log log1p log2 log10 tanh erf rsqrt cbrt sin cos tan asin acos atan
sinh cosh asinh acosh atanh""".split()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_f32_functions_are_within_2_ulp_and_exact_at_the_edges(function: str) -> None:
    check_f32(function, sample())


@pytest.mark.parametrize("function", ["sin", "cos", "tan"])
def test_sines_of_small_angles_are_within_2_ulp_also_where_they_are_tiny(function: str) -> None:
    """Multiples of half pi and their neighbours, floats of every exponent, what is no number."""
    near = (np.arange(-41721, 41722) * (math.pi / 2)).astype(np.float32)
    every = sample()
    every[np.abs(every) > 65536] = 65536
    special = np.array([-0.0, 0.0, math.nan, math.inf, -math.inf, 65536, -65536], np.float32)
    around = [np.nextafter(near, np.float32(to)) for to in (-math.inf, math.inf)]
    x = np.concatenate([special, every, near, *around])
    check_f32(function, np.concatenate([x, np.zeros(-x.size % BLOCK, np.float32)]))


def test_erf_is_at_most_1() -> None:
    first, last = np.array([2, 5], np.float32).view(np.int32)
    x = np.arange(first, last, 8, np.int32).view(np.float32)
    (y,) = elementwise("%r = math.erf %x : f32", {"x": "f32"}, "f32", x.size // BLOCK)(x)
    assert y.max() == 1
    assert (np.abs(y - exact("erf", x)) < 2**-23).all()


PLUS_ONE = {
    "erf": np.vectorize(lambda x: math.erfc(-x)),
    "tanh": lambda x: 2 / (1 + np.exp(-2 * x)),
}


@pytest.mark.parametrize("function", PLUS_ONE)
def test_what_is_added_to_1_is_right_where_the_sum_is_nearly_0(function: str) -> None:
    """At every exponent and densely from 0 to 12, to 5 units of the sum; less than any normal f32 it is 0.

    1 + erf(x) for |x| < 1/2: to 1 unit. Besides, it may be off by half a unit of x**2, as if rounded.
    """
    first, last = np.array([2**-4, 12], np.float32).view(np.int32)
    dense = np.arange(first, last, 64, np.int32).view(np.float32)
    x = np.concatenate([sample(), dense, -dense])
    x = np.append(x, np.zeros(-x.size % BLOCK, np.float32))
    body = f"%f = math.{function} %x : f32\n%one = arith.constant 1.0 : f32\n%r = arith.addf %one, %f : f32"
    (y,) = elementwise(body, {"x": "f32"}, "f32", x.size // BLOCK)(x)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = PLUS_ONE[function](x.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(wanted))
    y, wanted, x = (each[~np.isnan(wanted)] for each in (y, wanted, x))
    units = np.full(x.shape, 5.0)
    if function == "erf":
        units = np.where(np.abs(x) < 0.5, 1, units) + np.minimum(x.astype(np.float64) ** 2, 100) / 2
    assert (np.abs(y - wanted) <= units * 2**-23 * wanted + 2.0**-123).all()
    assert (y[x < -43] == 0).all()
    assert (y[x > 9.3] == 2).all()


def check_f32(function: str, x: np.ndarray) -> None:
    """Compile a function for arrays of that size and compare it with float64, to 2 units."""
    program = elementwise(f"%r = math.{function} %x : f32", {"x": "f32"}, "f32", x.size // BLOCK)
    (y,) = program(x)
    compare(function, exact(function, x), y, (x,), 2)


def compare(
    function: str, wide: np.ndarray, y: np.ndarray, args: tuple[np.ndarray, ...], limit: float
) -> None:
    """f32 results against those of float64: the same NaN, infinities and signs, the rest to `limit` units."""
    with np.errstate(over="ignore", invalid="ignore"):
        expected = wide.astype(np.float32)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(y), ~number)
    np.testing.assert_array_equal(np.isinf(y), np.isinf(expected))
    np.testing.assert_array_equal(np.signbit(y)[number], np.signbit(expected)[number])
    finite = np.isfinite(expected)
    unit = np.spacing(np.minimum(np.abs(expected[finite]), np.float32(3.4e38)))
    ulps = np.abs(y[finite].astype(np.float64) - wide[finite]) / unit.astype(np.float64)
    worst = ulps.argmax()
    at = [arg[finite][worst] for arg in args]
    assert ulps[worst] <= limit, f"{function} of {at} is {ulps[worst]:.2f} ulp off"


WIDE_EDGES = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
    ),
    *(1.7976931348623157e308, -1.7976931348623157e308, 709.782712893384, 709.7827128933841, 709.9),
    *(-708.0, -708.0000000000001, -745.1332191019411, -745.1332191019412, -745.5, -746.0, -38.0),
    *(-1418.0, -1418.0000000000002, 710.0, 710.0000000000001, -2046.0, -2046.5, 1025.0, 1025.5),
    *(1024.0, 1023.9999999999999, -1020.0, -1022.5, -1074.0, -1075.0, -1075.5, -1076.0, 1e300),
    *(0.34657359027997264, 0.3465735902799727, 0.625, 0.6250000000000001, 20.0, -20.0, 6.0, 5.95),
    *(2.0**-53, 2.0**-54, 2.0**-55, 1 - 2.0**-53, 1 + 2.0**-52, -1 - 2.0**-52, 2.0**-53 - 1),
    *(0.7071067811865475, 0.7071067811865476, 0.9999999999999999, 1e-310, -1e-310),
]

EXACT = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
}


def wide_sample(count: int = 1500) -> np.ndarray:
    """Doubles of every exponent and sign, those of ordinary size, those next to 1, and the edges."""
    random = np.random.default_rng(3)
    bits = random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    near_one = 1 + random.choice([-1, 1], count) * 2.0 ** random.uniform(-53, -1, count)
    usual = [random.uniform(-limit, limit, count) for limit in (1.2, 7, 760, 1080)]
    return np.concatenate([WIDE_EDGES, bits, near_one, -near_one, *usual])


@pytest.fixture(params=[False, True], ids=["compared", "scaled"])
def scaling(request, monkeypatch) -> None:
    """Powers of two by integers and comparisons, or by an instruction, whatever this CPU is better at."""
    known = dataclasses.replace(host_cpu(), scales=request.param)
    monkeypatch.setattr(expand_math, "get_cpu", lambda _: known)


@pytest.mark.parametrize("function", ["exp", "exp2"])
def test_powers_are_within_2_ulp_however_they_are_scaled(function: str, scaling: None) -> None:
    check_f32(function, sample())
    check_f64(function)


def test_powers_of_at_most_0_are_within_2_ulp_and_nan_stays() -> None:
    x = sample()
    x[x > 0] *= -1
    (y,) = elementwise("%r = math.exp %x {at_most_zero} : f32", {"x": "f32"}, "f32", BLOCKS)(x)
    compare("exp", exact("exp", x), y, (x,), 2)


@pytest.mark.parametrize("function", "exp exp2 expm1 log log2 log10 log1p tanh erf".split())
def test_f64_functions_are_within_2_ulp_and_exact_at_the_edges(function: str) -> None:
    check_f64(function)


def check_f64(function: str) -> None:
    """Compile a function and compare it with more digits than f64 has, to 2 units."""
    x = wide_sample()
    x = np.append(x, np.zeros(-x.size % BLOCK))
    blocks = x.size // BLOCK
    (y,) = elementwise(f"%r = math.{function} %x : f64", {"x": "f64"}, "f64", blocks)(x)
    eager = getattr(torch, function)(torch.from_numpy(x)).numpy()
    number = ~np.isnan(eager)
    np.testing.assert_array_equal(np.isnan(y), ~number)
    np.testing.assert_array_equal(np.isinf(y), np.isinf(eager))
    edge = number & ((x == 0) | np.isinf(x))
    np.testing.assert_array_equal(np.signbit(y)[edge], np.signbit(eager)[edge])
    exactly = EXACT.get(function) or getattr(mpmath, function)
    with mpmath.workprec(200):
        for argument, ours in zip(x, y, strict=True):
            if math.isfinite(argument) and math.isfinite(ours):
                wanted = exactly(mpmath.mpf(float(argument)))
                unit = math.ulp(float(wanted))
                error = float(abs(mpmath.mpf(float(ours)) - wanted) / unit)
                assert error <= 2, f"{function} of {argument!r} is {error:.2f} ulp off"
                assert wanted * ours >= 0


@pytest.mark.parametrize("function", ["sin", "cos"])
@pytest.mark.parametrize("most", [2.0, 2.0**30, 1e300])
def test_f64_sines_are_within_2_ulp_also_where_they_are_tiny(function: str, most: float) -> None:
    """Multiples of half pi and their neighbours; at most 2**30 by polynomials, else by the C library."""
    random = np.random.default_rng(4)
    multiples = random.integers(0, int(min(most, 2.0**30) / (math.pi / 2)) + 1, 1000)
    near = multiples * (math.pi / 2)
    around = [np.nextafter(near, to) for to in (-math.inf, math.inf)]
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**30, -(2.0**30), 5e-324, -1e-310]
    x = np.concatenate([special, near, -near, *around, random.uniform(-most, most, 2000)])
    x = np.where((np.abs(x) <= most) | ~np.isfinite(x), x, 1.0)
    x = np.append(x, np.ones(-x.size % BLOCK))
    blocks = x.size // BLOCK
    (y,) = elementwise(f"%r = math.{function} %x : f64", {"x": "f64"}, "f64", blocks)(x)
    np.testing.assert_array_equal(np.isnan(y), ~np.isfinite(x))
    zero = x == 0
    np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(getattr(np, function)(x[zero])))
    with mpmath.workprec(1200):
        for argument, ours in zip(x, y, strict=True):
            if math.isfinite(argument):
                wanted = getattr(mpmath, function)(mpmath.mpf(float(argument)))
                error = float(abs(mpmath.mpf(float(ours)) - wanted) / math.ulp(float(wanted)))
                assert error <= 2, f"{function} of {argument!r} is {error:.2f} ulp off"


@pytest.mark.parametrize("function", ["tan", "rsqrt", "cbrt", "sinh"])
def test_f64_functions_agree_with_the_c_library(function: str) -> None:
    x = np.random.default_rng(2).standard_normal(4 * BLOCK)
    (y,) = elementwise(f"%r = math.{function} %x : f64", {"x": "f64"}, "f64", 4)(x)
    np.testing.assert_allclose(y, exact(function, x), rtol=1e-15)


BASES = np.concatenate([sign * EDGES[~(EDGES < 0)] for sign in (np.float32(1), np.float32(-1))])
EXPONENTS = np.array(
    [
        *(0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 1 / 3, 1e-45, 127.0, 128.0, 149.0, 1e30, 3.4028235e38),
        *(8388607.0, 8388607.5, 8388609.0, 16777215.0, 16777216.0, math.inf, math.nan),
    ],
    np.float32,
)


def test_powers_at_edges_are_within_1_ulp() -> None:
    """Zeros, infinities and NaN as base and exponent, negative bases, odd and even and no integers."""
    exponents = np.concatenate([EXPONENTS, -EXPONENTS])
    check_pairs("powf", np.repeat(BASES, exponents.size), np.tile(exponents, BASES.size), 1)


def test_powers_are_within_1_ulp() -> None:
    """Any floats; results of every exponent; bases near 1, whose logarithms are small."""
    x = sample()
    rng = np.random.default_rng(3)
    exponent = rng.uniform(-150, 150, x.size)
    near = (1 + rng.uniform(-0.5, 1, x.size) * 2.0 ** -rng.integers(0, 22, x.size)).astype(
        np.float32
    )
    check_pairs("powf", x, rng.permutation(x), 1)
    for base in (np.abs(x), near):
        with np.errstate(all="ignore"):
            wanted = (exponent / np.log2(base.astype(np.float64))).astype(np.float32)
        check_pairs("powf", base, wanted, 1)
    check_pairs("powf", x, np.rint(exponent / 8).astype(np.float32), 1)


def test_atan2_is_within_2_ulp_and_exact_at_the_edges() -> None:
    """Pairs of edges with any signs; any floats; pairs of sizes that are near each other."""
    check_pairs("atan2", np.repeat(BASES, BASES.size), np.tile(BASES, BASES.size), 2)
    x = sample()
    rng = np.random.default_rng(4)
    check_pairs("atan2", x, rng.permutation(x), 2)
    with np.errstate(all="ignore"):
        near = (x * 2.0 ** rng.uniform(-5, 5, x.size) * rng.choice([-1, 1], x.size)).astype(
            np.float32
        )
    check_pairs("atan2", x, near, 2)


def check_pairs(function: str, x: np.ndarray, y: np.ndarray, limit: float) -> None:
    """Compare a function of two f32 with that of float64, to some units."""
    size = x.size
    x, y = (np.concatenate([v, np.zeros(-size % BLOCK, np.float32)]) for v in (x, y))
    body = f"%r = math.{function} %x, %z : f32"
    program = elementwise(body, {"x": "f32", "z": "f32"}, "f32", x.size // BLOCK)
    (result,) = program(x, y)
    with np.errstate(all="ignore"):
        wide = {"powf": np.power, "atan2": np.arctan2}[function](x.astype(np.float64), y)
        compare(function, wide, result, (x, y), limit)


def test_maximum_keeps_nan_and_orders_zeros() -> None:
    values = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, -1.0, 2.0], np.float32)
    a = np.resize(np.repeat(values, 8), BLOCK)
    b = np.resize(np.tile(values, 8), BLOCK)
    for op, expected in (("maximumf", np.maximum(a, b)), ("minimumf", np.minimum(a, b))):
        (y,) = elementwise(f"%r = arith.{op} %x, %z : f32", {"x": "f32", "z": "f32"}, "f32", 1)(
            a, b
        )
        np.testing.assert_array_equal(y, expected)
        zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        assert (np.signbit(y[zeros]) == (op == "minimumf")).all()


def bfloat16_bits(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of each float32, ties to even, by definition: of all candidates."""
    bits = x.view(np.uint32).astype(np.uint64)
    low, high = bits >> 16, (bits >> 16) + 1
    rest = bits & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & (low & 1 == 1))
    return np.where(up, high, low).astype(np.uint16)


def test_bf16_rounds_to_nearest_even_and_keeps_nan() -> None:
    x = sample()
    (y,) = elementwise("%r = arith.truncf %x : f32 to bf16", {"x": "f32"}, "bf16", BLOCKS)(x)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(y[number], bfloat16_bits(x)[number])
    assert ((y[~number] & 0x7F80 == 0x7F80) & (y[~number] & 0x7F != 0)).all()


def test_every_bf16_widens_exactly() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    (y,) = elementwise("%r = arith.extf %x : bf16 to f32", {"x": "bf16"}, "f32", 256)(bits)
    np.testing.assert_array_equal(y.view(np.uint32), bits.astype(np.uint32) << 16)


def test_every_f16_survives_a_round_trip() -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    body = "%w = arith.extf %x : f16 to f32\n%r = arith.truncf %w : f32 to f16"
    (y,) = elementwise(body, {"x": "f16"}, "f16", 256)(x)
    np.testing.assert_array_equal(y, x)


def test_f64_to_f16_rounds_once() -> None:
    """Halfway between two f16, plus a bit that f32 cannot hold: rounding twice would go down."""
    x = np.resize(
        np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1e300, -1e-300, 65519.999]), BLOCK
    )
    (y,) = elementwise("%r = arith.truncf %x : f64 to f16", {"x": "f64"}, "f16", 1)(x)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))
    assert y[0] == np.float16(1 + 2.0**-10)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_that_do_not_fit_an_integer(width: int, source: str) -> None:
    dtype = np.float32 if source == "f32" else np.float64
    values = [math.nan, math.inf, -math.inf, 1e30, -1e30, 2.7, -2.7, 0.0, 100.0]
    x = np.resize(np.array(values, dtype), BLOCK)
    body = f"%r = arith.fptosi %x : {source} to i{width}"
    (y,) = elementwise(body, {"x": source}, f"i{width}", 1)(x)
    wide = max(width, 32)
    smallest = np.array([-(1 << (wide - 1))], np.int64).astype(f"i{width // 8}")[0]
    np.testing.assert_array_equal(y[:5], [smallest] * 5)
    np.testing.assert_array_equal(y[5:9], [2, -2, 0, 100])


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_around_the_limits_of_an_integer(width: int, source: str) -> None:
    dtype = np.float32 if source == "f32" else np.float64
    limit = dtype(2.0 ** (width - 1))
    below, above = np.nextafter(limit, dtype(0)), np.nextafter(limit, dtype(math.inf))
    sizes = [below, limit, above, limit - dtype(0.5), limit + dtype(0.5), 0.99, 1.0, 1e-40]
    values = [sign * size for size in sizes for sign in (1, -1)]
    x = np.resize(np.array(values, dtype), BLOCK)
    body = f"%r = arith.fptosi %x : {source} to i{width}"
    (y,) = elementwise(body, {"x": source}, f"i{width}", 1)(x)
    low = -(1 << (width - 1))
    expected = [n if low <= (n := int(v)) < -low else low for v in x[: len(values)].tolist()]
    np.testing.assert_array_equal(y[: len(values)], expected)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integer_division_never_traps(width: int) -> None:
    smallest = -(1 << (width - 1))
    values = np.array([smallest, smallest + 1, -7, -1, 0, 1, 7, -smallest - 1], f"i{width // 8}")
    a = np.resize(np.repeat(values, 8), BLOCK)
    b = np.resize(np.tile(values, 8), BLOCK)
    types = {"x": f"i{width}", "z": f"i{width}"}
    found = {
        op: elementwise(f"%r = arith.{op} %x, %z : i{width}", types, f"i{width}", 1)(a, b)[0]
        for op in ("divsi", "remsi", "floordivsi")
    }

    def wrap(value: int) -> int:
        return (value - smallest) % (1 << width) + smallest

    for i, (p, q) in enumerate(zip(a[:64].tolist(), b[:64].tolist(), strict=True)):
        if q == 0:
            assert (found["divsi"][i], found["remsi"][i]) == (0, p)
            continue
        truncated = abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        assert found["divsi"][i] == wrap(truncated)
        assert found["remsi"][i] == p - truncated * q
        assert found["floordivsi"][i] == wrap(p // q)
