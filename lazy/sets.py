"""Functions whose results have as many elements as the data decide: numpy's, computed at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .calls import computed
from .functions import public, tensor
from .manipulation import reshape
from .tensor import Tensor


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


@public
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, a tensor for each axis."""
    if not tensor(x, name="nonzero").shape:
        raise ValueError("nonzero takes tensors with axes")
    return computed(np.nonzero, x)


@public
def unique_all(x: Tensor, /) -> UniqueAll:
    """Each value once, where it is first, where it stands for x, and how often; each NaN is a value."""
    values, indices, inverse, counts = _unique(
        "unique_all", x, return_index=True, return_inverse=True, return_counts=True
    )
    return UniqueAll(values, indices, reshape(inverse, x.shape), counts)


@public
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Each value once, and how often it is there; each NaN is a value."""
    return UniqueCounts(*_unique("unique_counts", x, return_counts=True))


@public
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Each value once, and where among these each element is; each NaN is a value."""
    values, inverse = _unique("unique_inverse", x, return_inverse=True)
    return UniqueInverse(values, reshape(inverse, x.shape))


@public
def unique_values(x: Tensor, /) -> Tensor:
    """Each value once; each NaN is a value."""
    return _unique("unique_values", x)


def _unique(name: str, x: Tensor, **asked: bool) -> Any:
    tensor(x, name=name)
    return computed(np.unique, x, equal_nan=False, **asked)
