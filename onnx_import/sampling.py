"""Images at positions that tensors say."""

from __future__ import annotations

from itertools import product

from ..lazy.dtypes import bool_, float32, int64
from ..lazy.expression import Node
from .building import (
    add,
    arange,
    cast,
    compare,
    full,
    mul,
    op,
    permute,
    reshape,
    scalar,
    static_shape,
    sub,
    unary,
    where,
)
from .dtypes import is_float
from .rules import Call, Refused, rule


def _clamped(x: Node, low: float, high: float) -> Node:
    return op("minimum.default", op("maximum.default", x, scalar(low, x)), scalar(high, x))


def _reflected(x: Node, low: float, high: float) -> Node:
    """Places between two limits, at which what is beyond is thrown back."""
    span = scalar(high - low, x)
    if high <= low:
        return scalar(low, x)
    apart = unary("abs", sub(x, scalar(low, x)))
    times = unary("floor", op("div.Tensor", apart, span))
    rest = sub(apart, mul(times, span))
    odd = compare("ne", op("fmod.Tensor", times, scalar(2, x)), scalar(0, x))
    return where(odd, sub(scalar(high, x), rest), add(scalar(low, x), rest))


class Sampler:
    """The elements of images, [batch, channels, …], at places of each axis behind channels."""

    def __init__(self, x: Node, padding: str, corners: bool):
        rank = len(x.shape) - 2
        self.extents = static_shape(x, 2)
        self.x = permute(x, (0, *range(2, rank + 2), 1))
        self.padding = padding
        edge = 0.0 if corners else 0.5
        self.limits = [(-edge, n - 1 + edge) for n in self.extents]

    def inside(self, x: Node, axis: int) -> Node:
        """A place, beyond the edges brought inside as the padding says."""
        extent, limits = self.extents[axis], self.limits[axis]
        if self.padding == "zeros":
            return x
        beyond = op(
            "logical_or.default",
            *(compare("lt", x, scalar(limits[0], x)), compare("gt", x, scalar(limits[1], x))),
            dtype=bool_,
        )
        if self.padding == "border":
            return where(beyond, _clamped(x, 0, extent - 1), x)
        return where(beyond, _reflected(x, *limits), x)

    def at(self, places: list[Node]) -> Node:
        """The elements at whole places, [batch, places…, channels]; 0 beyond the edges, or repeated."""
        outer = places[0].shape
        batch = reshape(arange(outer[0]), (outer[0], *[1] * (len(outer) - 1)))
        index = [op("expand.default", batch, size=outer)]
        seen: Node | None = None
        for axis, place in enumerate(places):
            extent = self.extents[axis]
            if self.padding == "reflection":
                place = _reflected(place, *self.limits[axis])
            near = _clamped(place, 0, extent - 1)
            index.append(cast(near, int64))
            same = compare("eq", near, place)
            seen = same if seen is None else op("logical_and.default", seen, same, dtype=bool_)
        found = op("index.Tensor", self.x, tuple(index), dim=0)
        if self.padding != "zeros" or seen is None:
            return found
        return where(reshape(seen, (*outer, 1)), found, full((), 0, found.dtype))


def _weights(part: Node, mode: str) -> list[tuple[int, Node]]:
    """The neighbours of a place, from the one on its left, and what they count there."""
    one = scalar(1, part)
    if mode == "linear":
        return [(0, sub(one, part)), (1, part)]
    a = -0.75

    def near(x: Node) -> Node:
        inner = sub(mul(scalar(a + 2, x), x), scalar(a + 3, x))
        return add(mul(mul(inner, x), x), one)

    def far(x: Node) -> Node:
        inner = add(mul(sub(mul(scalar(a, x), x), scalar(5 * a, x)), x), scalar(8 * a, x))
        return sub(mul(inner, x), scalar(4 * a, x))

    rest = sub(one, part)
    return [(-1, far(add(part, one))), (0, near(part)), (1, near(rest)), (2, far(add(rest, one)))]


@rule("GridSample", 16, 20, 22)
def grid_sample(call: Call) -> Node:
    """Images at the places of a grid, -1 to 1 from edge to edge: nearest elements, or sums of neighbours."""
    x, grid = call.tensor(0), call.tensor(1)
    mode = call.text("mode", "linear", "bilinear", "nearest", "cubic", "bicubic").removeprefix("bi")
    padding = call.text("padding_mode", "zeros", "border", "reflection")
    corners = call.flag("align_corners")
    if mode == "cubic" and padding == "border":
        raise Refused(
            "cubic sampling with edges repeated, where ONNX's reference and runtimes differ"
        )
    if not is_float(x.dtype) or x.dtype.bits != 32 or grid.dtype is not float32:
        raise Refused(f"images of {x.dtype} at places of {grid.dtype}")
    rank = len(x.shape) - 2
    if len(grid.shape) != rank + 2 or grid.shape[-1] != rank or rank < 1:
        raise Refused(f"a grid {list(grid.shape)} of {list(x.shape)}")
    sampler = Sampler(x, padding, corners)
    places: list[Node] = []
    for axis, extent in enumerate(sampler.extents):
        said = op("select.int", grid, dim=rank + 1, index=rank - 1 - axis)
        if corners:
            place = mul(
                mul(add(said, scalar(1, said)), scalar(0.5, said)), scalar(extent - 1, said)
            )
        else:
            wide = mul(add(said, scalar(1, said)), scalar(extent, said))
            place = mul(sub(wide, scalar(1, said)), scalar(0.5, said))
        place = unary("round", place) if mode == "nearest" else place
        places.append(sampler.inside(place, axis))
    if mode == "nearest":
        found = sampler.at([unary("round", place) for place in places])
    else:
        found = _summed(sampler, places, mode)
    return permute(found, (0, rank + 1, *range(1, rank + 1)))


def _summed(sampler: Sampler, places: list[Node], mode: str) -> Node:
    lows = [unary("floor", place) for place in places]
    weights = [_weights(sub(place, low), mode) for place, low in zip(places, lows, strict=True)]
    total: Node | None = None
    for chosen in product(*weights):
        near = [add(low, scalar(step, low)) for low, (step, _) in zip(lows, chosen, strict=True)]
        factor = chosen[0][1]
        for _, each in chosen[1:]:
            factor = mul(factor, each)
        part = mul(sampler.at(near), reshape(factor, (*factor.shape, 1)))
        total = part if total is None else add(total, part)
    assert total is not None
    return total
