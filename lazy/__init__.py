"""Lazy tensors: `deplo.Tensor`, its functions, which `deplo.array_api` has by name, and plans."""

from __future__ import annotations

from . import (  # the functions that are methods
    arithmetic,
    creation,
    fourier,
    indexing,
    linear,
    linear_algebra,
    manipulation,
    neural,
    random,
    reductions,
    sets,
    unsigned,
)
from .plans import TensorPlan, prepare
from .tensor import Tensor, realize
from .variables import Variable

_ENTERED = (
    *(arithmetic, creation, fourier, indexing, linear, linear_algebra),
    *(manipulation, neural, random, reductions, sets, unsigned),
)
"""The modules whose functions and rules are in tables once they are imported."""

__all__ = ["Tensor", "TensorPlan", "Variable", "prepare", "realize"]
