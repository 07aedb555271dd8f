"""`--dynamic`: axes whose extents may change from call to call.

    --dynamic x:0=batch,x:1=seq:2:4096

Axis 0 of input x is called batch; axis 1 is seq, from 2 to 4096. One name is one size. An axis may be a
multiple of it: x:0=2*half, x:0=2*half-1:2:100, where the range is that of half.
"""

from __future__ import annotations

import re
from typing import Any

from torch.export import Dim

from ..errors import UsageError
from ..frontend.dynamic_shapes import positions_by_name, shapes_at
from ..frontend.sources import Program

DYNAMIC_OPTION: dict[str, Any] = {
    "metavar": "NAME:AXIS=SIZE[:MIN:MAX],...",
    "default": "",
    "help": "axes of inputs whose extents may change from call to call, such as x:0=batch,x:1=seq",
}
"""The option's declaration."""

_ENTRY = re.compile(
    r"(?P<name>[A-Za-z_]\w*):(?P<axis>\d+)="
    r"((?P<scale>\d+)\*)?(?P<size>[A-Za-z_]\w*)(?P<offset>[+-]\d+)?(:(?P<min>\d*))?(:(?P<max>\d*))?"
)


def dynamic_shapes(text: str, source: Program) -> Any:
    """What `--dynamic` says, as torch.export takes it; None if it says nothing. Raises UsageError."""
    if not text.strip():
        return None
    positions = positions_by_name(source.program, source.args, source.kwargs)
    entries = [_entry(item.strip()) for item in text.split(",")]
    limits: dict[str, tuple[int | None, int | None]] = {}
    for entry in entries:
        given = _number(entry["min"]), _number(entry["max"])
        known = limits.setdefault(entry["size"], given)
        if given != (None, None) and known not in ((None, None), given):
            raise UsageError(f"--dynamic gives {entry['size']} two ranges")
        limits[entry["size"]] = known if given == (None, None) else given
    dims = {name: _dim(name, *given) for name, given in limits.items()}
    axes: dict[int, dict[int, Any]] = {}
    for entry in entries:
        if entry["name"] not in positions:
            listed = ", ".join(positions) or "none"
            raise UsageError(f"--dynamic: no input {entry['name']!r}; the inputs are {listed}")
        dim = _multiple(dims[entry["size"]], entry["scale"], entry["offset"])
        axes.setdefault(positions[entry["name"]], {})[int(entry["axis"])] = dim
    return shapes_at(source.program, source.args, source.kwargs, axes)


def _entry(item: str) -> dict[str, str]:
    match = _ENTRY.fullmatch(item)
    if match is None:
        raise UsageError(f"--dynamic takes NAME:AXIS=SIZE or NAME:AXIS=SIZE:MIN:MAX; got {item!r}")
    return match.groupdict(default="")


def _multiple(dim: Any, scale: str, offset: str) -> Any:
    """`scale * dim + offset`, as far as they are given. Raises UsageError where that may be less than 1."""
    times, plus = int(scale or 1), int(offset or 0)
    if times < 1:
        raise UsageError(f"--dynamic: {scale}*{dim.__name__} is no extent, give a positive factor")
    if plus < 0 and times * dim.min + plus < 1:
        raise UsageError(
            f"--dynamic: {times}*{dim.__name__}{offset} may be less than 1; say the smallest {dim.__name__}, "
            f"as in {times}*{dim.__name__}{offset}:{(times - plus) // times}"
        )
    return dim if (times, plus) == (1, 0) else dim * times + plus if plus else dim * times


def _number(digits: str) -> int | None:
    return int(digits) if digits else None


def _dim(name: str, minimum: int | None, maximum: int | None) -> Any:
    if maximum is not None and maximum <= (minimum or 1):
        raise UsageError(f"--dynamic: {name} has no sizes from {minimum or 1} to {maximum}")
    return Dim(name, min=minimum, max=maximum)
