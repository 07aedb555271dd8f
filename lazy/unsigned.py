"""Unsigned integers of 16, 32 and 64 bits, which no IR has: signed ones of the same bits.

    a + b        # the sum of the signed ones: the bits are the same
    a < b        # a ^ MIN < b ^ MIN: MIN, the smallest signed one, is the upper bit

A byte is torch.uint8, which Torch IR has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .data import cast, full
from .dtypes import (
    FLOATING,
    SIGNED_OF,
    DType,
    bool_,
    float32,
    float64,
    int64,
    limits_of,
    uint8,
    uint64,
)
from .expression import RULES, Argument, Node, plain
from .functions import call, where
from .tensor import Tensor

SAME_BITS = {
    f"{name}.Tensor"
    for name in "add sub mul eq ne bitwise_and bitwise_or bitwise_xor bitwise_left_shift".split()
} | {
    *("neg.default", "bitwise_not.default", "where.self"),
    *("sum.dim_IntList", "prod.dim_int", "cumsum.default", "cumprod.default", "matmul.default"),
    *("view.default", "permute.default", "expand.default", "flip.default", "cat.default"),
    *("stack.default", "select.int", "slice.Tensor", "repeat.default", "index.Tensor"),
    *("gather.default", "scatter.src", "transpose.int", "tril.default", "triu.default"),
    *("diagonal.default", "pow.Tensor_Scalar"),
}
"""Operators that give the same bits for signed and unsigned integers."""

ORDERS = {f"{name}.Tensor" for name in "lt le gt ge searchsorted".split()} | {
    *("maximum.default", "minimum.default", "amax.default", "amin.default"),
    *("argmax.default", "argmin.default", "sort.stable"),
}
"""Operators that only compare: of bits whose upper one is the other way round."""


def bits(node: Node, dtype: DType) -> Node:
    """The bits of an integer as those of one of as many."""
    return plain("_to_copy.default", [node], (dtype,), {"dtype": dtype})


def _signed(node: Node) -> Node:
    return bits(node, SIGNED_OF[node.dtype])


def _turned(node: Node) -> Node:
    """A signed node with its upper bit the other way round, which turns both orders into each other."""
    low, _ = limits_of(node.dtype)
    return plain("bitwise_xor.Tensor", [node, full((), low, node.dtype)], (node.dtype,), {})


def _compared(
    operator: str,
    arguments: Sequence[Argument],
    dtypes: Sequence[DType],
    properties: Mapping[str, Any],
    index: int,
) -> Node:
    signed = [
        _turned(_signed(each)) if isinstance(each, Node) and each.dtype in RULES else each
        for each in arguments
    ]
    kinds = [SIGNED_OF.get(dtype, dtype) for dtype in dtypes]
    found = plain(operator, signed, kinds, properties, index)
    return bits(_turned(found), dtypes[index]) if dtypes[index] in RULES else found


# --------------------------------------------------------------------------- casts


def _cast(node: Node, dtype: DType) -> Node:
    return _from_unsigned(node, dtype) if node.dtype in RULES else _to_unsigned(node, dtype)


def _from_unsigned(node: Node, dtype: DType) -> Node:
    if dtype.kind == FLOATING:
        return _to_float(node, dtype)
    signed = _signed(node)
    if dtype is bool_ or dtype.bits <= node.dtype.bits:
        return _of_signed(signed, dtype)
    _, mask = limits_of(node.dtype)
    wide = SIGNED_OF.get(dtype, dtype)
    widened = plain("_to_copy.default", [signed], (wide,), {"dtype": wide})
    masked = plain("bitwise_and.Tensor", [widened, full((), mask, wide)], (wide,), {})
    return _of_signed(masked, dtype)


def _of_signed(node: Node, dtype: DType) -> Node:
    """The lower bits of a signed integer that is as wide as the dtype, or wider."""
    target = SIGNED_OF[dtype] if dtype in RULES else dtype
    return bits(cast(node, target), dtype) if dtype in RULES else cast(node, dtype)


def _to_float(node: Node, dtype: DType) -> Node:
    if node.dtype is not uint64:
        return cast(_from_unsigned(node, int64), dtype)
    signed = Tensor.of(_signed(node))
    # Half of what no signed integer holds is rounded alike, with a bit that says whether it was odd.
    half = call("bitwise_or", Tensor.of(_signed(_shifted(node, 1))), signed & 1)
    small, large = (Tensor.of(cast(each.node, dtype)) for each in (signed, half))
    return where(signed < 0, large * 2, small).node


def _to_unsigned(node: Node, dtype: DType) -> Node:
    if node.dtype.kind != FLOATING or dtype is not uint64:
        signed = cast(node, int64 if node.dtype.kind == FLOATING else SIGNED_OF[dtype])
        return _of_signed(signed, dtype)
    wide = float64 if node.dtype is float64 else float32
    x = Tensor.of(cast(node, wide))
    above = x >= 2.0**63
    low = Tensor.of(cast(where(above, x - 2.0**63, x).node, int64))
    return bits(where(above, low ^ limits_of(int64)[0], low).node, dtype)


# --------------------------------------------------------------------------- arithmetic


def _widely(operator: str, nodes: Sequence[Node], properties: Mapping[str, Any]) -> Node:
    """An operator of integers of less than 64 bits, which signed ones of 64 hold."""
    wide = [_from_unsigned(node, int64) for node in nodes]
    return _of_signed(plain(operator, wide, (int64,), properties), nodes[0].dtype)


def _shifted(node: Node, by: int) -> Node:
    """A uint64 without its lowest bits, at least one."""
    signed = Tensor.of(_signed(node))
    return bits(((signed >> by) & (limits_of(uint64)[1] >> by)).node, uint64)


def _shift_right(nodes: Sequence[Node], properties: Mapping[str, Any]) -> Node:
    if nodes[0].dtype is not uint64:
        return _widely("bitwise_right_shift.Tensor", nodes, properties)
    by = Tensor.of(_signed(nodes[1]))
    half = Tensor.of(_signed(_shifted(nodes[0], 1)))
    stays = call("equal", by, 0)
    moved = half >> where(stays, 0, by - 1)
    return bits(where(stays, Tensor.of(_signed(nodes[0])), moved).node, uint64)


def _quotient(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What dividing uint64s gives, and what is left: of half of x, then corrected by one."""
    one, other = (Tensor.of(_signed(each.node)) for each in (x, y))
    half = Tensor.of(_signed(_shifted(x.node, 1)))
    large = other < 0  # then the quotient is 0 or 1
    estimate = where(large, 0, (half // where(large, 1, other)) << 1)
    left = one - estimate * other
    again = call("greater_equal", Tensor.of(bits(left.node, uint64)), y)
    step = Tensor.of(cast(again.node, int64))
    found = estimate + step, left - step * other
    return tuple(Tensor.of(bits(each.node, uint64)) for each in found)  # pyright: ignore[reportReturnType]


def _division(index: int, operator: str) -> Callable[..., Node]:
    def divided(nodes: Sequence[Node], properties: Mapping[str, Any]) -> Node:
        if nodes[0].dtype is not uint64:
            return _widely(operator, nodes, properties)
        return _quotient(*map(Tensor.of, nodes))[index].node

    return divided


def _itself(nodes: Sequence[Node], properties: Mapping[str, Any]) -> Node:
    return nodes[0]


def _never(nodes: Sequence[Node], properties: Mapping[str, Any]) -> Node:
    return full(nodes[0].shape, False, bool_)


ARITHMETIC: dict[str, Callable[[Sequence[Node], Mapping[str, Any]], Node]] = {
    "bitwise_right_shift.Tensor": _shift_right,
    "div.Tensor_mode": _division(0, "div.Tensor_mode"),
    "remainder.Tensor": _division(1, "remainder.Tensor"),
    "sign.default": lambda nodes, _: cast(cast(nodes[0], bool_), nodes[0].dtype),
    **{f"{name}.default": _itself for name in "abs ceil floor round trunc".split()},
    **{f"{name}.default": _never for name in "isinf isnan signbit".split()},
}
"""Operators that have their own way with unsigned integers."""


def _number(value: int, dtype: DType) -> int:
    """A number as the signed one of the same bits."""
    return value - (1 << dtype.bits) if value >= 1 << dtype.bits - 1 else value


def rule(
    operator: str,
    arguments: Sequence[Argument],
    dtypes: Sequence[DType],
    properties: Mapping[str, Any],
    index: int,
) -> Node:
    """What an operator of unsigned integers is. Raises TypeError if it is none of these files'."""
    first = next((each for each in arguments if isinstance(each, Node)), None)
    if operator == "_to_copy.default" and first is not None:
        return _cast(first, dtypes[0])
    if operator == "full.default":
        fill = _number(properties["fill_value"], dtypes[0])
        return plain(operator, arguments, dtypes, {**properties, "fill_value": fill})
    if operator == "constant_pad_nd.default":
        value = _number(properties["value"], dtypes[0])
        return plain(operator, arguments, dtypes, {**properties, "value": value})
    if operator in SAME_BITS:
        return plain(operator, arguments, dtypes, properties, index)
    if operator in ORDERS:
        return _compared(operator, arguments, dtypes, properties, index)
    if operator in ARITHMETIC:
        return ARITHMETIC[operator]([n for n in arguments if isinstance(n, Node)], properties)
    kind = next(dtype for dtype in (first.dtype if first else dtypes[0], *dtypes))
    raise TypeError(f"{operator} is not computed of {kind}; cast with astype")


RULES.update({dtype: rule for dtype in SIGNED_OF if dtype is not uint8})
