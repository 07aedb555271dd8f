"""Names that are free in C."""

from __future__ import annotations

import re
from collections.abc import Collection

_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while bool true false main program check buffer exit free memcpy round_to_odd INFINITY NAN
    isnan islessgreater isunordered abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh
    erf exp exp2 expm1 fabs floor fma log log10 log1p log2 pow rint round sin sinh sqrt tan tanh trunc
    div gamma index j0 j1 jn y0 y1 yn remove rename time clock signgam linux unix""".split()
)
"""Words that are not free for a name: those of C, and functions that the code may call."""


def free_name(hint: str | None, taken: Collection[str]) -> str:
    """A C name like the hint that is neither taken nor a word of C."""
    stem = re.sub(r"[^A-Za-z0-9_]", "", hint or "v")[:48].strip("_") or "v"
    if not re.match(r"[A-Za-z]", stem):
        stem = f"v{stem}"
    name, count = stem, 0
    while name in taken or name in _RESERVED:
        count += 1
        name = f"{stem}_{count}"
    return name
