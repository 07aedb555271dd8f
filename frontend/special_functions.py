"""Special functions as formulas of elementary ones, for which PyTorch has no decomposition.

    torch.special.erfcx(x)     # a polynomial of (x - 4) / (x + 4), by 1 + 2 x
    torch.lgamma(x)            # Stirling's series at x + 7, less the logarithm of x (x + 1) ... (x + 6)

Most are computed in f64 and rounded once; f64 itself, for which that is not enough, is left to PyTorch.
Formulas: NIST Digital Library of Mathematical Functions, chapters 5, 7 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

aten = torch.ops.aten

Rule = Callable[..., Any]

_ERFCX = (
    1.1774832005374487, -0.0072607966203019005, -0.081265123236184998, 0.06009212804122225,
    -0.02875393558027666, 0.01059566336347286, -0.0031369272945542642, 0.0007456494372536184,
    -0.00013696965030100541, 1.7183861600300937e-5, -7.1583646234503469e-7,
    -2.4261399442449532e-7, 5.5765709395703564e-8, -2.1057869513809495e-9, -1.1717889351884957e-9,
    1.9098355172456688e-10, 1.408871764208813e-11, -6.901108320480815e-12, 9.1679583641112933e-14,
    2.1454508286554553e-13, -1.4716575027010624e-14, -6.6686751187704079e-15,
    7.504598509880083e-16, 2.22009300666632e-16, -3.1704898956330888e-17, -8.1935703098843323e-18,
    1.2459819733129574e-18,
)
"""Of (1 + 2 x) erfcx(x) in Chebyshev's polynomials of (x - 4) / (x + 4), x >= 0, by mpmath with 50 digits."""

_ERFC = (
    1.26483818, -0.122356765, -0.0990245363, 0.157629998, -0.102967101, 0.0327600239,
    0.000932091773, -0.00437782264, 0.000491625531, 0.000621285122, -8.90627643e-05,
    -9.83479252e-05, 8.38163277e-06, 1.1212429e-05,
)
"""Of the same in powers of (x - 2.5) / (x + 2.5): to 1e-9."""

_ERFINV = (
    1.50140935, 0.246640289, -0.00417732492, -0.00125274842, 0.000218263923, -4.9597435e-06,
    -3.42617595e-06, 4.6542873e-07, 1.64871768e-08, -8.73983097e-09, 4.35114731e-10,
)
"""Of erfinv(x) / x in powers of w - 2.5, where w = -log(1 - x^2) is at most 5: to 6e-10."""

_ERFINV_TAIL = (
    0.955555778, -0.0338714202, 0.00359348935, 0.00294958411, 0.000399461091, 0.00181847115,
    0.000748792204, -0.00074438808, -0.000686711719, 0.00019254618, 0.000185126003,
    -2.01278797e-05,
)
"""Of erfinv(x) / (x sqrt(w)) in powers of (1 / sqrt(w) - middle) / half, where 5 < w < 105: to 6e-8."""

_TAIL_MIDDLE, _TAIL_HALF = 0.27238728555485702, 0.17482630994510092
"""Of the interval of 1 / sqrt(w), from 1 / 10.25 to 1 / sqrt(5)."""

_I0E = (
    0.5340515674266, -0.2203300626585, 0.1333055618568, -0.07133822990817, 0.03211169465804,
    -0.01084022888853, 0.001553765090831, 0.001200709356239, -0.001264021179061,
    0.0006988170616514, -0.0002682788074996, 7.343719223173e-5, -1.532557432502e-5,
    4.739434903343e-6, -3.064212234354e-6, 1.700033738383e-6, -6.506009036912e-7,
    2.033778773381e-7, -8.337298813845e-8, 4.546040367488e-8, -2.106679349616e-8,
    7.786977073392e-9, -3.110755639695e-9, 1.580172159912e-9, -7.480687706951e-10,
    2.949143026276e-10, -1.236679111648e-10, 6.209343265001e-11, -2.868143292814e-11,
)
"""Of sqrt(1 + x) exp(-x) I0(x) in those of (x - 8) / (x + 8), x >= 0: to 3e-11."""

_I1E = (
    0.4728951502291, -0.08740559641947, 0.003697948851831, 0.02274662006885, -0.02185214427543,
    0.0130407685986, -0.005464186180797, 0.001382410202692, 5.611636508978e-5,
    -0.0002583875308324, 0.0001362904454204, -3.588684955789e-5, 1.713468137765e-6,
    1.715686016912e-6, 6.558144743203e-8, -4.88146007188e-7, 1.870608460938e-7,
    -8.596584826965e-9, -5.93414819565e-9, -5.923674749676e-9, 4.556481669191e-9,
    -7.239585865137e-10, -9.340837260793e-11, -1.384608450269e-10, 1.236839054124e-10,
    -2.065570602369e-11, -1.455304047593e-12,
)
"""Of sqrt(1 + x)^3 exp(-x) I1(x) / x in the same: to 5e-12."""

_STEPS = 7
"""Steps of one to where the asymptotic series of 8 terms holds to 2e-15."""

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""Bernoulli's numbers B2, B4, ..., B16."""

_MOST_DERIVATIVES = 16
"""The highest order of `polygamma` whose factorials and powers stay in the range of f64."""


def _computed(formula: Rule, within: torch.dtype, *left: torch.dtype) -> Rule:
    """A rule that computes a formula of one tensor in a type; gives the type that PyTorch's operator has.

    Tensors of the types `left` are left to PyTorch.
    """

    @wraps(formula)
    def rule(value: torch.Tensor) -> Any:
        if value.dtype in left:
            return NotImplemented
        result = value.dtype if value.is_floating_point() else torch.get_default_dtype()
        return formula(value.to(within)).to(result)

    return rule


def _series(t: torch.Tensor, terms: Sequence[float]) -> torch.Tensor:
    """A sum of Chebyshev's polynomials, by Clenshaw's recurrence."""
    after, later = torch.zeros_like(t), torch.zeros_like(t)
    for term in reversed(terms[1:]):
        after, later = 2 * t * after - later + term, after
    return t * after - later + terms[0]


def _power_series(t: torch.Tensor, terms: Sequence[float]) -> torch.Tensor:
    """A polynomial, by Horner's rule."""
    total = torch.full_like(t, terms[-1])
    for term in reversed(terms[:-1]):
        total = total * t + term
    return total


def _odd_powers(x: torch.Tensor, terms: Sequence[float]) -> torch.Tensor:
    """The sum of terms[k] / x^(2 k + 1)."""
    inverse = 1 / x
    square, total = inverse * inverse, torch.zeros_like(x)
    for term in reversed(terms):
        total = total * square + term
    return total * inverse


# --------------------------------------------------------------------------- the error function


def _scaled_tail(x: torch.Tensor) -> torch.Tensor:
    """exp(x^2) erfc(x) for x >= 0."""
    return torch.where(x == math.inf, 0.0, _series((x - 4) / (x + 4), _ERFCX) / (1 + 2 * x))


def _erfcx(x: torch.Tensor) -> torch.Tensor:
    size = x.abs()
    tail = _scaled_tail(size)
    head = size.float().double()  # its square is exact, and the last digits of squares count
    rest = torch.where(size.isfinite(), (size - head) * (size + head), 0.0)
    return torch.where(x < 0, 2 * torch.exp(head * head) * torch.exp(rest) - tail, tail)


def _erfc(x: torch.Tensor) -> torch.Tensor:
    size = x.abs().clamp(max=11)  # from where on it is 0
    tail = _power_series((size - 2.5) / (size + 2.5), _ERFC) / (1 + 2 * size)
    head = size.bfloat16().float()
    tail = tail * torch.exp(-head * head) * torch.exp((head - size) * (head + size))
    return torch.where(x < 0, 2 - tail, tail)


def _erfinv(y: torch.Tensor) -> torch.Tensor:
    return _inverse(y, (1 - y) * (1 + y))


def _ndtri(p: torch.Tensor) -> torch.Tensor:
    """Where the normal distribution has the probability p to its left."""
    return math.sqrt(2) * _inverse(2 * p - 1, 4 * p * (1 - p))


def _inverse(y: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    """The x whose erf is y; `rest` is 1 - y^2, with all its digits."""
    w = -torch.log(rest)
    root = w.rsqrt()
    near = _power_series(w - 2.5, _ERFINV)
    far = _power_series((root - _TAIL_MIDDLE) / _TAIL_HALF, _ERFINV_TAIL) * (w * root)
    return y * torch.where(w < 5, near, torch.where(w == math.inf, math.inf, far))


# --------------------------------------------------------------------------- the gamma function


def _apart(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What is reflected (x < 1/2), the argument from 1/2 on, and how far x is from an integer."""
    reflected = x < 0.5
    return reflected, torch.where(reflected, 1 - x, x), x - x.round()


def _cotangent(offset: torch.Tensor) -> torch.Tensor:
    """cot(pi offset) for offsets up to 1/2, where it is 0."""
    return (math.pi * (0.5 - offset.abs())).sin() / (math.pi * offset).sin()


def _is_pole(x: torch.Tensor) -> torch.Tensor:
    return (x <= 0) & (x == x.floor())


def _lgamma(x: torch.Tensor) -> torch.Tensor:
    reflected, z, offset = _apart(x)
    product, far = z, z >= _STEPS
    for step in range(1, _STEPS):
        product = product * (z + step)
    product = torch.where(far, 1.0, product)
    w = torch.where(far, z, z + _STEPS)
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
    stirling = (w - 0.5) * w.log() - w + math.log(2 * math.pi) / 2 + _odd_powers(w, terms)
    turned = product * (math.pi / (math.pi * offset).sin().abs())
    log = torch.where(reflected, turned, product).log()
    value = torch.where(reflected, log - stirling, stirling - log)
    value = torch.where((x == 1) | (x == 2), 0.0, value)
    return torch.where(x.isinf(), math.inf, value)


def _digamma(x: torch.Tensor) -> torch.Tensor:
    reflected, z, offset = _apart(x)
    below = 1 / z
    for step in range(1, _STEPS):
        below = below + 1 / (z + step)
    w = z + _STEPS
    terms = [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
    value = w.log() - 1 / (2 * w) - _odd_powers(w, terms) / w - below
    value = torch.where(reflected, value - math.pi * _cotangent(offset), value)
    pole = torch.where(x == 0, torch.full_like(x, -math.inf).copysign(-x), math.nan)
    return torch.where(_is_pole(x), pole, torch.where(x == math.inf, math.inf, value))


def _cotangents(order: int) -> list[int]:
    """Of the derivative of cot(t) of an order, as a polynomial of cot(t)."""
    terms = [0, 1]
    for _ in range(order):
        slope = [k * term for k, term in enumerate(terms)][1:]
        terms = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return terms


def _polygamma(order: int, value: torch.Tensor) -> Any:
    """The derivative of `digamma` of an order."""
    if order == 0:
        return aten.digamma(value)
    if order > _MOST_DERIVATIVES or value.dtype == torch.float64:
        return NotImplemented
    return _computed(lambda x: _derivative_of_digamma(order, x), torch.float64)(value)


def _power(x: torch.Tensor, exponent: int) -> torch.Tensor:
    """A power by multiplications."""
    result = x
    for bit in bin(exponent)[3:]:
        result = result * result
        result = result * x if bit == "1" else result
    return result


def _derivative_of_digamma(order: int, x: torch.Tensor) -> torch.Tensor:
    """Infinite at poles; as in eager, the second and later derivatives are NaN at infinity."""
    reflected, z, offset = _apart(x)
    steps = _STEPS + order
    w = z + steps
    terms = [
        b * math.factorial(2 * k + order - 1) / math.factorial(2 * k)
        for k, b in enumerate(_BERNOULLI, 1)
    ]
    value = math.factorial(order - 1) + (math.factorial(order) / 2 + _odd_powers(w, terms)) / w
    value = value * _power(1 / w, order)
    for step in range(steps):
        value = value + math.factorial(order) * _power(1 / (z + step), order + 1)
    sign = 1.0 if order % 2 else -1.0
    cotangent, slope = _cotangent(offset), torch.zeros_like(x)
    for term in reversed(_cotangents(order)):
        slope = slope * cotangent + term
    reflection = -(math.pi ** (order + 1)) * slope - value
    value = torch.where(reflected, reflection, sign * value)
    value = torch.where(_is_pole(x), sign * math.inf, value)
    return torch.where(x == math.inf, math.nan, value) if order > 1 else value


# --------------------------------------------------------------------------- modified Bessel functions


def _i0e(x: torch.Tensor) -> torch.Tensor:
    size = x.abs()
    return _series(_from_8(size), _I0E) / (1 + size).sqrt()


def _i1e(x: torch.Tensor) -> torch.Tensor:
    size = x.abs()
    slope = _series(_from_8(size), _I1E) * torch.where(size == math.inf, 1.0, size / (1 + size))
    value = slope / (1 + size).sqrt()
    return torch.where(x < 0, -value, value)


def _from_8(size: torch.Tensor) -> torch.Tensor:
    return torch.where(size == math.inf, 1.0, (size - 8) / (size + 8))


def _grown(scaled: Rule) -> Rule:
    return lambda x: scaled(x) * x.abs().exp()


# --------------------------------------------------------------------------- others


def _hypot(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The square root of two squares, neither of which leaves the range."""
    result = torch.result_type(left, right)
    left, right = torch.broadcast_tensors(left.double(), right.double())
    large, small = torch.maximum(left.abs(), right.abs()), torch.minimum(left.abs(), right.abs())
    part = torch.where(large == 0, 0.0, small / large)
    size = large * (1 + part * part).sqrt()
    return torch.where(left.isinf() | right.isinf(), math.inf, size).to(result)


def _ldexp(value: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return value * torch.pow(2.0, exponent)


def _round(value: torch.Tensor, *, decimals: int | torch.SymInt) -> Any:
    """Rounds after each step, as eager does."""
    if not value.is_floating_point() or not isinstance(decimals, int):
        return NotImplemented
    power = torch.full((), 10.0 ** abs(decimals), dtype=value.dtype, device=value.device)
    if decimals < 0:
        return (value / power).round() * power
    return (value * power).round() / power


SPECIAL_FUNCTIONS: dict[Any, Rule] = {
    aten.digamma.default: _computed(_digamma, torch.float64, torch.float64),
    aten.erfc.default: _computed(_erfc, torch.float32, torch.float64),
    aten.erfinv.default: _computed(_erfinv, torch.float32, torch.float64),
    aten.hypot.default: _hypot,
    aten.i0.default: _computed(_grown(_i0e), torch.float64, torch.float64),
    aten.ldexp.Tensor: _ldexp,
    aten.lgamma.default: _computed(_lgamma, torch.float64, torch.float64),
    aten.polygamma.default: _polygamma,
    aten.round.decimals: _round,
    aten.special_erfcx.default: _computed(_erfcx, torch.float64),
    aten.special_i0e.default: _computed(_i0e, torch.float64, torch.float64),
    aten.special_i1.default: _computed(_grown(_i1e), torch.float64, torch.float64),
    aten.special_i1e.default: _computed(_i1e, torch.float64, torch.float64),
    aten.special_modified_bessel_i0.default: _computed(_grown(_i0e), torch.float64, torch.float64),
    aten.special_modified_bessel_i1.default: _computed(_grown(_i1e), torch.float64, torch.float64),
    aten.special_ndtri.default: _computed(_ndtri, torch.float32, torch.float64),
}
"""Operator -> its formula, which leaves calls to PyTorch that it is not exact enough for."""
