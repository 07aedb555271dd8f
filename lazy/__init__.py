"""Lazy tensors: `deplo.Tensor`, and the namespace of the array API standard for it."""

from __future__ import annotations

from .namespace import array_api
from .tensor import Tensor, program, realize

__all__ = ["Tensor", "array_api", "program", "realize"]
