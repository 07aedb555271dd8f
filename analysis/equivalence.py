"""Whether two pieces of IR say the same.

xDSL's `is_structurally_equivalent` does not compare the types of results, by which alone two casts may
differ: `arith.trunci %x : i64 to i8` and `arith.trunci %x : i64 to i16`.
"""

from __future__ import annotations

from xdsl.ir import Operation, Region

from ..dialects.inside import ops_in


def equivalent(a: Operation | Region, b: Operation | Region) -> bool:
    """Whether `a` and `b` are the same but for names of values and locations."""
    return a.is_structurally_equivalent(b) and all(
        x.result_types == y.result_types for x, y in zip(ops_in(a), ops_in(b), strict=True)
    )
