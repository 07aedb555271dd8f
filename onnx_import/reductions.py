"""What folds axes: sums, extrema, norms; positions of extrema; cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from ..lazy.dtypes import bool_, float32, int64
from ..lazy.expression import Node
from .building import (
    add,
    axes_of,
    axis_of,
    cast,
    concat,
    fold,
    full,
    mul,
    narrow,
    op,
    reshape,
    scalar,
    sub,
    typed,
    unary,
    where,
)
from .dtypes import is_float
from .rules import Call, Refused, rule

Fold = Callable[[Node, Sequence[int], bool], Node]
"""What folds axes of a tensor, and keeps them with extent 1 or not."""


def _sum(x: Node, axes: Sequence[int], keep: bool) -> Node:
    return fold("sum", x, axes, keep)


def _mean(x: Node, axes: Sequence[int], keep: bool) -> Node:
    if not is_float(x.dtype):
        raise Refused("the mean of integers")
    return fold("mean", x, axes, keep)


def _prod(x: Node, axes: Sequence[int], keep: bool) -> Node:
    for axis in sorted(axes, reverse=True):
        x = typed("prod.dim_int", x, dim=axis, keepdim=keep)
    return x


def _extremum(aten: str, of_bools: str, sign: int) -> Fold:
    def of(x: Node, axes: Sequence[int], keep: bool) -> Node:
        if not axes:
            return x
        shape = x.shape
        if 0 in (shape[axis] for axis in axes):
            kept = [1 if i in axes else n for i, n in enumerate(shape)]
            left = kept if keep else [n for i, n in enumerate(shape) if i not in axes]
            return full(left, _limit(x, sign), x.dtype)
        if x.dtype is bool_:
            return op(of_bools, x, dim=tuple(axes), keepdim=keep)
        return fold(aten, x, axes, keep)

    return of


def _limit(x: Node, sign: int) -> float | int | bool:
    """The largest number of a dtype, or the smallest."""
    if is_float(x.dtype):
        return sign * inf
    if x.dtype is bool_:
        return sign > 0
    limits = np.iinfo(x.dtype.storage)
    return int(limits.max if sign > 0 else limits.min)


def _wide(x: Node) -> Node:
    """Half types are rounded once, at the end."""
    return cast(x, float32) if is_float(x.dtype) and x.dtype.bits < 32 else x


def _floats(x: Node) -> Node:
    if not is_float(x.dtype):
        raise Refused("roots and logarithms of integers")
    return _wide(x)


def _l1(x: Node, axes: Sequence[int], keep: bool) -> Node:
    return cast(_sum(unary("abs", _wide(x)), axes, keep), x.dtype)


def _l2(x: Node, axes: Sequence[int], keep: bool) -> Node:
    wide = _floats(x)
    return cast(unary("sqrt", _sum(mul(wide, wide), axes, keep)), x.dtype)


def _log_sum(x: Node, axes: Sequence[int], keep: bool) -> Node:
    return cast(unary("log", _sum(_floats(x), axes, keep)), x.dtype)


def _sum_square(x: Node, axes: Sequence[int], keep: bool) -> Node:
    wide = _wide(x)
    return cast(_sum(mul(wide, wide), axes, keep), x.dtype)


def _log_sum_exp(x: Node, axes: Sequence[int], keep: bool) -> Node:
    """The largest element is taken out of the sum, so that nothing overflows."""
    wide = _floats(x)
    if not axes or 0 in x.shape:
        return cast(unary("log", _sum(unary("exp", wide), axes, keep)), x.dtype)
    high = fold("amax", wide, axes, True)
    infinite = op("isinf.default", high, dtype=bool_)
    high = where(infinite, scalar(0, wide), high)
    logs = add(unary("log", _sum(unary("exp", sub(wide, high)), axes, True)), high)
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return cast(logs if keep else reshape(logs, shape), x.dtype)


FOLDS: dict[str, tuple[Fold, tuple[int, ...]]] = {
    "ReduceSum": (_sum, (1, 11, 13)),
    "ReduceMean": (_mean, (1, 11, 13, 18)),
    "ReduceProd": (_prod, (1, 11, 13, 18)),
    "ReduceMax": (_extremum("amax", "any.dims", -1), (1, 11, 12, 13, 18, 20)),
    "ReduceMin": (_extremum("amin", "all.dims", 1), (1, 11, 12, 13, 18, 20)),
    "ReduceL1": (_l1, (1, 11, 13, 18)),
    "ReduceL2": (_l2, (1, 11, 13, 18)),
    "ReduceLogSum": (_log_sum, (1, 11, 13, 18, 28)),
    "ReduceLogSumExp": (_log_sum_exp, (1, 11, 13, 18, 28)),
    "ReduceSumSquare": (_sum_square, (1, 11, 13, 18)),
}
"""The operators, and the versions that are known; the axes are an input from 13 (ReduceSum) or 18 on."""


def _reduction(name: str, folds: Fold) -> Callable[[Call], Node]:
    def of(call: Call) -> Node:
        x, keep = call.tensor(0), call.flag("keepdims")
        rank = len(x.shape)
        given: Sequence[int] | None
        if call.version >= (13 if name == "ReduceSum" else 18):
            given = call.integers(1, "axes") if call.has(1) else None
            if not given and call.flag("noop_with_empty_axes"):
                return folds(x, (), keep)
            call.whatever("noop_with_empty_axes")
        else:
            given = call.given("axes")
        axes = axes_of(given, rank) if given else tuple(range(rank))
        return folds(x, axes, keep)

    return of


for _name, (_folds, _versions) in FOLDS.items():
    rule(_name, *_versions, text="A fold over axes, which must be known.")(
        _reduction(_name, _folds)
    )


def _position(aten: str) -> Callable[[Call], Node]:
    def of(call: Call) -> Node:
        x = call.tensor(0)
        axis, keep = axis_of(call.integer("axis"), len(x.shape)), call.flag("keepdims")
        last = call.version >= 12 and call.flag("select_last_index")
        if not x.shape:
            raise Refused("positions in a tensor without axes")
        extent = x.shape[axis]
        if extent == 0:
            raise Refused("a position where there are no elements")
        if last:
            x = op("flip.default", x, dims=(axis,))
        found = op(aten, x, dtype=int64, dim=axis, keepdim=keep)
        return sub(scalar(extent - 1, found), found) if last else found

    return of


rule("ArgMax", 1, 11, 12, 13, text="The first or last position of the largest element.")(
    _position("argmax.default")
)
rule("ArgMin", 1, 11, 12, 13, text="The first or last position of the smallest element.")(
    _position("argmin.default")
)


def _cumulative(aten: str, initial: int) -> Callable[[Call], Node]:
    def of(call: Call) -> Node:
        x = call.tensor(0)
        (given,) = call.integers(1, "axis")
        axis = axis_of(given, len(x.shape))
        exclusive, backwards = call.flag("exclusive"), call.flag("reverse")
        extent = x.shape[axis]
        if backwards:
            x = op("flip.default", x, dims=(axis,))
        if exclusive and extent != 0:
            shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
            x = concat([full(shape, initial, x.dtype), narrow(x, axis, 0, extent - 1)], axis)
        found = typed(aten, x, dim=axis)
        return op("flip.default", found, dims=(axis,)) if backwards else found

    return of


rule("CumSum", 11, 14, text="The sums up to each position.")(_cumulative("cumsum.default", 0))
rule("CumProd", 26, text="The products up to each position.")(_cumulative("cumprod.default", 1))
