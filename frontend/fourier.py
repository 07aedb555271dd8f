"""Fourier transforms as contractions with small tables, one for each factor of the length.

    X[k] = sum over n of x[n] * exp(-2πi n k / N),  N = 24 * 32

is 32 transforms of length 24, a product with factors ("twiddles"), and 24 transforms of length 32 (Cooley
and Tukey, 1965):

    z[k1, n2] = exp(-2πi n2 k1 / 768) * (sum over n1 of x[32 * n1 + n2] * exp(-2πi n1 k1 / 24))
    X[k1 + 24 * k2] = sum over n2 of z[k1, n2] * exp(-2πi n2 k2 / 32)

Tables are computed in float64 and rounded once, with the norm of a transform in the last. A stage is a
product and a sum, whose factors are never rounded to tf32 or bf16 as those of matrix products may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isqrt, prod, sqrt
from typing import Any

import numpy as np
import torch

from .complex_arithmetic import multiply
from .complex_values import Builder, Pair
from .sizes import Refused

aten = torch.ops.aten
Node = torch.fx.Node

LARGEST_RADIX = 128
"""The longest transform, in elements, that is one contraction: its cost is the square."""

LONGEST_SPECTRUM = 512
"""The longest transform between real numbers and half a spectrum, in elements, that is one contraction: in
several stages 400 elements take 8 times as long (an EPYC with AVX-512, one thread), as half of what the last
stage would give is cut off in the middle, and the other half of a spectrum is put together first."""

STAGE_COST = 64
"""What one more stage costs, in multiply-adds of complex numbers an element: of 64 of one contraction and
(8, 8), the first is faster, of 128 and (8, 16) the second (an EPYC with AVX-512, one thread)."""


@lru_cache(maxsize=256)
def radices(length: int) -> tuple[int, ...]:
    """The lengths of the stages of a transform, in rising order: their product is `length`.

    They minimize the sum of the radices, each with the cost of a stage. Raises Refused if there are none.
    """
    if length < 1:
        raise Refused(f"a Fourier transform of length {length}")
    if (prime := largest_prime(length)) > LARGEST_RADIX:
        raise Refused(
            f"a Fourier transform of length {length}, whose prime factor {prime} is above {LARGEST_RADIX}"
        )
    return tuple(sorted(_stages(length)[1])) or (1,)


@lru_cache(maxsize=4096)
def _stages(length: int) -> tuple[float, tuple[int, ...]]:
    """The cost and the radices of the cheapest stages."""
    if length == 1:
        return 0.0, ()
    best: tuple[float, tuple[int, ...]] = (inf, ())
    for radix in range(2, min(length, LARGEST_RADIX) + 1):
        if length % radix == 0:
            cost, others = _stages(length // radix)
            best = min(best, (radix + STAGE_COST + cost, (radix, *others)))
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


def stage_table(radix: int, sign: int, outputs: int, scale: float) -> Any:
    """The table of a stage, [2, outputs, 2, radix]: part and place out, part and place in.

    The stage gives its first `outputs` places.
    """
    cos, sin = _circle(np.outer(np.arange(outputs), np.arange(radix)), radix)
    cos, sin = cos * scale, sin * (scale * sign)
    return np.stack([np.stack([cos, -sin], 1), np.stack([sin, cos], 1)])


def twiddles(radix: int, rest: int, sign: int) -> Any:
    """The factors between two stages, [2, radix, rest]: their parts, by the place out and those left."""
    cos, sin = _circle(np.outer(np.arange(radix), np.arange(rest)), radix * rest)
    return np.stack([cos, sign * sin])


def real_table(length: int, sign: int, scale: float) -> Any:
    """The table of a transform from half a spectrum to real numbers, [length, 2, length // 2 + 1]."""
    k = np.arange(length // 2 + 1)
    cos, sin = _circle(np.outer(np.arange(length), k), length)
    twice = np.where((k == 0) | (2 * k == length), 1.0, 2.0) * scale
    return np.stack([cos * twice, -sign * sin * twice], 1)


def _circle(turns: Any, length: int) -> tuple[Any, Any]:
    """Cosine and sine of 2π turns / length, exact at the quarters."""
    turns = turns % length
    angle = 2 * np.pi / length * turns
    cos = np.where(4 * turns % (2 * length) == length, 0.0, np.cos(angle))
    sin = np.where(4 * turns % (2 * length) == 0, 0.0, np.sin(angle))
    return cos, sin


def _table(e: Builder, dtype: torch.dtype, make: Callable[..., Any], *args: Any) -> Node:
    """The constant that `make` gives of `args`, in the dtype of the transform."""
    said = "_".join(map(str, args))
    name = f"{make.__name__}_{said}_{str(dtype).removeprefix('torch.')}"
    return e.constant(name, lambda: torch.from_numpy(np.ascontiguousarray(make(*args))).to(dtype))


# --------------------------------------------------------------------------- one axis


def _fixed(e: Builder, shape: Sequence[Any], axis: int) -> int:
    if not isinstance(shape[axis], int):
        raise Refused(f"a Fourier transform along axis {axis}, whose size changes")
    return shape[axis]


@dataclass(frozen=True)
class _Source:
    """One or both parts of a value, [parts, …], and which these are."""

    parts: slice
    node: Node


def _sources(e: Builder, value: Pair) -> list[_Source]:
    """A value by its parts, together where they are in one tensor."""
    if value.planes is not None:
        return [_Source(slice(0, 2), value.planes)]
    if value.is_real:
        return [_Source(slice(0, 1), e(aten.unsqueeze.default, e.re(value), 0))]
    if value.interleaved is not None:
        rank = len(e.shape(value.interleaved))
        order = [rank - 1, *range(rank - 1)]
        return [_Source(slice(0, 2), e(aten.permute.default, value.interleaved, order))]
    parts = (e(aten.unsqueeze.default, part, 0) for part in e.parts(value))
    return [_Source(slice(i, i + 1), part) for i, part in enumerate(parts)]


def transform(
    e: Builder,
    value: Pair,
    axis: int,
    sign: int,
    scale: float,
    *,
    half: bool = False,
    parts: int = 2,
) -> Pair:
    """The transform along one axis; with `half`, its first half, and with `parts` of 1 its real part alone.

    Between stages the axis is [k1, …, ki, rest]: places out, of each stage one axis, and places left.
    """
    real = e.re(value)  # dead code unless it is read below
    shape, dtype = e.shape(real), real.meta["val"].dtype
    length = rest = _fixed(e, shape, axis)
    stages = (length,) if half and length <= LONGEST_SPECTRUM else radices(length)
    for i, radix in enumerate(stages[:-1]):
        table = _table(e, dtype, stage_table, radix, sign, radix, 1.0)
        rest //= radix
        planes = _stage(e, value, table, axis + i, rest)
        value = _twiddled(e, planes, _table(e, dtype, twiddles, radix, rest, sign), axis + i)
    before = length // rest
    outputs = (length // 2) // before + 1 if half else rest
    table = _table(e, dtype, stage_table, rest, sign, outputs, scale)
    if parts == 1:
        table = e(aten.slice.Tensor, table, 0, 0, 1)
    planes = _stage(e, value, table, axis + len(stages) - 1, 1)
    planes = _in_order(e, planes, axis, len(stages))
    if half:
        planes = e(aten.slice.Tensor, planes, 1 + axis, 0, length // 2 + 1)
    return Pair(re=e(aten.select.int, planes, 0, 0)) if parts == 1 else Pair(planes=planes)


def _stage(e: Builder, value: Pair, table: Node, axis: int, rest: int) -> Node:
    """One stage along `axis`, which is radix * rest places long.

    Of [before…, radix * rest, behind…] it gives [parts, before…, outputs, rest, behind…].
    """
    kept, outputs, _, radix = e.shape(table)
    made: list[Node] = []
    for source in _sources(e, value):
        extents = e.extents(source.node)
        before, behind = extents[1 : 1 + axis], extents[2 + axis :]
        split = e(aten.view.default, source.node, [extents[0], *before, radix, rest, *behind])
        # [before…, 1, 1, parts in, radix, rest, behind…] by [parts out, outputs, parts in, radix, 1…]
        order = [*range(1, 1 + axis), 0, *range(1 + axis, 3 + axis + len(behind))]
        factor = e(aten.permute.default, split, order)
        for _ in range(2):
            factor = e(aten.unsqueeze.default, factor, axis)
        own = table
        if source.parts != slice(0, 2):
            own = e(aten.slice.Tensor, table, 2, source.parts.start, source.parts.stop)
        own = e(
            aten.view.default, own, [kept, outputs, extents[0], radix, *[1] * (1 + len(behind))]
        )
        product = e(aten.mul.Tensor, factor, own)
        made.append(e(aten.sum.dim_IntList, product, [axis + 2, axis + 3]))
    whole = made[0] if len(made) == 1 else e(aten.add.Tensor, *made)
    rank = len(e.shape(whole))
    return e(aten.permute.default, whole, [axis, *(i for i in range(rank) if i != axis)])


def _twiddled(e: Builder, planes: Node, factors: Node, axis: int) -> Pair:
    """The product of what a stage gave, [parts, before…, radix, rest, behind…], with factors."""
    behind = len(e.shape(planes)) - axis - 3
    turned = [e(aten.select.int, factors, 0, part) for part in range(2)]
    for _ in range(behind):
        turned = [e(aten.unsqueeze.default, each, -1) for each in turned]
    parts = [e(aten.select.int, planes, 0, part) for part in range(2)]
    return Pair(*multiply(e, (parts[0], parts[1]), (turned[0], turned[1])))


def _in_order(e: Builder, planes: Node, axis: int, stages: int) -> Node:
    """[parts, before…, k1, …, kn, 1, behind…] with the places out as one axis, k1 innermost."""
    planes = e(aten.squeeze.dim, planes, 1 + axis + stages)
    if stages == 1:
        return planes
    first = 1 + axis
    rank = len(e.shape(planes))
    order = [*range(first), *reversed(range(first, first + stages)), *range(first + stages, rank)]
    moved = e(aten.permute.default, planes, order)
    extents = e.extents(moved)
    joined = prod(extents[first : first + stages])
    return e(aten.view.default, moved, [*extents[:first], joined, *extents[first + stages :]])


# --------------------------------------------------------------------------- operators

_NORMS: tuple[Callable[[int], float], ...] = (lambda n: 1.0, lambda n: 1 / sqrt(n), lambda n: 1 / n)
"""By PyTorch's number of a norm: none, by the root of the size, by the size."""


def _axes(e: Builder, value: Node, dim: Sequence[int]) -> list[int]:
    rank = len(e.shape(value))
    return [axis % rank for axis in dim]


def _size(e: Builder, value: Node, axes: Sequence[int]) -> int:
    return prod(_fixed(e, e.shape(value), axis) for axis in axes)


def _c2c(e: Builder, value: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    part = e.re(value)
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
    part = e.re(value)
    axes = _axes(e, part, dim)
    if not isinstance(last_dim_size, int):
        raise Refused(f"a Fourier transform along axis {axes[-1]}, whose size changes")
    scale = _NORMS[normalization](_size(e, part, axes[:-1]) * last_dim_size)
    for axis in axes[:-1]:
        value = transform(e, value, axis, 1, 1.0)
    return _to_real(e, value, axes[-1], last_dim_size, scale)


def _to_real(e: Builder, value: Pair, axis: int, length: int, scale: float) -> Node:
    """The real numbers of which half the spectrum is given.

    The imaginary parts of the first place and of that of half the length do not count, as in eager.
    """
    half = length // 2 + 1
    if length > LONGEST_SPECTRUM:
        return e.re(transform(e, _whole(e, value, axis, length), axis, 1, scale, parts=1))
    table = _table(e, e.re(value).meta["val"].dtype, real_table, length, 1, scale)
    made: list[Node] = []
    for source in _sources(e, value):
        rank = len(e.shape(source.node)) - 1
        first = e(aten.slice.Tensor, source.node, 1 + axis, 0, half)
        # [before…, 1, parts, half, behind…] by [length, parts, half, 1…]
        order = [*range(1, 1 + axis), 0, *range(1 + axis, 1 + rank)]
        factor = e(aten.unsqueeze.default, e(aten.permute.default, first, order), axis)
        own = e(aten.slice.Tensor, table, 1, source.parts.start, source.parts.stop)
        own = e(aten.view.default, own, [*e.shape(own), *[1] * (rank - 1 - axis)])
        product = e(aten.mul.Tensor, factor, own)
        made.append(e(aten.sum.dim_IntList, product, [axis + 1, axis + 2]))
    return made[0] if len(made) == 1 else e(aten.add.Tensor, *made)


def _whole(e: Builder, value: Pair, axis: int, length: int) -> Pair:
    """The spectrum of real numbers from its first half: the other is the conjugate of it, backwards."""

    def whole(part: Node) -> tuple[Node, Node]:
        half = e(aten.slice.Tensor, part, axis, 0, length // 2 + 1)
        return half, e(
            aten.flip.default, e(aten.slice.Tensor, half, axis, 1, (length + 1) // 2), [axis]
        )

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
