"""Arrays of other libraries on a GPU, taken and given without a copy: capsules as DLPack has them.

Source: DLPack's C header, "DLManagedTensor", and "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

CUDA = 2
"""The number of a CUDA device's kind."""

LEGACY_STREAM = 1
"""CUDA's legacy default stream, by its number here and as a handle of the driver."""

CODES = {
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "complex64": (5, 64),
    "complex128": (5, 128),
}
"""The kind and the bits of each dtype."""

_DTYPES = {code: name for name, code in CODES.items()}
_NAME, _USED = b"dltensor", b"used_dltensor"
"""Capsules have the addresses of these."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api: Any = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


class Taken:
    """An array of another library; it keeps its memory as long as this object is there."""

    def __init__(self, capsule: Any):
        """Take what a capsule holds. Raises ValueError for one of another kind, or a dtype of no name."""
        address = _pointer(capsule, _NAME)
        managed = _Managed.from_address(address)
        tensor = managed.tensor
        code = tensor.code, tensor.bits
        if tensor.lanes != 1 or code not in _DTYPES:
            raise ValueError(f"elements of kind {tensor.code} and {tensor.bits} bits")
        rank = tensor.rank
        self.dtype = _DTYPES[code]
        self.device = tensor.device, tensor.device_number
        self.address: int = (tensor.data or 0) + tensor.offset
        self.shape: tuple[int, ...] = tuple(tensor.shape[:rank]) if rank else ()
        self.strides = tuple(tensor.strides[:rank]) if tensor.strides else None
        """In elements; None for an array that lies row by row."""
        self.nbytes = prod(self.shape) * tensor.bits // 8
        _rename(capsule, _USED)
        if managed.deleter:
            release = weakref.finalize(self, _Deleter(managed.deleter), address)
            release.atexit = False


@dataclass(frozen=True)
class _Given:
    """What a capsule points to, and what owns the memory."""

    managed: _Managed
    numbers: Sequence[Any]
    owner: object


_given: dict[int, _Given] = {}
"""By address; what their takers have not released yet."""


@_Deleter
def _release(address: int) -> None:
    _given.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _discard(capsule: int) -> None:
    """Release what nobody took."""
    if _is_named(capsule, _NAME):
        _given.pop(_dying_pointer(capsule, _NAME), None)


def give(
    owner: object,
    address: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    device: tuple[int, int],
) -> Any:
    """A capsule of an array, with strides in elements; `owner` stays until its taker has released it."""
    kind, bits = CODES[dtype]
    numbers = [(ctypes.c_int64 * max(len(shape), 1))(*each) for each in (shape, strides)]
    pointers = [ctypes.cast(each, ctypes.POINTER(ctypes.c_int64)) for each in numbers]
    tensor = _Tensor(address, *device, len(shape), kind, bits, 1, *pointers, 0)
    managed = _Managed(tensor, None, ctypes.cast(_release, ctypes.c_void_p))
    place = ctypes.addressof(managed)
    _given[place] = _Given(managed, numbers, owner)
    return _new(place, _NAME, ctypes.cast(_discard, ctypes.c_void_p))
