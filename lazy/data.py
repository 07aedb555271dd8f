"""How data become leaves: Python numbers, numpy, torch, and whatever speaks DLPack.

Arrays are not copied: a leaf reads the memory it was made from when it is computed with.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..dialects.sizes import Extent
from ..runtime.arrays import is_torch_tensor
from .dtypes import (
    ACCEPTED,
    COMPLEX,
    KINDS,
    PARTS,
    PYTHON_DEFAULTS,
    DType,
    Number,
    as_dtype,
    bfloat16,
    check_number,
    float32,
)
from .expression import Node, apply, joined, leaf


def node_of(data: Any, dtype: Any = None, copy: bool | None = None) -> Node:
    """The node of data, with `copy` of a copy of them. Raises TypeError for what is no data."""
    wanted = None if dtype is None else as_dtype(dtype)
    if is_torch_tensor(data):
        node = _of_array(*_from_torch(data), copy)
    elif hasattr(data, "__dlpack__") or isinstance(data, np.ndarray | np.generic):
        array = data if isinstance(data, np.ndarray | np.generic) else np.from_dlpack(data)
        node = _of_array(np.asarray(array), None, copy)
    elif copy is False:
        raise ValueError(f"data in a {type(data).__name__} cannot be used without a copy")
    else:
        node = _of_python(data, wanted)
    return node if wanted is None else cast(node, wanted)


def cast(node: Node, dtype: DType) -> Node:
    """The node's elements as those of another dtype. Raises TypeError for complex numbers as real ones."""
    if node.dtype is dtype:
        return node
    if dtype.kind == COMPLEX and node.dtype.kind != COMPLEX:
        re = cast(node, PARTS[dtype])
        return joined(re, full(re.shape, 0.0, re.dtype), dtype)
    return apply("_to_copy.default", [node], dtype, {"dtype": dtype})


def full(shape: tuple[Extent, ...], value: Number, dtype: DType) -> Node:
    """A node that is `value` everywhere."""
    number = check_number(value, dtype)
    properties = {"size": shape, "fill_value": number, "dtype": dtype}
    return apply("full.default", [], dtype, properties)


def _of_array(array: np.ndarray[Any, Any], dtype: DType | None, copy: bool | None) -> Node:
    found = as_dtype(array.dtype) if dtype is None else dtype
    if not array.dtype.isnative:
        if copy is False:
            raise ValueError("an array of the other byte order cannot be used without a copy")
        array = array.astype(array.dtype.newbyteorder("="))
    elif copy:
        array = array.copy()
    return leaf(found.stored(array), found)


def _from_torch(tensor: Any) -> tuple[np.ndarray[Any, Any], DType]:
    """A torch tensor's memory as a numpy array, and what its elements are."""
    if not tensor.is_cpu:
        raise TypeError(f"the tensor is on {tensor.device}; lazy tensors are computed on the CPU")
    dtype = as_dtype(tensor.dtype)
    plain = tensor.detach().resolve_conj().resolve_neg()
    if dtype is bfloat16:
        plain = plain.view(sys.modules["torch"].int16)
    return plain.numpy(), dtype


_MADE_OF = ACCEPTED | {bool: KINDS["any"]}
"""The kinds of dtypes that data of each type of Python number may be given."""


def _of_python(data: Any, wanted: DType | None) -> Node:
    """A leaf of a Python number or a nested list of numbers."""
    if not isinstance(data, Number | list | tuple):
        raise TypeError(f"a tensor is made of numbers, lists of them, or arrays; not of {data!r}")
    try:
        array = np.array(data)
    except ValueError as error:
        raise ValueError("the lists are not of one length and depth") from error
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(array.dtype.kind)
    if kind is None:
        raise TypeError(f"the data are of numpy's dtype {array.dtype}, which is none of deplo's")
    dtype = PYTHON_DEFAULTS[kind] if wanted is None else wanted
    if array.size and dtype.kind not in _MADE_OF[kind]:
        raise TypeError(f"the data are Python {kind.__name__}s, not {dtype}: cast with astype")
    stored = float32 if dtype is bfloat16 else dtype
    return cast(leaf(stored.stored(np.array(data, stored.numpy)), stored), dtype)
