"""Lazy tensors: `deplo.Tensor`, the namespace of the array API standard for it, and plans."""

from __future__ import annotations

from .namespace import array_api
from .plans import TensorPlan, prepare
from .tensor import Tensor, realize
from .variables import Variable

__all__ = ["Tensor", "TensorPlan", "Variable", "array_api", "prepare", "realize"]
