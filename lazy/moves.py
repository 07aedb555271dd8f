"""What only moves elements that are there needs no program: numpy's views say where they lie.

    x[1, ::2].T.numpy()

A program of one such expression would be compiled for 50 ms to copy some elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ..dialects.sizes import Size
from .dtypes import COMPLEX
from .expression import LEAF, Node, parts_of

Array = np.ndarray[Any, Any]


def _slice(
    array: Array, shape: Any, dim: int = 0, start: int = 0, end: int | None = None, step: int = 1
) -> Array:
    return array[(*[slice(None)] * (dim % array.ndim), slice(start, end, step))]


MOVES: dict[str, Callable[..., Array]] = {
    "view.default": lambda array, shape, size: array.reshape(shape),
    "permute.default": lambda array, shape, dims: array.transpose(dims),
    "transpose.int": lambda array, shape, dim0, dim1: array.swapaxes(dim0, dim1),
    "expand.default": lambda array, shape, size: np.broadcast_to(array, shape),
    "flip.default": lambda array, shape, dims: np.flip(array, dims),
    "select.int": lambda array, shape, dim, index: array.take(index, dim),
    "slice.Tensor": _slice,
}
"""ATen's operators of one tensor that move elements, of an array and the shape of the result."""


MAX_WHOLE = 2**20
"""Elements of a tensor that is computed whole when a part of it is asked for; of larger ones the part is."""


def moved(node: Node) -> Array | None:
    """The elements of a node that moves those of a leaf, copied; None for any other."""
    if node.dtype.kind == COMPLEX and node.operator != LEAF:
        re, im = map(moved, parts_of(node))
        return None if re is None or im is None else np.stack([re, im], -1)
    path, source = _path(node)
    array = source.array
    if not path or array is None or any(isinstance(extent, Size) for extent in source.shape):
        return None
    for step in path:
        array = MOVES[step.operator](array, step.shape, **dict(step.properties))
    return np.array(array, order="C")


def wholes(node: Node) -> Iterator[Node]:
    """What is to be computed for a node to be a part of it."""
    if node.dtype.kind == COMPLEX and node.operator != LEAF:
        yield from (each for part in parts_of(node) for each in wholes(part))
    path, source = _path(node)
    if source.array is not None or any(isinstance(extent, Size) for extent in source.shape):
        return
    if path and prod(node.shape) < prod(source.shape) <= MAX_WHOLE:
        yield source


def _path(node: Node) -> tuple[Sequence[Node], Node]:
    """The moves of a node, the first one first, and the node whose elements they move."""
    path: list[Node] = []
    while node.operator in MOVES:
        path.append(node)
        node = next(node.sources)
    return path[::-1], node
