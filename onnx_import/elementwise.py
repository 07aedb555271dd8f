"""Operators at each position: arithmetic, comparison, logic, rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..lazy.dtypes import bool_
from ..lazy.expression import Node
from .building import cast, compare, div, either, full, op, scalar, sub, where
from .dtypes import is_float, is_integer
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
    rule(_name, *_versions)(_unary(_aten))
for _name, (_aten, _versions) in BINARY.items():
    rule(_name, *_versions)(_binary(_aten, bools=False))
for _name, (_aten, _versions) in COMPARISONS.items():
    rule(_name, *_versions)(_binary(_aten, bools=True))


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
