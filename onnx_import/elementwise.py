"""Operators at each position: arithmetic, comparison, logic, rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..lazy.dtypes import bfloat16, bool_
from ..lazy.expression import Node
from .building import cast, compare, div, either, full, op, scalar, where
from .dtypes import is_float
from .rules import Call, Refused, rule, same_dtype

UNARY: dict[str, tuple[str, tuple[int, ...]]] = {
    "Abs": ("abs", (6, 13)),
    "Acos": ("acos", (7, 22)),
    "Acosh": ("acosh", (9, 22)),
    "Asin": ("asin", (7, 22)),
    "Asinh": ("asinh", (9, 22)),
    "Atan": ("atan", (7, 22)),
    "Atanh": ("atanh", (9, 22)),
    "BitwiseNot": ("bitwise_not", (18,)),
    "Ceil": ("ceil", (6, 13)),
    "Cos": ("cos", (7, 22)),
    "Cosh": ("cosh", (9, 22)),
    "Erf": ("erf", (9, 13)),
    "Exp": ("exp", (6, 13)),
    "Floor": ("floor", (6, 13)),
    "Log": ("log", (6, 13)),
    "Neg": ("neg", (6, 13)),
    "Reciprocal": ("reciprocal", (6, 13)),
    "Relu": ("relu", (6, 13, 14)),
    "Round": ("round", (11, 22)),
    "Sigmoid": ("sigmoid", (6, 13)),
    "Sin": ("sin", (7, 22)),
    "Sinh": ("sinh", (9, 22)),
    "Sqrt": ("sqrt", (6, 13)),
    "Tan": ("tan", (7, 22)),
    "Tanh": ("tanh", (6, 13)),
}
"""Operators that are one of ATen's with one tensor."""

BINARY: dict[str, tuple[str, tuple[int, ...]]] = {
    "Add": ("add.Tensor", (7, 13, 14)),
    "Sub": ("sub.Tensor", (7, 13, 14)),
    "Mul": ("mul.Tensor", (7, 13, 14)),
    "BitwiseAnd": ("bitwise_and.Tensor", (18,)),
    "BitwiseOr": ("bitwise_or.Tensor", (18,)),
    "BitwiseXor": ("bitwise_xor.Tensor", (18,)),
}
"""Operators that are one of ATen's with two tensors of one dtype."""

COMPARISONS: dict[str, tuple[str, tuple[int, ...]]] = {
    "Equal": ("eq.Tensor", (7, 11, 13, 19)),
    "Less": ("lt.Tensor", (7, 9, 13)),
    "LessOrEqual": ("le.Tensor", (12, 16)),
    "Greater": ("gt.Tensor", (7, 9, 13)),
    "GreaterOrEqual": ("ge.Tensor", (12, 16)),
    "And": ("logical_and.default", (7,)),
    "Or": ("logical_or.default", (7,)),
    "Xor": ("logical_xor.default", (7,)),
}
"""Operators that give bools."""


def _unary(aten: str) -> Callable[[Call], Node]:
    return lambda call: op(f"{aten}.default", call.tensor(0))


def _binary(aten: str, *, bools: bool) -> Callable[[Call], Node]:
    def of(call: Call) -> Node:
        a, b = call.tensor(0), call.tensor(1)
        dtype = same_dtype(a, b)
        return op(aten, a, b, dtype=bool_ if bools else dtype)

    return of


for _name, (_aten, _versions) in UNARY.items():
    rule(_name, *_versions, text=f"`{_aten}` at each position.")(_unary(_aten))
for _name, (_aten, _versions) in BINARY.items():
    rule(_name, *_versions, text=f"`{_aten.partition('.')[0]}` at each position.")(
        _binary(_aten, bools=False)
    )
for _name, (_aten, _versions) in COMPARISONS.items():
    rule(_name, *_versions, text=f"`{_aten.partition('.')[0]}` at each position.")(
        _binary(_aten, bools=True)
    )


@rule("Div", 7, 13, 14)
def divide(call: Call) -> Node:
    """Of integers the quotient is cut off towards 0."""
    a, b = call.tensor(0), call.tensor(1)
    if is_float(same_dtype(a, b)):
        return div(a, b)
    return op("div.Tensor_mode", a, b, rounding_mode="trunc")


@rule("Not", 1)
def negate(call: Call) -> Node:
    """Not."""
    return op("logical_not.default", call.tensor(0), dtype=bool_)


@rule("Sign", 9, 13)
def sign(call: Call) -> Node:
    """-1, 0 or 1; NaN of NaN, which ATen's has 0 for."""
    x = call.tensor(0)
    signs = op("sign.default", x)
    if not is_float(x.dtype):
        return signs
    return where(op("isnan.default", x, dtype=bool_), x, signs)


@rule("IsNaN", 9, 13, 20)
def is_nan(call: Call) -> Node:
    """Whether elements are NaN."""
    return op("isnan.default", call.tensor(0), dtype=bool_)


@rule("IsInf", 10, 20)
def is_inf(call: Call) -> Node:
    """Whether elements are infinite, of one sign or of both."""
    x = call.tensor(0)
    negative, positive = call.flag("detect_negative"), call.flag("detect_positive")
    infinite = op("isinf.default", x, dtype=bool_)
    if negative and positive:
        return infinite
    if not negative and not positive:
        return full(x.shape, False, bool_)
    sign = compare("gt" if positive else "lt", x, scalar(0, x))
    return op("logical_and.default", infinite, sign, dtype=bool_)


def _chained(aten: str) -> Callable[[Call], Node]:
    def of(call: Call) -> Node:
        nodes = call.tensors()
        dtype = same_dtype(*nodes)
        found = nodes[0]
        for node in nodes[1:]:
            found = op(aten, found, node, dtype=dtype)
        return found

    return of


rule("Max", 8, 12, 13, text="The largest of several tensors.")(_chained("maximum.default"))
rule("Min", 8, 12, 13, text="The smallest of several tensors.")(_chained("minimum.default"))
rule("Sum", 8, 13, text="The sum of several tensors.")(_chained("add.Tensor"))


@rule("Mean", 8, 13)
def mean(call: Call) -> Node:
    """The sum over the number of tensors."""
    total = _chained("add.Tensor")(call)
    return div(total, scalar(len(call.inputs), total))


@rule("Mod", 10, 13, 28)
def modulo(call: Call) -> Node:
    """What division leaves: of the divisor's sign, or with fmod of the dividend's."""
    a, b = call.tensor(0), call.tensor(1)
    dtype = same_dtype(a, b)
    if call.flag("fmod"):
        return op("fmod.Tensor", a, b, dtype=dtype)
    left = op("remainder.Tensor", a, b, dtype=dtype)
    if not is_float(dtype):
        return left
    if call.version < 28 or dtype.bits == 64:
        raise Refused(f"{dtype} without fmod")
    zero = compare("eq", left, scalar(0, left))
    return where(zero, op("copysign.Tensor", scalar(0, left), b), left)


@rule("Pow", 7, 12, 13, 15)
def power(call: Call) -> Node:
    """x ** y in the dtype of x; of integers for an exponent that is known, from 0 to 64."""
    x, y = call.tensor(0), call.tensor(1)
    if is_float(x.dtype):
        if not y.shape and not call.depends(y) and y.dtype is not bfloat16:
            exponent = call.know(y).item()
            if float(exponent).is_integer() and abs(exponent) <= 64:
                return op("pow.Tensor_Scalar", x, exponent=float(exponent))
        return op("pow.Tensor_Tensor", x, cast(y, x.dtype))
    if is_float(y.dtype):
        raise Refused("an integer to the power of floats")
    exponents = call.array(1, "exponent")
    if exponents.size != 1 or not 0 <= exponents.item() <= 64 or y.shape > x.shape:
        raise Refused("an integer to the power of other than one number from 0 to 64")
    return op("pow.Tensor_Scalar", x, exponent=int(exponents.item()))


@rule("Where", 9, 16)
def choose(call: Call) -> Node:
    """x where the condition is true, else y."""
    a, b = call.tensor(1), call.tensor(2)
    return op("where.self", call.tensor(0), a, b, dtype=same_dtype(a, b))


@rule("Clip", 6, 11, 12, 13)
def clip(call: Call) -> Node:
    """At least min and at most max; max where min is larger."""
    x = call.tensor(0)
    bounds: Sequence[Node | None]
    if call.version == 6:
        low, high = call.given("min"), call.given("max")
        bounds = [None if each is None else scalar(each, x) for each in (low, high)]
    else:
        bounds = [call.optional(1), call.optional(2)]
    for aten, bound in zip(("maximum", "minimum"), bounds, strict=True):
        if bound is not None:
            same_dtype(x, bound)
            x = op(f"{aten}.default", x, bound)
    return x


@rule("BitShift", 11, 28)
def shift(call: Call) -> Node:
    """Bits moved; by as many as there are, or more, all of them are gone."""
    x, by = call.tensor(0), call.tensor(1)
    dtype = same_dtype(x, by)
    name = {"LEFT": "left", "RIGHT": "right"}[call.text("direction", "LEFT", "RIGHT")]
    bits = scalar(dtype.bits, x)
    beyond = either(compare("ge", by, bits), compare("lt", by, scalar(0, x)))
    within = where(beyond, scalar(0, x), by)
    shifted = op(f"bitwise_{name}_shift.Tensor", x, within, dtype=dtype)
    gone = scalar(0, x)
    if name == "right" and dtype.name != "uint8":
        gone = where(compare("lt", x, gone), scalar(-1, x), gone)
    return where(beyond, gone, shifted)
