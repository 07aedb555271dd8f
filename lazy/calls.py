"""What deplo does not compile is numpy's: computed when it is called, of elements that are computed for it.

The results are data of what is built from them, like a tensor that was realized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .data import node_of
from .dtypes import Number
from .tensor import Tensor, realize


def computed(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What numpy's function gives for the elements of tensors: a tensor, or a tuple of them.

    Raises numpy's errors, such as LinAlgError; UsageError if a tensor depends on a variable.
    """
    realize(*(each for each in arguments if isinstance(each, Tensor)))
    arrays = [each.numpy() if isinstance(each, Tensor) else each for each in arguments]
    with np.errstate(all="ignore"):
        found = function(*arrays, **options)
    return tuple(map(_tensor, found)) if isinstance(found, tuple) else _tensor(found)


def _tensor(found: Any) -> Tensor:
    """A tensor of what numpy gave, which nobody else has."""
    return Tensor.of(node_of(np.ascontiguousarray(found).reshape(np.shape(found))))


def numpy_call(name: str) -> Callable[..., Tensor]:
    """numpy's function of that name, of tensors and numbers of one dtype."""

    def function(*operands: Tensor | Number, **options: Any) -> Tensor:
        return computed(getattr(np, name), *operands, **options)

    return function
