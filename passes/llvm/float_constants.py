"""What the functions of `polynomials.py` need to know of f32 and of f64: bits, bounds and coefficients.

Those of f32 are of Cephes (Stephen Moshier, single precision). Those of f64 are Taylor series for powers, of
fdlibm (Sun Microsystems) for logarithms, and for tanh they make its greatest error about as small as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, f32, f64, i32, i64

from .math_builder import MathBuilder

Parts = tuple[float, float]
"""A number as a sum: of the first part's product with an integer of a few bits, nothing is lost."""


@dataclass(frozen=True)
class FloatConstants:
    """A float type, as its functions see it."""

    type: Float32Type | Float64Type
    integer: IntegerType
    """An integer as wide."""
    mantissa_bits: int
    bias: int
    """Of the exponent."""
    sqrt_half_bits: int
    """The bits of the square root of 1/2."""
    ln_2: Parts
    log10_2: Parts
    log2_e: Parts
    log10_e: Parts
    exp: tuple[float, ...]
    """(e**r - 1 - r) / r**2 in r, for |r| <= ln 2 / 2, as near as e**r needs it."""
    expm1: tuple[float, ...]
    """The same, as near as e**r - 1 needs it."""
    exp2: tuple[float, ...]
    """2**r, for |r| <= 1/2."""
    exp_bounds: tuple[float, float]
    """An x with n = -2 * `bias`, and one for which e**x is infinite."""
    exp_least: float
    """An x with n = -`bias` - `digits`, for which e**x rounds to 0."""
    exp2_bounds: tuple[float, float]
    expm1_bounds: tuple[float, float]
    """An x from which down e**x - 1 rounds to -1; one for which e**x is infinite, but 2**(n - 1) is not."""
    log: tuple[float, ...]
    """Of the logarithm's tail: see `polynomials.py`."""
    tanh: tuple[float, ...]
    """(tanh x - x) / x**3 in x**2, for |x| up to 0.625."""

    @property
    def digits(self) -> int:
        """The bits of a mantissa, with the one that is not written."""
        return self.mantissa_bits + 1

    @property
    def round(self) -> float:
        """Adding it leaves a float's nearest integer in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def min_normal(self) -> float:
        """The smallest number that has all its bits."""
        return 2.0 ** (1 - self.bias)

    @property
    def one_bits(self) -> int:
        """The bits of 1."""
        return self.bias << self.mantissa_bits

    @property
    def integer_bits(self) -> int:
        """The bits of 2**`mantissa_bits`: an integer below, put into its low bits, is added to it."""
        return self.bias + self.mantissa_bits << self.mantissa_bits

    @property
    def tiny(self) -> float:
        """A part of 1 that is less than its last bit."""
        return 2.0 ** -(self.mantissa_bits + 2)


F32 = FloatConstants(
    f32,
    i32,
    mantissa_bits=23,
    bias=127,
    sqrt_half_bits=0x3F3504F3,
    ln_2=(0.693359375, -2.12194440e-4),
    log10_2=(0.301025391, 4.60503907e-6),
    log2_e=(1.44269502, 1.92596299e-8),
    log10_e=(0.434294492, -1.01030501e-8),
    exp=(1.38189457e-3, 8.36870354e-3, 4.16682884e-2, 1.66665211e-1, 4.9999994e-1),
    expm1=(
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        0.5,
    ),
    exp2=(
        1.535336188319500e-4,
        1.339887440266574e-3,
        9.618437357674640e-3,
        5.550332471162809e-2,
        2.402264791363012e-1,
        6.931472028550421e-1,
        1.0,
    ),
    exp_bounds=(-176.0, 89.0),
    exp_least=-104.6,
    exp2_bounds=(-254.0, 129.0),
    expm1_bounds=(-20.0, 88.8),
    log=(
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    ),
    tanh=(
        -5.70498872745e-3,
        2.06390887954e-2,
        -5.37397155531e-2,
        1.33314422036e-1,
        -3.33332819422e-1,
    ),
)

_LN_2 = 0.6931471805599453

F64 = FloatConstants(
    f64,
    i64,
    mantissa_bits=52,
    bias=1023,
    sqrt_half_bits=0x3FE6A09E667F3BCD,
    ln_2=(0.6931471805598903, 5.497923018708371e-14),
    log10_2=(0.30102999566395283, 2.8363394551044964e-14),
    log2_e=(1.4426950408889634, 2.0355273740931033e-17),
    log10_e=(0.4342944819032518, 1.098319650216765e-17),
    exp=tuple(1 / factorial(k) for k in range(13, 1, -1)),
    expm1=tuple(1 / factorial(k) for k in range(13, 1, -1)),
    exp2=tuple(_LN_2**k / factorial(k) for k in range(13, -1, -1)),
    exp_bounds=(-1418.0, 710.0),
    exp_least=-745.8,
    exp2_bounds=(-2046.0, 1025.0),
    expm1_bounds=(-38.0, 709.9),
    log=(
        1.479819860511658591e-1,
        1.531383769920937332e-1,
        1.818357216161805012e-1,
        2.222219843214978396e-1,
        2.857142874366239149e-1,
        3.999999999940941908e-1,
        6.666666666666735130e-1,
    ),
    tanh=(
        6.485163482793113e-6,
        -3.12011014257974e-5,
        9.257116129556769e-5,
        -0.0002375906496055562,
        0.0005896606577757043,
        -0.0014557754120478055,
        0.0035921217511549622,
        -0.008863235103240878,
        0.021869488519008305,
        -0.05396825396789699,
        0.13333333333333042,
        -0.3333333333333333,
    ),
)

_CONSTANTS = {c.type: c for c in (F32, F64)}


def constants_of(m: MathBuilder) -> FloatConstants:
    """The constants of the type that a builder writes."""
    return _CONSTANTS[m.type]
