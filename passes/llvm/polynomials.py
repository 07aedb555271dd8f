"""exp, log and their kin, tanh and erf of f32 without branches or calls, so that loops over them vectorise.

Each is within 2 units in the last place for every input, zeros, subnormals, infinities and NaN
included; `test/python/test_expand_math.py` measures it. Coefficients are those of Cephes (Stephen
Moshier, single precision); those of erf make its greatest error about as small as can be.
"""

from __future__ import annotations

from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from .math_builder import MathBuilder

_LOG2_E = 1.44269504088896341
_LOG2_E_PARTS = (1.44269502, 1.92596299e-8)
_LOG10_E_PARTS = (0.434294492, -1.01030501e-8)
_LN_2_HIGH = 0.693359375
"""ln 2 to 9 bits: its product with an integer of a few bits is exact."""
_LN_2_LOW = -2.12194440e-4

ROUND = 12582912.0
"""1.5 * 2**23: adding it leaves a float's nearest integer in the low bits of the sum."""

_LOG10_2_HIGH = 0.301025391
"""log10 2 to 12 bits."""
_LOG10_2_LOW = 4.60503907e-6

_EXPONENT_BITS = 23
_BIAS = 127
_MIN_NORMAL = 1.17549435e-38
_MAX = 3.40282347e38
_LIFT = 64
"""What the exponent of a result is raised by that may be subnormal, until the end."""
_SQRT_HALF_BITS = 0x3F3504F3
_MANTISSA = 0x007FFFFF
_EXPM1_LOW = -20.0
"""An x down from which on e**x - 1 rounds to -1."""
_EXPM1_HIGH = 88.8
"""An x for which e**x is infinite, but 2**(n - 1) is not."""

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_EXP2 = (
    1.535336188319500e-4,
    1.339887440266574e-3,
    9.618437357674640e-3,
    5.550332471162809e-2,
    2.402264791363012e-1,
    6.931472028550421e-1,
    1.0,
)
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_TANH = (
    -5.70498872745e-3,
    2.06390887954e-2,
    -5.37397155531e-2,
    1.33314422036e-1,
    -3.33332819422e-1,
)
_TANH_SPLIT = 0.625
_TANH_IS_ONE = 40.0
"""A 2 |x| from which on tanh |x| rounds to 1."""
_ERF_SMALL = (
    -5.63142181e-4,
    4.9175513e-3,
    -2.67113112e-2,
    1.12801798e-1,
    -3.7612325e-1,
    1.28379121e-1,
)
"""erf(x) / x - 1 in x**2, for x up to `_ERF_SPLIT`."""
_ERF_LARGE = (
    -9.12466567e-6,
    3.47276218e-5,
    2.35469342e-5,
    -3.34257376e-4,
    6.35900826e-4,
    1.14393311e-4,
    -3.14330077e-3,
    8.36367812e-3,
    -1.31233325e-2,
    1.37289036e-2,
    -9.5166564e-3,
    4.00658883e-3,
    9.99217093e-1,
)
"""erf(x) in x - `_ERF_CENTRE`, for x from `_ERF_SPLIT` to `_ERF_IS_ONE`."""
_ERF_CENTRE = 2.375
_ERF_SPLIT = 1.0
_ERF_IS_ONE = 3.92
"""An x from which on erf x rounds to 1, as the polynomial does there."""


def exp(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x: with n the integer nearest to x / ln 2, 2**n * e**(x - n ln 2)."""
    nothing, held = _held(m, x, -104.0)  # e**-104 rounds to 0
    rest, shifted = reduce(m, held)
    power = _scale(m, _exp_near_zero(m, rest), shifted, x, (-86.0, 88.7228317))
    return m.select(nothing, m.float(0.0), power)


def _moderate_exp(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x for -86 < x < 88, where 2**n is a normal float; elsewhere, and for NaN, any value."""
    rest, shifted = reduce(m, x)
    return m.from_bits(raise_exponent(m, _exp_near_zero(m, rest), shifted))


def expm1(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x - 1: with n as for `exp` and q = e**(x - n ln 2) - 1, 2**n * q + (2**n - 1).

    All of it is halved until the end, because 2**128 is no float.
    """
    held = m.select(m.test(x, "olt", _EXPM1_LOW), m.float(_EXPM1_LOW), x)
    held = m.select(m.test(held, "ogt", _EXPM1_HIGH), m.float(_EXPM1_HIGH), held)
    rest, shifted = reduce(m, held)
    half = m.from_bits(raise_exponent(m, m.float(0.5), shifted))
    result = m.fma(half, _expm1_near_zero(m, rest), m.sub(half, m.float(0.5)))
    whole = m.test(m.abs(x), "olt", 2.0**-25)  # also what half of would lose a bit, and -0
    return m.select(whole, x, m.add(result, result))


def reduce(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x - n ln 2 and n + `ROUND`, with n the integer nearest to x / ln 2."""
    shifted = m.fma(x, m.float(_LOG2_E), m.float(ROUND))
    n = m.sub(shifted, m.float(ROUND))
    rest = m.fma(n, m.float(-_LN_2_HIGH), x)
    return m.fma(n, m.float(-_LN_2_LOW), rest), shifted


def exp2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2**x: with n the integer nearest to x, 2**n * 2**(x - n)."""
    nothing, held = _held(m, x, -151.0)
    shifted = m.add(held, m.float(ROUND))
    rest = m.sub(held, m.sub(shifted, m.float(ROUND)))
    power = _scale(m, m.horner(rest, _EXP2), shifted, x, (-124.0, 127.999992))
    return m.select(nothing, m.float(0.0), power)


def _held(m: MathBuilder, x: SSAValue, low: float) -> tuple[SSAValue, SSAValue]:
    """Whether a power rounds to 0, as that of `low` does, and `x`, or 0 where it does; NaN stays.

    A power that is computed and then rounds to 0 takes some CPUs a hundred cycles.
    """
    nothing = m.test(x, "olt", low)
    return nothing, m.select(nothing, m.float(0.0), x)


def _exp_near_zero(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x for |x| <= ln 2 / 2."""
    return m.add(_expm1_near_zero(m, x), m.float(1.0))


def _expm1_near_zero(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x - 1 for |x| <= ln 2 / 2."""
    return m.fma(m.horner(x, _EXP), m.mul(x, x), x)


def raise_exponent(m: MathBuilder, value: SSAValue, shifted: SSAValue) -> SSAValue:
    """The bits of value * 2**n, n from the low bits of `n + ROUND`, if it is a normal float."""
    raised = m.insert(arith.ShLIOp(m.bits(shifted), m.int(_EXPONENT_BITS)))
    return m.insert(arith.AddiOp(m.bits(value), raised))


def _scale(
    m: MathBuilder,
    value: SSAValue,
    shifted: SSAValue,
    x: SSAValue,
    normal: tuple[float, float],
) -> SSAValue:
    """value * 2**n, for n + `ROUND` and the argument `x`; between `normal` bounds of it, a normal float.

    Below, the exponent is raised by more and a product brings it down, which rounds to a subnormal. Above,
    the result is infinite, or NaN if `x` is.
    """
    low, high = normal
    small = m.test(x, "olt", low)
    bits = raise_exponent(m, value, shifted)
    lifted = m.insert(arith.AddiOp(bits, m.int(_LIFT << _EXPONENT_BITS)))
    factor = m.select(small, m.float(2.0**-_LIFT), m.float(1.0))
    result = m.mul(m.from_bits(m.select(small, lifted, bits)), factor)
    return m.select(m.test(x, "ugt", high), m.mul(x, m.float(_MAX)), result)


def log(m: MathBuilder, x: SSAValue) -> SSAValue:
    """ln x: with x = 2**n * (1 + f) and 1 + f in [sqrt 1/2, sqrt 2), n ln 2 + ln(1 + f)."""
    n, f, tail = _log_parts(m, x)
    tail = m.fma(n, m.float(_LN_2_LOW), tail)
    return _log_edges(m, x, m.fma(n, m.float(_LN_2_HIGH), m.add(f, tail)))


def log2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """log2 x: n + log2(1 + f), as in `log`."""
    n, f, tail = _log_parts(m, x)
    return _log_edges(m, x, m.add(n, _scaled(m, f, tail, _LOG2_E_PARTS)))


def log10(m: MathBuilder, x: SSAValue) -> SSAValue:
    """log10 x: n log10 2 + log10(1 + f), as in `log`."""
    n, f, tail = _log_parts(m, x)
    near = m.fma(n, m.float(_LOG10_2_LOW), _scaled(m, f, tail, _LOG10_E_PARTS))
    return _log_edges(m, x, m.fma(n, m.float(_LOG10_2_HIGH), near))


def _scaled(m: MathBuilder, f: SSAValue, tail: SSAValue, factor: tuple[float, float]) -> SSAValue:
    """(f + tail) * factor, for a tail that is small beside f and a factor in two parts."""
    high, low = (m.float(part) for part in factor)
    return m.fma(f, high, m.fma(tail, high, m.mul(f, low)))


def _log_parts(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """n, f and ln(1 + f) - f, where x = 2**n * (1 + f) and 1 + f in [sqrt 1/2, sqrt 2)."""
    tiny = m.test(x, "olt", _MIN_NORMAL)
    scaled = m.select(tiny, m.mul(x, m.float(2.0**_EXPONENT_BITS)), x)
    lowered = m.insert(arith.SubiOp(m.bits(scaled), m.int(_SQRT_HALF_BITS)))
    exponent = m.insert(arith.ShRSIOp(lowered, m.int(_EXPONENT_BITS)))
    mantissa = m.insert(arith.AndIOp(lowered, m.int(_MANTISSA)))
    f = m.from_bits(m.insert(arith.AddiOp(mantissa, m.int(_SQRT_HALF_BITS))))
    f = m.sub(f, m.float(1.0))
    correction = m.select(tiny, m.int(_EXPONENT_BITS), m.int(0))
    n = m.insert(arith.SIToFPOp(m.insert(arith.SubiOp(exponent, correction)), f32))
    square = m.mul(f, f)
    cubic = m.mul(m.mul(m.horner(f, _LOG), f), square)
    return n, f, m.fma(square, m.float(-0.5), cubic)


def _log_edges(m: MathBuilder, x: SSAValue, result: SSAValue) -> SSAValue:
    """A logarithm of `x`, which is `result` if `x` is positive."""
    result = m.select(m.test(x, "oeq", 0.0), m.float(-inf), result)
    result = m.select(m.test(x, "olt", 0.0), m.float(nan), result)
    # Infinity and NaN answer for themselves.
    return m.select(m.test(x, "ult", inf), m.select(m.test(x, "uno", x), x, result), x)


def log1p(m: MathBuilder, x: SSAValue) -> SSAValue:
    """ln(1 + x): the logarithm of the rounded sum u, plus what the rounding lost over u."""
    u = m.add(x, m.float(1.0))
    lost = m.sub(x, m.sub(u, m.float(1.0)))
    result = m.add(log(m, u), m.div(lost, u))
    # At -1 and at infinity the correction is not a number; below the last bit of 1 it is all of x.
    whole = m.test(m.abs(x), "olt", 2.0**-24)
    edge = m.insert(arith.OrIOp(m.test(u, "oeq", 0.0), m.test(u, "oeq", inf)))
    return m.select(whole, x, m.select(edge, log(m, u), result))


def tanh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """tanh x: odd polynomial near zero, else 1 - 2 / (e**(2|x|) + 1) with the sign of x."""
    size = m.abs(x)
    square = m.mul(x, x)
    near = m.fma(m.mul(m.horner(square, _TANH), square), x, x)
    doubled = m.add(size, size)
    held = m.select(m.test(doubled, "ogt", _TANH_IS_ONE), m.float(_TANH_IS_ONE), doubled)
    grown = _moderate_exp(m, held)
    far = m.sub(m.float(1.0), m.div(m.float(2.0), m.add(grown, m.float(1.0))))
    # NaN stays in the polynomial near zero: the exponential may lose it.
    return m.copysign(m.select(m.test(size, "ult", _TANH_SPLIT), near, far), x)


def erf(m: MathBuilder, x: SSAValue) -> SSAValue:
    """erf x: odd polynomial near zero, else a polynomial of |x| with the sign of x.

    1 - e**(-polynomial of |x|), as others have it, takes twice as long and more constants than registers.
    """
    size = m.abs(x)
    near = m.fma(m.horner(m.mul(x, x), _ERF_SMALL), x, x)
    held = m.select(m.test(size, "ogt", _ERF_IS_ONE), m.float(_ERF_IS_ONE), size)
    far = m.horner(m.sub(held, m.float(_ERF_CENTRE)), _ERF_LARGE)
    # NaN stays in the polynomial near zero.
    return m.select(m.test(size, "ogt", _ERF_SPLIT), m.copysign(far, x), near)
