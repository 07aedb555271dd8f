"""Arrays in the format safetensors: a header in JSON, each array's dtype, shape and place, then their bytes.

Source: the README of huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from .plan_parts import ALIGNMENT

LENGTH_BYTES = 8
"""How long the header is, a little-endian number in front of it."""

NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""The format's name of each dtype. A numpy array of bfloat16 is one of its bits, uint16."""

_DTYPES = {said: "uint16" if name == "bfloat16" else name for name, said in NAMES.items()}


def written(arrays: Mapping[str, tuple[str, Any]]) -> bytes:
    """The bytes of a file with these arrays, each with the name of its dtype.

    The format has no gaps. So arrays whose sizes are multiples of a cache line come first: they begin at one.
    """
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    for name in sorted(arrays, key=lambda name: arrays[name][1].nbytes % ALIGNMENT != 0):
        dtype, array = arrays[name]
        places = [end, end + array.nbytes]
        header[name] = {"dtype": NAMES[dtype], "shape": list(array.shape), "data_offsets": places}
        parts.append(np.ascontiguousarray(array).tobytes())
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(LENGTH_BYTES + len(text)) % ALIGNMENT)
    return b"".join((len(text).to_bytes(LENGTH_BYTES, "little"), text, *parts))


def read(data: memoryview) -> dict[str, Any]:
    """The arrays of a file, in its memory. Raises ValueError if it is none."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if len(data) < LENGTH_BYTES or length > len(data) - LENGTH_BYTES:
        raise ValueError("no safetensors: the header is longer than the file")
    header, body = json.loads(bytes(data[LENGTH_BYTES:][:length])), data[LENGTH_BYTES + length :]
    arrays: dict[str, Any] = {}
    for name, said in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = np.dtype(_DTYPES[said["dtype"]]), tuple(map(int, said["shape"]))
        begin, end = map(int, said["data_offsets"])
        if not 0 <= begin <= end <= len(body) or end - begin != prod(shape) * dtype.itemsize:
            raise ValueError(f"no safetensors: {name} has no place in the file")
        arrays[name] = np.frombuffer(body[begin:end], dtype).reshape(shape)
    return arrays
