"""Folding weighted means: what `reduce(max, weight, mean)` gives, see `dialects/scalars.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dialects.scalars import Combiner
from .numpy_types import Array
from .product import Product, Value, as_array, multiply


def fold_weighted(
    combiners: Sequence[Combiner], contributions: Sequence[Array], limit: int
) -> list[Value]:
    """The exponent, the weights and means of all contributions along the last axis, which goes.

    The arrays broadcast; the last axis has one contribution at least in the exponents. Raises TooWide if an
    array needs more than `limit` elements.
    """
    exponents, *values = contributions
    largest = exponents.max(axis=-1, keepdims=True)
    scales = np.exp(exponents - np.where(largest == -np.inf, 0, largest))
    scaled = as_array(multiply(scales, values[0], limit), limit)
    total = scaled.sum(axis=-1, keepdims=True)
    shares = np.where(total == 0, 0, scaled / total).astype(scaled.dtype)
    results: list[Value] = [largest[..., 0], total[..., 0]]
    for combiner, value in zip(combiners[2:], values[1:], strict=True):
        product = multiply(scales if combiner is Combiner.WEIGHT else shares, value, limit)
        if isinstance(product, Product):
            summed = product.align(product.lhs.ndim).sum_last(exponents.shape[-1])
            results.append(as_array(summed, limit))
        else:
            results.append(product.sum(axis=-1))
    return results


def join_weighted(
    combiners: Sequence[Combiner], first: Sequence[Array], second: Sequence[Array], limit: int
) -> list[Value]:
    """What two folds give together."""
    pairs = [
        np.stack(np.broadcast_arrays(a, b), axis=-1) for a, b in zip(first, second, strict=True)
    ]
    return fold_weighted(combiners, pairs, limit)
