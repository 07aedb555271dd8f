"""`--sizes`: the extents of dimensions of an ONNX model that have names.

    --sizes batch=4,seq=128

A dimension that is not said changes from call to call.
"""

from __future__ import annotations

from typing import Any

from ..errors import UsageError

SIZES_OPTION: dict[str, Any] = {
    "metavar": "NAME=EXTENT,...",
    "default": "",
    "help": "extents of dimensions of a .onnx file that have names, such as batch=4,seq=128",
}
"""The option's declaration."""


def sizes_of(text: str) -> dict[str, int]:
    """What `--sizes` says, by name. Raises UsageError."""
    found: dict[str, int] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        name, separator, extent = item.rpartition("=")
        if not separator or not name or not (extent.isascii() and extent.isdigit()):
            raise UsageError(f"--sizes: NAME=EXTENT, such as batch=4, not {item!r}")
        if name in found:
            raise UsageError(f"--sizes: '{name}' is said twice")
        found[name] = int(extent)
    return found
