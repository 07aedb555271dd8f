"""asinh, acosh and atanh of f32 without branches or calls: within 2 units in the last place.

`test/python/test_expand_math.py` measures it. asinh and acosh are logarithms of f64: there nothing overflows,
and what cancels near 0 or 1 leaves more bits than f32 has.
"""

from __future__ import annotations

from math import nan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from .math_builder import MathBuilder
from .polynomials import log
from .powers import log2

_LN_2 = 0.6931471805599453
_WHOLE = 2.0**-12
"""An |x| below which asinh x rounds to x."""
_ATANH = (1.7669031e-1, 5.13588451e-2, 1.18237153e-1, 1.42227635e-1, 2.00025186e-1, 3.33333015e-1)
"""(atanh x - x) / x**3 in x**2, for |x| up to `_ATANH_SPLIT`."""
_ATANH_SPLIT = 0.5


def asinh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """asinh x: ln(|x| + sqrt(x**2 + 1)) with the sign of x; x itself where that is small."""
    size = _wide(m, m.abs(x))
    root = m.insert(math.SqrtOp(m.fma(size, size, m.float(1.0, f64))))
    result = m.copysign(_logarithm(m, m.add(size, root)), x)
    return m.select(m.test(m.abs(x), "olt", _WHOLE), x, result)


def acosh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """acosh x: ln(x + sqrt(x**2 - 1)), NaN below 1."""
    wide = _wide(m, x)
    root = m.insert(math.SqrtOp(m.fma(wide, wide, m.float(-1.0, f64))))
    result = _logarithm(m, m.add(wide, root))
    return m.select(m.test(x, "olt", 1.0), m.float(nan), result)


def atanh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """atanh x: odd polynomial near zero, else ln((1 + |x|) / (1 - |x|)) / 2, of the sign of x; in f32."""
    size, square, one = m.abs(x), m.mul(x, x), m.float(1.0)
    near = m.fma(m.mul(m.horner(square, _ATANH), square), x, x)
    ratio = m.div(m.add(one, size), m.sub(one, size))
    far = m.copysign(m.mul(log(m, ratio), m.float(0.5)), x)
    return m.select(m.test(size, "ogt", _ATANH_SPLIT), far, near)


def _wide(m: MathBuilder, x: SSAValue) -> SSAValue:
    return m.insert(arith.ExtFOp(x, f64))


def _logarithm(m: MathBuilder, x: SSAValue) -> SSAValue:
    """ln x of an f64, which is at least 1 or NaN, as f32."""
    return m.insert(arith.TruncFOp(m.mul(log2(m, x), m.float(_LN_2, f64)), f32))
