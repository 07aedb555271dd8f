"""What is put together from pieces, and windows that overlap in it.

Each element of an image with a mirrored border, or of an enlarged one, is looked for: a condition for each
piece, a quotient for each repeated element. Read through by the windows of a convolution it would be looked
for in every one of them; a copy of the image is looked for once. Pieces that take turns along a line, as the
phases of a transposed convolution do, are copied in front of a reduction along it, too, if it reads them more
than once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ..dialects.inside import ops_of
from ..dialects.loop import KernelOp, LoadOp, TestOp
from ..index.affine import divisions, leaves
from .conditions import linear
from .cost import elements
from .index import Range, operand_ranges

REASON = "windows overlap in what is put together from pieces"
"""Why nothing is merged."""

ALTERNATE = "pieces that take turns would be looked for in each of the reductions that read them"
"""The same of reductions along such pieces."""


def overlaps(expr: AffineExpr, ranges: Sequence[Range]) -> bool:
    """Whether an index is the same at different places, as those of neighbouring windows are."""
    terms = linear(expr)
    if terms is None:
        return False
    last = {d: ranges[d][1] for d in terms.coefficients}
    known = {d: most for d, most in last.items() if isinstance(most, int) and most > 0}
    reach = 0
    for step, dim in sorted((abs(step), d) for d, step in terms.coefficients.items() if d in known):
        if step <= reach:
            return True
        reach += step * known[dim]
    return False


def is_patchwork(kernel: KernelOp) -> bool:
    """Whether the results of a kernel come from several places each, or are there more than once."""
    if _is_from_pieces(kernel):
        return True
    divided = any(
        True for load in _loads(kernel) for e in load.map.data.results for _ in divisions(e)
    )
    made = sum(elements(argument.type) for argument in kernel.output_args)
    return divided and made > sum(elements(argument.type) for argument in kernel.input_args)


def alternating_axes(kernel: KernelOp, axis_of: Mapping[SSAValue, int]) -> set[int]:
    """The axes of the results of a kernel along which neighbours come from different places, in turn.

    `axis_of` says which axis each of its counters counts.
    """
    if not _is_from_pieces(kernel):
        return set()
    tests = ops_of(kernel, TestOp)
    dims = [
        test.operands_[leaf.position]
        for test in tests
        for expr in test.exprs
        for division in divisions(expr)
        for leaf in leaves(division)
        if isinstance(leaf, AffineDimExpr)
    ]
    return {axis_of[dim] for dim in dims if dim in axis_of}


def _is_from_pieces(kernel: KernelOp) -> bool:
    return sum(isinstance(load.parent_op(), scf.IfOp) for load in _loads(kernel)) > 1


def _loads(kernel: KernelOp) -> list[LoadOp]:
    return ops_of(kernel, LoadOp)


def reads_windows(load: LoadOp) -> bool:
    """Whether what a load reads is in several windows."""
    ranges = operand_ranges(load.indices)
    return any(overlaps(expr, ranges) for expr in load.map.data.results)
