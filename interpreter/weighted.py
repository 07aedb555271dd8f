"""Folding weighted means: what `reduce(max, weight, mean)` gives, see `dialects/scalars.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .numpy_types import Array
from .product import Product, Value, as_array, multiply


def fold_weighted(
    exponents: Array, weights: Array, means: Sequence[Array], limit: int
) -> list[Value]:
    """The exponent, the weight and the means of all contributions along the last axis, which goes.

    The arrays broadcast; the last axis has one contribution at least in `exponents`. Raises TooWide if an
    array needs more than `limit` elements.
    """
    largest = exponents.max(axis=-1, keepdims=True)
    none = largest == -np.inf
    scaled = weights * np.exp(exponents - np.where(none, 0, largest))
    total = scaled.sum(axis=-1, keepdims=True)
    shares = np.where(total == 0, 0, scaled / total).astype(scaled.dtype)
    results: list[Value] = [largest[..., 0], total[..., 0]]
    for mean in means:
        product = multiply(shares, mean, limit)
        if isinstance(product, Product):
            summed = product.align(product.lhs.ndim).sum_last(exponents.shape[-1])
            results.append(as_array(summed, limit))
        else:
            results.append(product.sum(axis=-1))
    return results


def join_weighted(first: Sequence[Array], second: Sequence[Array], limit: int) -> list[Value]:
    """What two folds give together."""
    pairs = [
        np.stack(np.broadcast_arrays(a, b), axis=-1) for a, b in zip(first, second, strict=True)
    ]
    return fold_weighted(pairs[0], pairs[1], pairs[2:], limit)
