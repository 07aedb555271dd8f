"""The closed set of scalar functions and reduction combiners that every IR above CUDA may use.

A function is named as in PyTorch where PyTorch has a name. Arithmetic is defined on f32, f64 and signless
integers (two's complement, wrapping). f16, bf16, tf32 and ui8 are storage formats: cast to f32 or i32,
compute, cast back. tf32, what tensor cores multiply of f32, has its 8 bits of exponent and 10 of fraction; it
is kept in 32 bits, and rounded to nearest, ties away from zero. To kernels a ui8 is the i8 of the same bits,
and the operation that widens it says so (`arith.extui`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IntegerType,
    Signedness,
    f64,
    i1,
    i8,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

STORAGE_FLOATS = (Float16Type, BFloat16Type, FloatTF32Type)
COMPUTE_FLOATS = (Float32Type, Float64Type)
INTEGER_WIDTHS = (8, 16, 32, 64)

ui8 = IntegerType(8, Signedness.UNSIGNED)
"""torch.uint8, the one unsigned type."""


def is_bool(element: Attribute) -> bool:
    """torch.bool: i1 as a value, one byte in memory."""
    return element == i1


def is_integer(element: Attribute) -> bool:
    """A signed torch integer: signless i8, i16, i32 or i64."""
    return (
        isinstance(element, IntegerType)
        and element.signedness.data is Signedness.SIGNLESS
        and element.width.data in INTEGER_WIDTHS
    )


def bits_of(element: Attribute) -> Attribute:
    """The type of the values that memory of `element` holds for a kernel, to whom ui8 is i8."""
    return i8 if element == ui8 else element


def is_compute_float(element: Attribute) -> bool:
    """A float type that arithmetic is defined on: f32 or f64."""
    return isinstance(element, COMPUTE_FLOATS)


def is_float(element: Attribute) -> bool:
    """A float type that may be stored: f16, bf16, tf32, f32 or f64."""
    return isinstance(element, (*COMPUTE_FLOATS, *STORAGE_FLOATS))


def is_element(element: Attribute) -> bool:
    """An element type that tensors of deplo may have."""
    return is_float(element) or is_integer(element) or is_bool(element) or element == ui8


def verify_element(element: Attribute) -> None:
    """Raise unless tensors of deplo may hold `element`."""
    if not is_element(element):
        raise VerifyException(
            f"element type {element} is not supported; expected f16, bf16, tf32, f32, f64, i1, i8, "
            "i16, i32, i64 or ui8"
        )


def verify_bits(element: Attribute) -> None:
    """Raise unless a kernel may hold `element`: any that tensors may, but ui8 as `bits_of` has it."""
    verify_element(element)
    if element == ui8:
        raise VerifyException("element type ui8 is i8 in a kernel")


def storage_bytes(element: Attribute) -> int:
    """Bytes one element takes in memory; a bool takes one, tf32 four."""
    if is_bool(element):
        return 1
    if isinstance(element, FloatTF32Type):
        return 4
    assert isinstance(element, IntegerType | AnyFloat)
    return element.bitwidth // 8


class Function(StrEnum):
    """Element-wise scalar functions; `FUNCTIONS` says what each accepts."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    FLOORDIV = "floordiv"
    TRUNCDIV = "truncdiv"
    REMAINDER = "remainder"
    FMOD = "fmod"
    MAX = "max"
    MIN = "min"
    POW = "pow"
    ATAN2 = "atan2"
    COPYSIGN = "copysign"
    NEG = "neg"
    ABS = "abs"
    EXP = "exp"
    EXP2 = "exp2"
    EXPM1 = "expm1"
    LOG = "log"
    LOG2 = "log2"
    LOG1P = "log1p"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    TANH = "tanh"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    LOG10 = "log10"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    TRUNC = "trunc"
    PROBABILITY = "probability"
    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    SHL = "shl"
    SHR = "shr"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    SELECT = "select"


@dataclass(frozen=True)
class Signature:
    """What a function accepts: its number of operands and the kinds of element it is defined on.

    `kinds` is a string of `f` (f32, f64), `i` (signed integers), `b` (bool), `h` (f16, bf16) and `u` (ui8).
    `predicate` functions give i1 instead of the operand type.
    """

    arity: int
    kinds: str
    predicate: bool = False
    meaning: str = ""


NO_PROBABILITY = "all elements must be between 0 and 1"
"""What a program says that stops at `probability`."""

_UNARY_FLOAT = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh asin acos atan sinh cosh asinh acosh"
    " atanh erf floor ceil trunc"
)

FUNCTIONS: dict[Function, Signature] = {
    Function.ADD: Signature(2, "fi"),
    Function.SUB: Signature(2, "fi"),
    Function.MUL: Signature(2, "fi"),
    Function.DIV: Signature(2, "f", meaning="IEEE division"),
    Function.FLOORDIV: Signature(2, "i", meaning="quotient rounded towards minus infinity"),
    Function.TRUNCDIV: Signature(2, "i", meaning="quotient rounded towards zero"),
    Function.REMAINDER: Signature(2, "i", meaning="x - floordiv(x, y) * y, the sign of y"),
    Function.FMOD: Signature(
        2, "if", meaning="x - trunc(x / y) * y, exact, with the sign of x; of floats, f32 only"
    ),
    Function.MAX: Signature(2, "fib", meaning="NaN if either operand is NaN"),
    Function.MIN: Signature(2, "fib", meaning="NaN if either operand is NaN"),
    Function.POW: Signature(2, "f"),
    Function.ATAN2: Signature(2, "f"),
    Function.COPYSIGN: Signature(2, "f", meaning="the first operand with the second's sign"),
    Function.NEG: Signature(1, "fi"),
    Function.ABS: Signature(1, "fi"),
    Function.ROUND: Signature(1, "f", meaning="to nearest, ties to even"),
    Function.PROBABILITY: Signature(
        1, "f", meaning="the operand; the program stops unless it is between 0 and 1"
    ),
    Function.AND: Signature(2, "ib"),
    Function.OR: Signature(2, "ib"),
    Function.XOR: Signature(2, "ib"),
    Function.NOT: Signature(1, "ib"),
    Function.SHL: Signature(2, "i", meaning="x * 2**y; 0 unless y is within the width"),
    Function.SHR: Signature(2, "i", meaning="x / 2**y rounded down; 0 or -1 beyond the width"),
    Function.EQ: Signature(2, "fib", predicate=True),
    Function.NE: Signature(2, "fib", predicate=True, meaning="true if either operand is NaN"),
    Function.LT: Signature(2, "fib", predicate=True),
    Function.LE: Signature(2, "fib", predicate=True),
    Function.GT: Signature(2, "fib", predicate=True),
    Function.GE: Signature(2, "fib", predicate=True),
    Function.SELECT: Signature(3, "fibhu", meaning="second operand where the first (i1) is true"),
} | {Function(name): Signature(1, "f") for name in _UNARY_FLOAT.split()}


def element_kind(element: Attribute) -> str:
    """The letter `Signature.kinds` uses for `element`, or `?`."""
    if is_bool(element):
        return "b"
    if is_integer(element):
        return "i"
    if is_compute_float(element):
        return "f"
    return "h" if isinstance(element, STORAGE_FLOATS) else "u" if element == ui8 else "?"


_COMPUTED_IN = {"h": "f32", "u": "i32"}


def _cast_first(kind: str) -> str:
    return f"; cast to {_COMPUTED_IN[kind]} first" if kind in _COMPUTED_IN else ""


def infer_result(function: Function, elements: list[Attribute]) -> Attribute:
    """The element type `function` gives on operands of `elements`.

    Raises VerifyException when it is not defined on them.
    """
    signature = FUNCTIONS[function]
    if len(elements) != signature.arity:
        raise VerifyException(f"{function} takes {signature.arity} operands, got {len(elements)}")
    values = elements
    if function is Function.SELECT:
        if not is_bool(elements[0]):
            raise VerifyException(f"select chooses by an i1 operand, got {elements[0]}")
        values = elements[1:]
    if any(e != values[0] for e in values):
        listed = ", ".join(str(e) for e in values)
        raise VerifyException(f"{function} needs operands of one element type, got {listed}")
    kind = element_kind(values[0])
    if function is Function.FMOD and values[0] == f64:
        raise VerifyException("fmod is not defined on f64")
    if kind not in signature.kinds:
        raise VerifyException(f"{function} is not defined on {values[0]}{_cast_first(kind)}")
    return i1 if signature.predicate else values[0]


@irdl_attr_definition
class FunctionAttr(EnumAttribute[Function], SpacedOpaqueSyntaxAttribute):
    """Names a scalar function: `#tensor_ir<function add>`."""

    name = "tensor_ir.function"


class Combiner(StrEnum):
    """Associative, commutative functions that a reduction folds its contributions with."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    WEIGHT = "weight"
    MEAN = "mean"


WEIGHTED = (Combiner.WEIGHT, Combiner.MEAN)
"""Combiners that need what others fold beside them: `reduce(max, weight, mean)`, see `verify_combiners`."""


@irdl_attr_definition
class CombinerAttr(EnumAttribute[Combiner], SpacedOpaqueSyntaxAttribute):
    """Names a combiner: `#tensor_ir<combiner add>`."""

    name = "tensor_ir.combiner"


class Update(StrEnum):
    """How a scatter changes an element: by the last value written there, or by the fold of all."""

    REPLACE = "replace"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"

    @property
    def combiner(self) -> Combiner | None:
        """What folds the values; None for `replace`."""
        return None if self is Update.REPLACE else Combiner(self.value)


@irdl_attr_definition
class UpdateAttr(EnumAttribute[Update], SpacedOpaqueSyntaxAttribute):
    """Names an update: `#tensor_ir<update replace>`."""

    name = "tensor_ir.update"


def verify_combiner(combiner: Combiner, element: Attribute) -> None:
    """Raise unless `combiner` folds values of `element` by itself; f16 and bf16 accumulate in f32."""
    if combiner in WEIGHTED:
        raise VerifyException(f"{combiner} does not fold by itself; it needs a max beside it")
    kind = element_kind(element)
    allowed = "b" if combiner in (Combiner.ANY, Combiner.ALL) else "fi"
    if kind not in allowed:
        raise VerifyException(f"{combiner} does not fold values of {element}{_cast_first(kind)}")


def is_weighted(combiners: Sequence[Combiner]) -> bool:
    """Whether contributions are folded together: exponents, weights and means."""
    return any(combiner in WEIGHTED for combiner in combiners)


def weighted_groups(combiners: Sequence[Combiner]) -> list[slice]:
    """Which contributions belong together: an exponent, and the weights and means that it scales."""
    starts = [i for i, combiner in enumerate(combiners) if combiner is Combiner.MAX]
    return [slice(a, b) for a, b in pairwise([*starts, len(combiners)])]


def verify_combiners(combiners: Sequence[Combiner], elements: Sequence[Attribute]) -> None:
    """Raise unless the results of one reduction, of types `elements`, can be folded so.

    In `max, weight, mean` a contribution (x, l, v) is the value v with the weight l * exp(x). Two give

        x = max(x1, x2)    l = l1' + l2'    v = l1'/l * v1 + l2'/l * v2    where li' = li * exp(xi - x)

    which is associative and commutative, and never larger than the contributions. With an x of minus infinity
    li' is 0, and where l is 0, so are both quotients; the identity is (minus infinity, 0, 0). Several weights
    and means may share an exponent; means share the first weight. What is folded as a weight, l * v, gives
    the total of which v is the mean. One reduction may fold several such groups.
    """
    if not is_weighted(combiners):
        for combiner, element in zip(combiners, elements, strict=True):
            verify_combiner(combiner, element)
        return
    groups = [combiners[group] for group in weighted_groups(combiners)]
    if combiners[0] is not Combiner.MAX or any(
        tuple(group[:2]) != (Combiner.MAX, Combiner.WEIGHT) or not set(group[2:]) <= set(WEIGHTED)
        for group in groups
    ):
        raise VerifyException(
            "what is weighted is folded by max, weight and any number of weights and means"
        )
    if len(set(elements)) > 1 or not is_compute_float(elements[0]):
        raise VerifyException("exponents, weights and means are all f32 or all f64")


def identity(combiner: Combiner, element: Attribute) -> int | float:
    """The value that leaves any other unchanged under `combiner`."""
    match combiner:
        case Combiner.WEIGHT | Combiner.MEAN:
            return 0.0
        case Combiner.ADD:
            return 0 if is_integer(element) else 0.0
        case Combiner.MUL:
            return 1 if is_integer(element) else 1.0
        case Combiner.ANY:
            return 0
        case Combiner.ALL:
            return 1
        case Combiner.MAX | Combiner.MIN:
            low = combiner is Combiner.MAX
            if element == ui8:
                return 0 if low else 255
            if isinstance(element, IntegerType):
                bound = 1 << (element.width.data - 1)
                return -bound if low else bound - 1
            return -math.inf if low else math.inf
