"""Fourier transforms as contractions with small tables, one for each factor of the length.

    X[k] = sum over n of x[n] * exp(-2πi n k / N),  N = 24 * 32

is 32 transforms of length 24 and then 24 of length 32, each with its own table, in which the factors that
are between the two in other forms of the algorithm are multiplied already (Cooley and Tukey, 1965):

    z[k1, n2] = sum over n1 of x[32 * n1 + n2] * exp(-2πi n1 k1 / 24)
    X[k1 + 24 * k2] = sum over n2 of z[k1, n2] * exp(-2πi n2 (k1 + 24 * k2) / 768)

Values are two planes, of real and of imaginary parts, which a stage sums over too. Tables are computed in
float64 and rounded once, with the transform's norm in the last. Products are never rounded to tf32 or bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, isqrt, prod, sqrt
from typing import Any

import numpy as np
import torch

from .complex_values import Builder, Pair
from .sizes import Refused

aten = torch.ops.aten
Node = torch.fx.Node

LARGEST_RADIX = 128
"""The longest transform, in elements, that is one contraction: its cost is the square."""

STAGE_COST = 32
"""What reading and writing all elements once more costs, in multiply-adds of complex numbers an element."""

MOST_TABLE_ELEMENTS = 1 << 21
"""Elements of one table: 8 MiB of f32, as all of it is read for each transform."""


@lru_cache(maxsize=256)
def radices(length: int) -> tuple[int, ...] | None:
    """The lengths of the stages of a transform, whose product is `length`; None if there are none.

    They minimize the sum of the radices, each with the cost of a stage.
    """
    return _stages(length, 1)[1]


@lru_cache(maxsize=4096)
def _stages(rest: int, before: int) -> tuple[float, tuple[int, ...] | None]:
    """The cost and the radices of what is left when stages of the product `before` are done."""
    if rest == 1 and before > 1:
        return 0.0, ()
    best: tuple[float, tuple[int, ...] | None] = (inf, None)
    for radix in range(1 if rest == 1 else 2, min(rest, LARGEST_RADIX) + 1):
        if rest % radix or 4 * before * radix * radix > MOST_TABLE_ELEMENTS:
            continue
        if rest == 1:
            return 1.0, (1,)
        cost, others = _stages(rest // radix, before * radix)
        if others is not None and radix + STAGE_COST + cost < best[0]:
            best = radix + STAGE_COST + cost, (radix, *others)
    return best


def largest_prime(number: int) -> int:
    """The largest prime factor of a number, or 1."""
    found, factor = 1, 2
    while number > 1:
        if factor > isqrt(number):
            return number
        while number % factor == 0:
            number, found = number // factor, factor
        factor += 1
    return found


def stage_table(
    before: int, radix: int, sign: int, outputs: int, scale: float, dtype: torch.dtype
) -> torch.Tensor:
    """The table of a stage, [before, 2, radix, 2, outputs]: prefix, part and place in, part and place out.

    `before` is the product of the radices before; the stage gives its first `outputs` places.
    """
    length = before * radix
    prefix = np.arange(before).reshape(-1, 1, 1)
    m = np.arange(radix).reshape(1, -1, 1)
    k = np.arange(outputs).reshape(1, 1, -1)
    turns = m * (prefix + before * k) % length
    cos, sin = _circle(turns, length)
    cos, sin = cos * scale, sin * (scale * sign)
    table = np.stack([np.stack([cos, sin], 2), np.stack([-sin, cos], 2)], 1)
    return torch.from_numpy(np.ascontiguousarray(table)).to(dtype)


def real_table(length: int, sign: int, scale: float, dtype: torch.dtype) -> torch.Tensor:
    """The table of a transform from half a spectrum to real numbers, [2, length // 2 + 1, length]."""
    k = np.arange(length // 2 + 1).reshape(-1, 1)
    cos, sin = _circle(k * np.arange(length) % length, length)
    twice = np.where((k == 0) | (2 * k == length), 1.0, 2.0) * scale
    return torch.from_numpy(np.stack([cos * twice, -sign * sin * twice])).to(dtype)


def _circle(turns: Any, length: int) -> tuple[Any, Any]:
    """Cosine and sine of 2π turns / length, exact at the quarters."""
    angle = 2 * np.pi / length * turns
    cos, sin = np.cos(angle), np.sin(angle)
    quarters = 4 * turns
    cos = np.where(quarters % (2 * length) == length, 0.0, cos)
    sin = np.where(quarters % (2 * length) == 0, 0.0, sin)
    return cos, sin


# --------------------------------------------------------------------------- one axis


def _fixed(e: Builder, shape: Sequence[Any], axis: int) -> int:
    if not isinstance(shape[axis], int):
        raise Refused(f"a Fourier transform along axis {axis}, whose size changes")
    return shape[axis]


def _radices(length: int) -> tuple[int, ...]:
    """The radices of a transform. Raises Refused for a length that has none."""
    if length < 1:
        raise Refused(f"a Fourier transform of length {length}")
    if (prime := largest_prime(length)) > LARGEST_RADIX:
        raise Refused(
            f"a Fourier transform of length {length}, whose prime factor {prime} is above {LARGEST_RADIX}"
        )
    if (found := radices(length)) is None:
        raise Refused(
            f"a Fourier transform of length {length}, with tables of more than {MOST_TABLE_ELEMENTS} elements"
        )
    return found


def _sources(e: Builder, value: Pair) -> list[tuple[slice, Node]]:
    """The planes of a value, [1 or 2, …], with which of both parts each has."""
    if value.planes is not None:
        return [(slice(0, 2), value.planes)]
    if value.is_real:
        return [(slice(0, 1), e(aten.unsqueeze.default, e.re(value), 0))]
    if value.interleaved is not None:
        rank = len(e.shape(value.interleaved))
        order = [rank - 1, *range(rank - 1)]
        return [(slice(0, 2), e(aten.permute.default, value.interleaved, order))]
    parts = (e(aten.unsqueeze.default, part, 0) for part in e.parts(value))
    return [(slice(i, i + 1), part) for i, part in enumerate(parts)]


def transform(
    e: Builder, value: Pair, axis: int, sign: int, scale: float, *, half: bool = False, parts: int = 2
) -> Pair:
    """The transform along one axis; with `half`, its first half, and with `parts` of 1 its real part alone."""
    shape = e.shape(_some(e, value))
    length = _fixed(e, shape, axis)
    stages = _radices(length)
    dtype = _some(e, value).meta["val"].dtype
    rank = len(shape)
    last_first = [0, *(1 + i for i in range(rank) if i != axis), 1 + axis]
    sources = [
        (which, e(aten.unsqueeze.default, e(aten.permute.default, source, last_first), -1))
        for which, source in _sources(e, value)
    ]
    before = 1
    for i, radix in enumerate(stages):
        last = i + 1 == len(stages)
        outputs = (length // 2) // before + 1 if last and half else radix
        name = f"dft_{before}_{radix}_{sign}_{outputs}_{scale if last else 1.0}_{dtype}"
        args = before, radix, sign, outputs, scale if last else 1.0, dtype
        table = e.constant(name, lambda args=args: stage_table(*args))
        kept = parts if last else 2
        made = [_stage(e, which, source, table, radix, kept) for which, source in sources]
        whole = made[0] if len(made) == 1 else e(aten.add.Tensor, *made)
        sources = [(slice(0, 2), whole)]
        before *= radix
    planes = e(aten.select.int, sources[0][1], -2, 0)
    if half:
        planes = e(aten.slice.Tensor, planes, -1, 0, length // 2 + 1)
    order = [0, *range(1, 1 + axis), rank, *range(1 + axis, rank)]
    planes = e(aten.permute.default, planes, order)
    if parts == 1:
        return Pair(re=e(aten.select.int, planes, 0, 0))
    return Pair(planes=planes)


def _stage(e: Builder, which: slice, source: Node, table: Node, radix: int, parts: int) -> Node:
    """One stage of some planes: [planes, …, rest, prefix] to [parts, …, rest / radix, prefix * outputs]."""
    *others, rest, before = e.extents(source)
    split = e(aten.view.default, source, [*others, radix, rest // radix, before])
    rank = len(others) - 1
    # [batch…, rest, prefix, part, place in], to be multiplied by [prefix, part, place in, part, place out]
    order = [*range(1, rank + 1), rank + 2, rank + 3, 0, rank + 1]
    factor = e(aten.permute.default, split, order)
    for _ in range(2):
        factor = e(aten.unsqueeze.default, factor, -1)
    if which != slice(0, 2):
        table = e(aten.slice.Tensor, table, 1, which.start, which.stop)
    if parts == 1:
        table = e(aten.slice.Tensor, table, 3, 0, 1)
    outputs = e.shape(table)[-1]
    summed = e(aten.sum.dim_IntList, e(aten.mul.Tensor, factor, table), [-4, -3])
    # [batch…, rest, prefix, part, place out]
    order = [rank + 2, *range(rank), rank, rank + 3, rank + 1]
    moved = e(aten.permute.default, summed, order)
    return e(aten.view.default, moved, [parts, *others[1:], rest // radix, outputs * before])


def _some(e: Builder, value: Pair) -> Node:
    """The real part, for its shape and dtype; what is made for it alone is dead code."""
    return e.re(value)


# --------------------------------------------------------------------------- operators

_NORMS: tuple[Callable[[int], float], ...] = (lambda n: 1.0, lambda n: 1 / sqrt(n), lambda n: 1 / n)
"""By PyTorch's number of a norm: none, by the root of the size, by the size."""


def _axes(e: Builder, value: Node, dim: Sequence[int]) -> list[int]:
    rank = len(e.shape(value))
    return [axis % rank for axis in dim]


def _size(e: Builder, value: Node, axes: Sequence[int]) -> int:
    return prod(_fixed(e, e.shape(value), axis) for axis in axes)


def _c2c(e: Builder, value: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    part = _some(e, value)
    axes = _axes(e, part, dim)
    scale = _NORMS[normalization](_size(e, part, axes)) if axes else 1.0
    if not axes:
        return value
    alone = 1 if _is_read_as_real(e.node) else 2
    for axis in reversed(axes):
        last = axis == axes[0]
        value = transform(
            e, value, axis, -1 if forward else 1, scale if last else 1.0, parts=alone if last else 2
        )
    return value


def _is_read_as_real(node: Node) -> bool:
    """Whether all that reads a complex value reads its real part."""
    rank = node.meta["val"].ndim
    views = list(node.users)
    return all(view.target is aten.view_as_real.default for view in views) and all(
        user.target is aten.select.int and user.args[1] in (rank, -1) and user.args[2] == 0
        for view in views
        for user in view.users
    )


def _r2c(e: Builder, value: Node, dim: Sequence[int], normalization: int, onesided: bool) -> Pair:
    axes = _axes(e, value, dim)
    scale = _NORMS[normalization](_size(e, value, axes))
    first = scale if len(axes) == 1 else 1.0
    made = transform(e, Pair(value), axes[-1], -1, first, half=onesided)
    for axis in reversed(axes[:-1]):
        made = transform(e, made, axis, -1, scale if axis == axes[0] else 1.0)
    return made


def _c2r(
    e: Builder, value: Pair, dim: Sequence[int], normalization: int, last_dim_size: Any
) -> Node:
    part = _some(e, value)
    axes = _axes(e, part, dim)
    if not isinstance(last_dim_size, int):
        raise Refused(f"a Fourier transform along axis {axes[-1]}, whose size changes")
    scale = _NORMS[normalization](_size(e, part, axes[:-1]) * last_dim_size)
    for axis in axes[:-1]:
        value = transform(e, value, axis, 1, 1.0)
    return _to_real(e, value, axes[-1], last_dim_size, scale)


def _to_real(e: Builder, value: Pair, axis: int, length: int, scale: float) -> Node:
    """The real numbers of which half the spectrum is given; imaginary parts that have no place do not count."""
    stages = _radices(length)
    half = length // 2 + 1
    if len(stages) > 1:
        return e.re(transform(e, _whole(e, value, axis, length), axis, 1, scale, parts=1))
    dtype = _some(e, value).meta["val"].dtype
    rank = len(e.shape(_some(e, value)))
    name = f"real_dft_{length}_{scale}_{dtype}"
    table = e.constant(name, lambda: real_table(length, 1, scale, dtype))
    made: list[Node] = []
    for which, source in _sources(e, value):
        source = e(aten.slice.Tensor, source, 1 + axis, 0, half)
        order = [*(1 + i for i in range(rank) if i != axis), 0, 1 + axis]
        factor = e(aten.unsqueeze.default, e(aten.permute.default, source, order), -1)
        own = table if which == slice(0, 2) else e(aten.slice.Tensor, table, 0, which.start, which.stop)
        made.append(e(aten.sum.dim_IntList, e(aten.mul.Tensor, factor, own), [-3, -2]))
    whole = made[0] if len(made) == 1 else e(aten.add.Tensor, *made)
    return e(aten.permute.default, whole, [*range(axis), rank - 1, *range(axis, rank - 1)])


def _whole(e: Builder, value: Pair, axis: int, length: int) -> Pair:
    """The spectrum of real numbers from its first half: the other is the conjugate of it, backwards."""

    def whole(part: Node) -> tuple[Node, Node]:
        half = e(aten.slice.Tensor, part, axis, 0, length // 2 + 1)
        return half, e(aten.flip.default, e(aten.slice.Tensor, half, axis, 1, (length + 1) // 2), [axis])

    re, im = (whole(part) for part in e.parts(value))
    return Pair(
        e(aten.cat.default, list(re), axis),
        e(aten.cat.default, [im[0], e(aten.neg.default, im[1])], axis),
    )


RULES: dict[Any, Callable[..., Any]] = {
    aten._fft_c2c.default: _c2c,
    aten._fft_c2r.default: _c2r,
    aten._fft_r2c.default: _r2c,
}
"""Operator -> what gives its result, as in `complex_arithmetic.py`."""
