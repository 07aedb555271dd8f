"""What tensors can do, mostly tables: a name of the array API, the ATen operator, the dtypes it takes.

`public` enters a function under its name, so that it is in the namespace and a method. Casts are nodes of
their own: operands meet in the dtype of `promoted`, and Python numbers become 0-d constants of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import inf
from typing import Any, TypeAlias, TypeVar

from xdsl.utils.exceptions import VerifyException

from ..dialects.sizes import UndecidedSize
from .data import cast, full
from .dtypes import (
    FLOATING,
    INTEGRAL,
    KINDS,
    PARTS,
    DType,
    Number,
    as_dtype,
    bool_,
    meeting_number,
    promoted,
)
from .expression import Node, apply
from .tensor import METHODS, Tensor
from .variables import reckoning, with_names

Axes: TypeAlias = int | Sequence[int] | None
Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the namespace, by name."""


def public(function: Function, name: str | None = None, *, method: bool = True) -> Function:
    """Enter a function, whose errors then start with its name; gives the bare one."""
    said = name or function.__name__.rstrip("_")
    FUNCTIONS[said] = checked = checking(function, said)
    if method:
        METHODS[said] = checked
    return function


def checking(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function whose errors start with its name."""

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            with reckoning():
                return function(*args, **kwargs)
        except VerifyException as error:
            raise ValueError(f"{name}: {error}") from None
        except UndecidedSize as error:
            raise ValueError(f"{name}: {with_names(str(error))}") from None

    return checked


# --------------------------------------------------------------------------- what functions are made of


def tensor(value: Any, kind: str = "any", name: str = "") -> Node:
    """The expression of an argument that must be a tensor of some kind of dtype."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name or 'this function'} takes deplo.Tensors, not {type(value).__name__}"
        )
    if value.dtype.kind not in KINDS[kind]:
        raise TypeError(
            f"{name} takes tensors of {kind} dtypes, not {value.dtype}; cast with astype"
        )
    return value.node


def meet(name: str, kind: str, values: Sequence[Any]) -> list[Node]:
    """Tensors and Python numbers in the dtype that the tensors are promoted to."""
    nodes = [value if isinstance(value, Number) else tensor(value, kind, name) for value in values]
    dtypes = [node.dtype for node in nodes if isinstance(node, Node)]
    if not dtypes:
        raise TypeError(f"{name} takes at least one deplo.Tensor")
    dtype = promoted(*dtypes)
    for node in nodes:
        dtype = dtype if isinstance(node, Node) else meeting_number(dtype, node)
    if dtype.kind not in KINDS[kind]:
        raise TypeError(f"{name} takes tensors of {kind} dtypes, not {dtype}")
    return [cast(n, dtype) if isinstance(n, Node) else full((), n, dtype) for n in nodes]


def result(aten: str, node: Node, dtype: DType | None = None, /, **properties: Any) -> Tensor:
    """What an operator of one tensor gives; in its own dtype if no other is said."""
    return Tensor.of(apply(aten, [node], dtype or node.dtype, properties))


def on_cpu(device: str | None) -> None:
    """Raise ValueError for a device that lazy tensors are not computed on."""
    if device not in (None, "cpu"):
        raise ValueError(f"lazy tensors are computed on the CPU, not on {device!r}")


def axes_of(axis: Axes, rank: int) -> tuple[int, ...]:
    """Axes, all for None, counted from the front. Raises IndexError."""
    given = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    for each in given:
        if not -rank <= each < rank:
            raise IndexError(f"axis {each} is outside a tensor of {rank} axes")
    axes = tuple(each % rank for each in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axes {list(given)} name one axis twice")
    return axes


# --------------------------------------------------------------------------- element-wise

ELEMENTWISE: Mapping[str, tuple[str, str]] = {
    **{
        name: (f"{name}.default", "floating")
        for name in (
            "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh"
        ).split()
    },
    **{name: (f"{name}.default", "numeric") for name in "abs isinf isnan round".split()},
    **{name: (f"{name}.default", "real numeric") for name in "ceil floor signbit trunc".split()},
    **{f"logical_{name}": (f"logical_{name}.default", "bool") for name in "and or xor not".split()},
    **{f"bitwise_{n}": (f"bitwise_{n}.Tensor", "integral or bool") for n in "and or xor".split()},
    **{f"bitwise_{n}_shift": (f"bitwise_{n}_shift.Tensor", "integral") for n in ("left", "right")},
    "negative": ("neg.default", "numeric"),
    "bitwise_invert": ("bitwise_not.default", "integral or bool"),
    "add": ("add.Tensor", "numeric"),
    "subtract": ("sub.Tensor", "numeric"),
    "multiply": ("mul.Tensor", "numeric"),
    "divide": ("div.Tensor", "floating"),
    "maximum": ("maximum.default", "real numeric"),
    "minimum": ("minimum.default", "real numeric"),
    "atan2": ("atan2.default", FLOATING),
    "copysign": ("copysign.Tensor", FLOATING),
    "equal": ("eq.Tensor", "any"),
    "not_equal": ("ne.Tensor", "any"),
    "less": ("lt.Tensor", "real numeric"),
    "less_equal": ("le.Tensor", "real numeric"),
    "greater": ("gt.Tensor", "real numeric"),
    "greater_equal": ("ge.Tensor", "real numeric"),
}
"""Functions that are one operator at each position: its name, and the dtypes that it takes."""

PREDICATES = {"isnan", "isinf", "signbit", "logical_not", "equal", "not_equal"} | {
    *("less", "less_equal", "greater", "greater_equal")
}
"""Those that give bools, whatever they take."""

UNARY = {name for name, (aten, _) in ELEMENTWISE.items() if aten.endswith(".default")} - {
    *("logical_and", "logical_or", "logical_xor", "maximum", "minimum", "atan2")
}


def _elementwise(name: str, aten: str, kind: str) -> Callable[..., Tensor]:
    def of(*operands: Any) -> Tensor:
        nodes = meet(name, kind, operands)
        return Tensor.of(apply(aten, nodes, bool_ if name in PREDICATES else nodes[0].dtype))

    def unary(x: Tensor, /) -> Tensor:
        return of(x)

    def binary(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
        return of(x1, x2)

    made = unary if name in UNARY else binary
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"`{name}` of the array API, which is ATen's `{aten}`, of {kind} dtypes."
    return made


for _name, (_aten, _kind) in ELEMENTWISE.items():
    public(_elementwise(_name, _aten, _kind))


def call(name: str, *args: Any, **kwargs: Any) -> Tensor:
    """A function of the table, or any other, by its name."""
    return FUNCTIONS[name](*args, **kwargs)


@public
def positive(x: Tensor, /) -> Tensor:
    """The tensor itself."""
    return Tensor.of(tensor(x, "numeric", "positive"))


@public
def square(x: Tensor, /) -> Tensor:
    """x * x."""
    return call("multiply", x, x)


@public
def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x."""
    return result("reciprocal.default", tensor(x, "floating", "reciprocal"))


@public
def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, of complex numbers x / |x|; NaN of NaN, which ATen's has 0 for."""
    node = tensor(x, "numeric", "sign")
    signs = result("sign.default", node)
    return signs if node.dtype.kind != FLOATING else where(call("isnan", x), x, signs)


@public
def isfinite(x: Tensor, /) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    if tensor(x, "numeric", "isfinite").dtype.kind in INTEGRAL:
        return Tensor.of(full(x.shape, True, bool_))
    if x.dtype in PARTS:
        return isfinite(call("real", x)) & isfinite(call("imag", x))
    return call("abs", x) < inf


@public
def clip(
    x: Tensor, /, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """x, at least min and at most max, in its own dtype."""
    dtype = tensor(x, "real numeric", "clip").dtype
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            x = call(name, x, bound)
    return astype(x, dtype)


@public
def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 where the condition is true, else x2."""
    nodes = [tensor(condition, "bool", "where"), *meet("where", "any", [x1, x2])]
    return Tensor.of(apply("where.self", nodes, nodes[1].dtype))


@public
def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """The elements in another dtype."""
    on_cpu(device)
    return Tensor.of(cast(tensor(x, name="astype"), as_dtype(dtype)))
