"""Images of other sizes: each element is a sum of neighbours along each axis, by weights known at import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from ..lazy.dtypes import bool_, float32
from ..lazy.expression import Node
from .building import (
    add,
    axes_of,
    cast,
    full,
    integers,
    known,
    mul,
    op,
    reshape,
    static_extent,
    where,
)
from .dtypes import is_float
from .rules import Call, Refused, rule

Array = np.ndarray[Any, Any]

MAX_REACH = 64
"""Neighbours on each side; each is a product of its own."""

MODES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
    *("asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"),
)


@dataclass(frozen=True)
class Axis:
    """How one axis is resized."""

    extent: int
    wanted: int
    scale: float
    start: float = 0.0
    end: float = 1.0
    """The part of it that is resized, for tf_crop_and_resize."""

    def coordinates(self, mode: str) -> Array:
        """Where each element of the result lies among the old ones."""
        places = np.arange(self.wanted, dtype=np.float64)
        halves = (places + 0.5) / self.scale - 0.5
        last = self.extent - 1
        if mode == "half_pixel_symmetric":
            adjustment = self.wanted / (self.scale * self.extent)
            return self.extent / 2 * (1 - adjustment) + halves
        if mode == "pytorch_half_pixel":
            return halves if self.wanted > 1 else np.zeros(1)
        if mode == "align_corners":
            if self.wanted != self.scale * self.extent:
                raise Refused("align_corners with a scale that gives no whole number of elements")
            return places * last / (self.wanted - 1) if self.wanted > 1 else np.zeros(1)
        if mode == "asymmetric":
            return places / self.scale
        if mode == "tf_half_pixel_for_nn":
            return halves + 0.5
        if mode == "tf_crop_and_resize":
            if self.wanted == 1:
                return np.full(1, (self.start + self.end) * last / 2)
            span = (self.end - self.start) * last
            return self.start * last + places * span / (self.wanted - 1)
        return halves


def _nearest(places: Array, mode: str) -> Array:
    """The positions nearest to places."""
    if mode == "round_prefer_floor":
        return np.ceil(places - 0.5).astype(np.int64)
    if mode == "round_prefer_ceil":
        return np.floor(places + 0.5).astype(np.int64)
    return (np.floor(places) if mode == "floor" else np.ceil(places)).astype(np.int64)


def _kernel(distance: Array, mode: str, a: float) -> Array:
    """The weight of an element at a distance."""
    x = np.abs(distance)
    if mode == "linear":
        return np.clip(1 - x, 0, 1)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _neighbours(
    places: Array, scale: float, mode: str, a: float, antialias: bool
) -> tuple[Array, Array]:
    """The positions of the elements that count for each place, and their weights, which add up to 1."""
    narrowed = min(scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / narrowed
    if reach > MAX_REACH:
        raise Refused(f"sums of more than {2 * MAX_REACH} neighbours")
    first = floor(-reach) + 1
    base = np.ceil(places) - 1  # the element on the left, even of a place that is an element's
    positions = base[:, None].astype(np.int64) + np.arange(first, 2 - first)
    weights = _kernel((positions - places[:, None]) * narrowed, mode, a)
    return positions, weights / weights.sum(1, keepdims=True)


def _resized(x: Node, axis: int, how: Axis, call: Call, mode: str, coordinates: str) -> Node:
    """A tensor with one axis resized."""
    places = how.coordinates(coordinates)
    antialias = call.version >= 18 and call.flag("antialias")
    outside = (places < 0) | (places > how.extent - 1)
    cropped = coordinates == "tf_crop_and_resize" and bool(outside.any())
    if coordinates == "tf_crop_and_resize":
        places = np.clip(places, 0, how.extent - 1)
    elif (places < -1).any() or (places > how.extent).any():
        raise Refused("places far from the tensor")
    if mode == "nearest":
        call.whatever("cubic_coeff_a", "exclude_outside")
        rounding = "floor" if call.version < 11 else call.text("nearest_mode", *ROUNDINGS)
        x = _taken(x, axis, _nearest(places, rounding), how.extent)
    else:
        call.whatever("nearest_mode")
        a = call.real("cubic_coeff_a", -0.75)
        positions, weights = _neighbours(places, how.scale, mode, a, antialias)
        if call.version >= 11 and call.flag("exclude_outside"):
            weights = np.where((positions < 0) | (positions >= how.extent), 0, weights)
            weights = weights / weights.sum(1, keepdims=True)
        x = _weighted(x, axis, positions, weights, how.extent)
    if not cropped:
        return x
    kept = known(outside, bool_)
    shape = [how.wanted if i == axis else 1 for i in range(len(x.shape))]
    value = full((), call.real("extrapolation_value"), x.dtype)
    return where(reshape(kept, shape), value, x)


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _taken(x: Node, axis: int, positions: Array, extent: int) -> Node:
    inside = np.clip(positions, 0, extent - 1)
    if inside.tolist() == list(range(extent)):
        return x
    return op("index.Tensor", x, (integers(inside.tolist()),), dim=axis)


def _weighted(x: Node, axis: int, positions: Array, weights: Array, extent: int) -> Node:
    shape = [len(positions) if i == axis else 1 for i in range(len(x.shape))]
    total: Node | None = None
    for k in range(positions.shape[1]):
        if not weights[:, k].any():
            continue
        weight = known(weights[:, k].astype(x.dtype.storage), x.dtype)
        part = mul(_taken(x, axis, positions[:, k], extent), reshape(weight, shape))
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _axes_of(call: Call, x: Node, axes: Sequence[int], coordinates: str) -> dict[int, Axis]:
    """How each axis is resized, of those that are."""
    at = {10: 1, 9: 1}.get(call.version, 2)
    parts = [0.0] * len(axes) + [1.0] * len(axes)
    if at == 2 and call.has(1) and coordinates == "tf_crop_and_resize":
        parts = [float(n) for n in call.array(1, "roi").reshape(-1)]
    call.has(1)
    scales = [] if not call.has(at) else call.array(at, "scales").astype(np.float64).reshape(-1)
    sizes = call.integers(3, "sizes") if at == 2 and call.has(3) else []
    if call.version == 7:
        scales = np.array(call.needed("scales"), np.float64)
    if bool(len(scales)) == bool(len(sizes)) or len(axes) not in (len(scales), len(sizes)):
        raise Refused(f"{len(scales)} scales and {len(sizes)} sizes of {len(axes)} axes")
    if len(parts) != 2 * len(axes):
        raise Refused(f"a roi of {len(parts)} numbers")
    if len(scales) and coordinates == "tf_crop_and_resize":
        raise Refused("tf_crop_and_resize by scales")
    policy = "stretch"
    if call.version >= 18:
        policy = call.text("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller")
    found: dict[int, Axis] = {}
    if policy != "stretch" and len(sizes):
        ratios = [Fraction(n, static_extent(x, i)) for n, i in zip(sizes, axes, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = [floor(ratio * static_extent(x, i) + Fraction(1, 2)) for i in axes]
        found = {
            i: Axis(static_extent(x, i), n, float(ratio)) for n, i in zip(sizes, axes, strict=True)
        }
        return {i: each for i, each in found.items() if ratio != 1}
    for place, i in enumerate(axes):
        if len(scales) and scales[place] == 1:
            continue
        extent = static_extent(x, i)
        scale = float(scales[place]) if len(scales) else sizes[place] / extent
        wanted = floor(scale * extent) if len(scales) else sizes[place]
        start, end = parts[place], parts[place + len(axes)]
        if scale <= 0 or wanted < 1:
            raise Refused(f"{extent} elements resized to {wanted}")
        if scale != 1 or (start, end) != (0.0, 1.0):
            found[i] = Axis(extent, wanted, scale, start, end)
    return found


@rule("Upsample", 7, 9)
@rule("Resize", 10, 11, 13, 18, 19)
def resize(call: Call) -> Node:
    """Axes of other extents: the nearest elements, or sums of neighbours."""
    x = call.tensor(0)
    modes = ("nearest", "linear", "cubic") if call.version >= 11 else ("nearest", "linear")
    mode, coordinates = call.text("mode", *modes), "asymmetric"
    axes: Sequence[int] = range(len(x.shape))
    if call.version >= 11:
        coordinates = call.text("coordinate_transformation_mode", *MODES)
        call.whatever("extrapolation_value", "cubic_coeff_a", "exclude_outside", "nearest_mode")
    if call.version >= 18:
        call.whatever("antialias", "keep_aspect_ratio_policy")
        if (given := call.given("axes")) is not None:
            axes = axes_of([int(i) for i in given], len(x.shape))
    resized = _axes_of(call, x, axes, coordinates)
    if mode != "nearest" and not is_float(x.dtype):
        raise Refused("sums of neighbours of integers")
    wide = cast(x, float32) if mode != "nearest" and x.dtype.bits < 32 else x
    for axis, how in resized.items():
        wide = _resized(wide, axis, how, call, mode, coordinates)
    return cast(wide, x.dtype)
