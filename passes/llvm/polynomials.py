"""exp, log and their kin, tanh and erf without branches or calls, so that loops over them vectorise.

Each is within 2 units in the last place for every input, zeros, subnormals, infinities and NaN
included; `test/python/test_expand_math.py` measures it. All are of f32 or f64, whatever the builder writes,
but for erf, which each has its own way. Coefficients of erf, and of exp in f32, make its greatest error about
as small as can be.
"""

from __future__ import annotations

from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from .float_constants import F32, F64, Parts, constants_of
from .math_builder import MathBuilder

_TANH_SPLIT = 0.625
_TANH_IS_ONE = 40.0
"""A 2 |x| from which on tanh |x| rounds to 1, with something to spare."""
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
_WIDE_ERF_SMALL = (
    -7.795898827002142e-10,
    1.3720064546777686e-8,
    -1.6208483801871705e-7,
    1.6447424703317362e-6,
    -1.492473690741966e-5,
    0.00012055294904839707,
    -0.0008548325975389692,
    0.0052239776071164225,
    -0.02686617064323777,
    0.11283791670945006,
    -0.37612638903183543,
    0.12837916709551256,
)
"""erf(x) / x - 1 in x**2, for x up to 1."""
_WIDE_ERF_LARGE = (
    1.2801900862962662e-6,
    2.023603179641757e-6,
    -8.008021319412685e-6,
    -1.284889451252353e-5,
    6.406182073530546e-5,
    4.525472635483354e-5,
    -0.0005970623517093284,
    0.0007077464443901538,
    0.004269136347508256,
    -0.024392499318273194,
    0.07166583719774874,
    -0.15011593650078744,
    0.24560380171233195,
    -0.32623356004303716,
    0.17900115118138996,
)
"""(1 - erf x) e**(x**2) in (x - c) / (x + c), c `_WIDE_ERF_CENTRE`, for x from 1 to `_WIDE_ERF_IS_ONE`."""
_WIDE_ERF_CENTRE = 3.0
_WIDE_ERF_IS_ONE = 6.0


def exp(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x: with n the integer nearest to x / ln 2, 2**n * e**(x - n ln 2)."""
    c = constants_of(m)
    held = m.clamp(x, *c.exp_bounds)
    if m.scales:
        rest, shifted = reduce(m, held)
        return m.scaled(_exp_near_zero(m, rest), _integer(m, shifted))
    rest, shifted = reduce(m, held, 2 * c.bias)
    one, other = _halves(m, shifted)
    return m.mul(m.fma(_without_one(m, rest, c.exp), one, one), other)


def exp_of_at_most_zero(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x for x <= 0; NaN stays, and of other arguments any value comes.

    Until the end it is greater by a power of two, so that it is not subnormal.
    """
    c = constants_of(m)
    rest, shifted = reduce(m, m.at_least(x, c.exp_least), c.bias + c.digits)
    power = power_of_two(m, shifted)
    greater = m.fma(_without_one(m, rest, c.exp), power, power)
    return m.mul(greater, m.float(2.0**-c.digits))


def power_of_two(m: MathBuilder, shifted: SSAValue) -> SSAValue:
    """2**n, from n + `bias` + `round`, if it is a normal float; 0 for n = -`bias`."""
    return m.from_bits(m.insert(arith.ShLIOp(m.bits(shifted), m.int(constants_of(m).mantissa_bits))))


def moderate_exp(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x where 2**n is a normal float: -86 < x < 88; elsewhere, and for NaN, any value."""
    rest, shifted = reduce(m, x)
    return m.from_bits(raise_exponent(m, _exp_near_zero(m, rest), shifted))


def expm1(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x - 1: with n as for `exp` and q = e**(x - n ln 2) - 1, 2**n * q + (2**n - 1).

    All of it is halved until the end, because the greatest 2**n is no float.
    """
    c = constants_of(m)
    low, high = c.expm1_bounds
    rest, shifted = reduce(m, m.clamp(x, low, high))
    half = m.from_bits(raise_exponent(m, m.float(0.5), shifted))
    result = m.fma(half, _expm1_near_zero(m, rest), m.sub(half, m.float(0.5)))
    whole = m.test(m.abs(x), "olt", c.tiny)  # also what half of would lose a bit, and -0
    return m.select(whole, x, m.add(result, result))


def reduce(m: MathBuilder, x: SSAValue, more: int = 0) -> tuple[SSAValue, SSAValue]:
    """x - n ln 2 and n + more + `round`, with n the integer nearest to x / ln 2."""
    c = constants_of(m)
    high, low = c.ln_2
    shifted = m.fma(x, m.float(sum(c.log2_e)), m.float(c.round + more))
    n = m.sub(shifted, m.float(c.round + more))
    rest = m.fma(n, m.float(-high), x)
    return m.fma(n, m.float(-low), rest), shifted


def exp2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2**x: with n the integer nearest to x, 2**n * 2**(x - n)."""
    c = constants_of(m)
    held = m.clamp(x, *c.exp2_bounds)
    round = m.float(c.round if m.scales else c.round + 2 * c.bias)
    shifted = m.add(held, round)
    near = m.horner(m.sub(held, m.sub(shifted, round)), c.exp2)
    if m.scales:
        return m.scaled(near, _integer(m, shifted))
    one, other = _halves(m, shifted)
    return m.mul(m.mul(near, one), other)


def _halves(m: MathBuilder, shifted: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Two powers of two whose product is 2**n, from n + 2 * `bias` + `round`; both are 0 for n = -2 * `bias`.

    Each is a float for an n twice as far from 0 as a float's exponent may be. So a product with one loses
    nothing, and that with the other is rounded, to a subnormal number or to infinity, too.
    """
    bits, places = m.bits(shifted), m.int(constants_of(m).mantissa_bits)
    half = m.insert(arith.ShRUIOp(bits, m.int(1)))
    parts = half, m.insert(arith.SubiOp(bits, half))
    one, other = (m.from_bits(m.insert(arith.ShLIOp(each, places))) for each in parts)
    return one, other


def _integer(m: MathBuilder, shifted: SSAValue) -> SSAValue:
    """n as an i32, from `n + round`."""
    c = constants_of(m)
    bits = m.bits(shifted)
    n = m.insert(arith.SubiOp(bits, m.bits(m.float(c.round))))
    return n if n.type == i32 else m.insert(arith.TruncIOp(n, i32))


def _exp_near_zero(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x for |x| <= ln 2 / 2."""
    return m.add(_without_one(m, x, constants_of(m).exp), m.float(1.0))


def _expm1_near_zero(m: MathBuilder, x: SSAValue) -> SSAValue:
    """e**x - 1 for |x| <= ln 2 / 2."""
    return _without_one(m, x, constants_of(m).expm1)


def _without_one(m: MathBuilder, x: SSAValue, tail: tuple[float, ...]) -> SSAValue:
    return m.fma(m.horner(x, tail), m.mul(x, x), x)


def raise_exponent(m: MathBuilder, value: SSAValue, shifted: SSAValue) -> SSAValue:
    """The bits of value * 2**n, n from the low bits of `n + round`, if it is a normal float."""
    bits = m.int(constants_of(m).mantissa_bits)
    raised = m.insert(arith.ShLIOp(m.bits(shifted), bits))
    return m.insert(arith.AddiOp(m.bits(value), raised))


def log(m: MathBuilder, x: SSAValue) -> SSAValue:
    """ln x: with x = 2**n * (1 + f) and 1 + f in [sqrt 1/2, sqrt 2), n ln 2 + ln(1 + f)."""
    n, f, tail = _log_parts(m, x)
    return _log_edges(m, x, _log_sum(m, n, f, tail))


def _log_sum(m: MathBuilder, n: SSAValue, f: SSAValue, tail: SSAValue) -> SSAValue:
    """n ln 2 + f + tail, for a tail that is small beside f."""
    high, low = constants_of(m).ln_2
    return m.fma(n, m.float(high), m.add(f, m.fma(n, m.float(low), tail)))


def log2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """log2 x: n + log2(1 + f), as in `log`."""
    n, f, tail = _log_parts(m, x)
    return _log_edges(m, x, m.add(n, _scaled(m, f, tail, constants_of(m).log2_e)))


def log10(m: MathBuilder, x: SSAValue) -> SSAValue:
    """log10 x: n log10 2 + log10(1 + f), as in `log`."""
    c = constants_of(m)
    high, low = c.log10_2
    n, f, tail = _log_parts(m, x)
    near = m.fma(n, m.float(low), _scaled(m, f, tail, c.log10_e))
    return _log_edges(m, x, m.fma(n, m.float(high), near))


def _scaled(m: MathBuilder, f: SSAValue, tail: SSAValue, factor: Parts) -> SSAValue:
    """(f + tail) * factor, for a tail that is small beside f and a factor in two parts."""
    high, low = (m.float(part) for part in factor)
    return m.fma(f, high, m.fma(tail, high, m.mul(f, low)))


def _log_parts(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """n, f and ln(1 + f) - f, where x = 2**n * (1 + f) and 1 + f in [sqrt 1/2, sqrt 2)."""
    c = constants_of(m)
    tiny = m.test(x, "olt", c.min_normal)
    scaled = m.select(tiny, m.mul(x, m.float(2.0**c.mantissa_bits)), x)
    raised = m.insert(arith.AddiOp(m.bits(scaled), m.int(c.one_bits - c.sqrt_half_bits)))
    exponent = m.insert(arith.ShRUIOp(raised, m.int(c.mantissa_bits)))
    n = m.from_bits(m.insert(arith.OrIOp(exponent, m.int(c.integer_bits))))
    zero = 2.0**c.mantissa_bits + c.bias
    n = m.sub(n, m.select(tiny, m.float(zero + c.mantissa_bits), m.float(zero)))
    mantissa = m.insert(arith.AndIOp(raised, m.int((1 << c.mantissa_bits) - 1)))
    f = m.from_bits(m.insert(arith.AddiOp(mantissa, m.int(c.sqrt_half_bits))))
    f = m.sub(f, m.float(1.0))
    return n, f, _log_tail(m, f)


def _log_tail(m: MathBuilder, f: SSAValue) -> SSAValue:
    """ln(1 + f) - f: -f**2 / 2 and a polynomial in f, or for f64 one in (f / (2 + f))**2."""
    c, square = constants_of(m), m.mul(f, f)
    if c is F32:
        cubic = m.mul(m.mul(m.horner(f, c.log), f), square)
        return m.fma(square, m.float(-0.5), cubic)
    assert c is F64
    s = m.div(f, m.add(f, m.float(2.0)))
    z, half = m.mul(s, s), m.mul(square, m.float(0.5))
    series = m.mul(m.horner(z, c.log), z)
    return m.sub(m.mul(s, m.add(half, series)), half)


def _log_edges(m: MathBuilder, x: SSAValue, result: SSAValue) -> SSAValue:
    """A logarithm of `x`, which is `result` if `x` is positive."""
    result = m.select(m.test(x, "oeq", 0.0), m.float(-inf), result)
    result = m.select(m.test(x, "olt", 0.0), m.float(nan), result)
    # Infinity and NaN answer for themselves.
    return m.select(m.test(x, "ult", inf), m.select(m.test(x, "uno", x), x, result), x)


def log1p(m: MathBuilder, x: SSAValue) -> SSAValue:
    """ln(1 + x): the logarithm of the rounded sum u, with what the rounding lost over u in its tail."""
    u = m.add(x, m.float(1.0))
    lost = m.sub(x, m.sub(u, m.float(1.0)))
    n, f, tail = _log_parts(m, u)
    result = _log_edges(m, u, _log_sum(m, n, f, m.add(tail, m.div(lost, u))))
    # Below the last bit of 1 it is all of x.
    return m.select(m.test(m.abs(x), "olt", 2 * constants_of(m).tiny), x, result)


def tanh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """tanh x: odd polynomial near zero, else 1 - 2 / (e**(2|x|) + 1) with the sign of x."""
    size = m.abs(x)
    square = m.mul(x, x)
    near = m.fma(m.mul(m.horner(square, constants_of(m).tanh), square), x, x)
    doubled = m.add(size, size)
    held = m.select(m.test(doubled, "ogt", _TANH_IS_ONE), m.float(_TANH_IS_ONE), doubled)
    grown = moderate_exp(m, held)
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


def wide_erf(m: MathBuilder, x: SSAValue) -> SSAValue:
    """erf x of f64: odd polynomial near zero, else 1 - e**(-x**2) * polynomial, with the sign of x."""
    size, square = m.abs(x), m.mul(x, x)
    near = m.fma(m.horner(square, _WIDE_ERF_SMALL), x, x)
    held = m.select(m.test(size, "ogt", _WIDE_ERF_IS_ONE), m.float(_WIDE_ERF_IS_ONE), size)
    place = m.div(m.sub(held, m.float(_WIDE_ERF_CENTRE)), m.add(held, m.float(_WIDE_ERF_CENTRE)))
    fallen = moderate_exp(m, m.negative(m.mul(held, held)))
    far = m.sub(m.float(1.0), m.mul(fallen, m.horner(place, _WIDE_ERF_LARGE)))
    # NaN stays in the polynomial near zero.
    return m.select(m.test(size, "ogt", _ERF_SPLIT), m.copysign(far, x), near)
