"""Operators of complex numbers that do the same to both parts: views, copies, choices, sums; and constants.

torch.cat([z, x])        # re: cat([z.re, x]), im: cat([z.im, zeros])
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from .complex_arithmetic import operand
from .complex_values import PARTS, Builder, Pair, part_dtype

aten = torch.ops.aten
Node = torch.fx.Node

PLACES = ("index", "indices", "mask", "condition")
"""Arguments that say where: they are no data, and the same for both parts."""

NUMBERS = ("value", "fill_value", "s")
"""Arguments that are numbers among the data."""

KEEP_ZEROS = (
    aten._unsafe_view.default,
    aten.alias.default,
    aten.clone.default,
    aten.cumsum.default,
    aten.detach.default,
    aten.diagonal.default,
    aten.expand.default,
    aten.flip.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.lift_fresh_copy.default,
    aten.mean.default,
    aten.mean.dim,
    aten.permute.default,
    aten.repeat.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.t.default,
    aten.transpose.int,
    aten.tril.default,
    aten.triu.default,
    aten.unfold.default,
    aten.unsqueeze.default,
    aten.view.default,
)
"""Operators of one tensor that give zeros for zeros."""

PARTWISE = (
    *KEEP_ZEROS,
    aten.cat.default,
    aten.constant_pad_nd.default,
    aten.copy.default,
    aten.diagonal_scatter.default,
    aten.index_add.default,
    aten.index_put.default,
    aten.masked_scatter.default,
    aten.neg.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
    aten.select_scatter.default,
    aten.slice_scatter.default,
    aten.stack.default,
    aten.where.self,
)
"""Operators that do the same to both parts, of which tensors that are not complex have one of zeros."""


def _partwise(e: Builder, *args: Any, **kwargs: Any) -> Any:
    """Call the node's own operator on the real parts, and on the imaginary ones."""
    first = args[0] if args else None
    parts = 1 if isinstance(first, Pair) and first.is_real and e.node.target in KEEP_ZEROS else 2
    schema: Any = e.node.target._schema  # type: ignore[union-attr]
    positional = [argument.name for argument in schema.arguments]
    made = [
        e(
            e.node.target,
            *(_of_part(e, positional[i], value, part) for i, value in enumerate(args)),
            **{name: _of_part(e, name, value, part) for name, value in kwargs.items()},
        )
        for part in range(parts)
    ]
    if isinstance(made[0].meta["val"], (list, tuple)):
        return [Pair(*each) for each in zip(*(_items(e, node) for node in made), strict=True)]
    return Pair(*made)


def _items(e: Builder, node: Node) -> list[Node]:
    return [e(operator.getitem, node, i) for i in range(len(node.meta["val"]))]


def _of_part(e: Builder, name: str, value: Any, part: int) -> Any:
    """An argument as that for one part has it."""
    if isinstance(value, torch.dtype):
        return PARTS.get(value, value)
    if isinstance(value, (list, tuple)) and name not in PLACES:
        return [_of_part(e, name, item, part) for item in value]
    if isinstance(value, Pair) or (_is_tensor(value) and name not in PLACES):
        return operand(e, value, part_dtype(_complex_dtype(e)))[part]
    if name in NUMBERS and isinstance(value, (bool, int, float, complex)):
        number = complex(value)
        return number.imag if part else number.real
    return value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _complex_dtype(e: Builder) -> torch.dtype:
    value: Any = e.node.meta["val"]
    return (value[0] if isinstance(value, (list, tuple)) else value).dtype


def _to_copy(e: Builder, value: Any, **kwargs: Any) -> Any:
    """A conversion: a real tensor becomes the real part, and of a complex one that part stays alone."""
    dtype = kwargs.get("dtype")
    dtype = e.node.meta["val"].dtype if dtype is None else dtype
    kwargs = kwargs | {"dtype": PARTS.get(dtype, dtype)}
    if not isinstance(value, Pair):
        return Pair(e(aten._to_copy.default, value, **kwargs))
    if dtype == torch.bool:
        nonzero = [e(aten.ne.Scalar, part, 0) for part in e.parts(value)]
        return e(aten.logical_or.default, *nonzero)
    if not dtype.is_complex:
        return e(aten._to_copy.default, e.re(value), **kwargs)
    return e.zeros_kept(value, lambda part: e(aten._to_copy.default, part, **kwargs))


def _conj(e: Builder, value: Any) -> Pair:
    if not isinstance(value, Pair):  # autograd conjugates numbers too
        return _full(e, [], complex(value).conjugate())
    return Pair(e.re(value), e(aten.neg.default, e.im(value)))


def _view_as_real(e: Builder, value: Pair) -> Node:
    return e(aten.alias.default, e.interleaved(value))  # an argument stands for its pair as well


def _view_as_complex(e: Builder, value: Node) -> Pair:
    return Pair(interleaved=value)


def _same(e: Builder, value: Pair) -> Pair:
    return value


def _filled(number: float) -> Callable[..., Pair]:
    def filled(e: Builder, first: Any, *rest: Any, **kwargs: Any) -> Pair:
        return (
            _like(e, first, number) if isinstance(first, (Pair, Node)) else _full(e, first, number)
        )

    return filled


def _full(e: Builder, size: Any, number: Any, **kwargs: Any) -> Pair:
    number, dtype = complex(number), part_dtype(e.node.meta["val"].dtype)
    re = e.full(size, number.real, dtype)
    return Pair(re) if number.imag == 0 else Pair(re, e.full(size, number.imag, dtype))


def _like(e: Builder, like: Any, number: Any, **kwargs: Any) -> Any:
    """A tensor of one number, in the shape of another."""
    if isinstance(like, Pair):
        like = e.re(like)
    dtype = e.node.meta["val"].dtype
    if not dtype.is_complex:
        return e(aten.full_like.default, like, number, dtype=dtype)
    number, dtype = complex(number), part_dtype(dtype)
    parts = (e(aten.full_like.default, like, n, dtype=dtype) for n in (number.real, number.imag))
    return Pair(*parts)


def _scalar_tensor(e: Builder, number: Any, **kwargs: Any) -> Pair:
    return _full(e, [], number)


RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(PARTWISE, _partwise),
    aten._conj.default: _conj,
    aten._conj_physical.default: _conj,
    aten.conj_physical.default: _conj,
    aten._to_copy.default: _to_copy,
    aten.empty.memory_format: _filled(0.0),
    aten.empty_permuted.default: _filled(0.0),
    aten.full.default: _full,
    aten.full_like.default: _like,
    aten.ones.default: _filled(1.0),
    aten.ones_like.default: _filled(1.0),
    aten.resolve_conj.default: _same,
    aten.resolve_neg.default: _same,
    aten.scalar_tensor.default: _scalar_tensor,
    aten.view_as_complex.default: _view_as_complex,
    aten.view_as_real.default: _view_as_real,
    aten.zeros.default: _filled(0.0),
    aten.zeros_like.default: _filled(0.0),
}
"""Operator -> what gives its result, as in `complex_arithmetic.py`."""
