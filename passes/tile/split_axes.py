"""`split-axes`: an axis whose quotient or remainder an index takes becomes two, where that helps.

    tile.launch (%j = 64 : thread, %l = 56 : thread) {
      ... %x[%j floordiv 16 * 16 + %m, %l] ... %w[%j, %m] ...
    }
becomes
    tile.launch (%j_part = 4 : thread, %j = 16 : thread, %l = 56 : thread) {
      ... %x[%j_part * 16 + %m, %l] ... %w[%j_part * 16 + %j, %m] ...
    }

As of a convolution in groups: an operand of a contraction reads the quotient alone. `%j` was in both
operands, and so in neither the rows nor the columns. It is split where the launch is no contraction as it
is, and is one then.

So is an axis of whose places one operand depends, and only the other one on its parts, as the results of a
transposed convolution do on those of its input and on the phase that a weight belongs to:

    tile.launch (%j = 32 : thread, %l = 56 : thread) {
      ... %x[%m, %l floordiv 2 - %n] ... %w[%m, %j, %l mod 2 + %n * 2] ...
    }
becomes
    tile.launch (%l = 2 : thread, %j = 32 : thread, %l_part = 28 : thread) {
      ... %x[%m, %l_part - %n] ... %w[%m, %j, %l + %n * 2] ...
    }

And so is, on a CPU, the last axis of what is no contraction where an index takes its remainder, as that of a
tensor that is repeated: a loop over the places walks along memory, in vectors. On a GPU axes are split whose
parts a tile has rows and columns of, as those of a transposed matrix that is a row now (`stage-transposes`):

    tile.launch (%i = 524288 : thread) {
      ... %x[%i mod 512, %i floordiv 512] ... %y[%i] ...
    }
becomes
    tile.launch (%i_part = 1024 : thread, %i = 512 : thread) {
      ... %x[%i, %i_part] ... %y[%i_part * 512 + %i] ...
    }
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineBinaryOpKind, AffineDimExpr

from ...analysis.contraction import find_contraction
from ...analysis.cost import trips
from ...analysis.products import axes_of_factors, find_product
from ...analysis.transposes import find_tile
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp
from ...dialects.sizes import Extent, extent_of
from ...dialects.tile import LaunchOp
from ...index.affine import divisions
from ...machine.targets import get_target
from ..schedule.deepen import find_loop
from ..schedule.primitive import Primitive
from ..schedule.reorder import ReorderPass
from ..schedule.split import SplitPass, split_axis
from .deepen_launch import deepened
from .named_axes import name_axes
from .recipe import MachineRecipe, Taken
from .rewrite_indices import index_of

LONG = 64
"""Places that are worth a loop of their own."""


def quotients(
    launch: LaunchOp,
    kind: AffineBinaryOpKind = AffineBinaryOpKind.FloorDiv,
    *,
    of_neighbours: bool = False,
) -> Iterator[tuple[int, int]]:
    """The axes of a launch of which an index takes quotients, or remainders, by divisors of their extents.

    If they are to be `of_neighbours`, that is the last index of a load. Divisors are numbers.
    """
    for axis, part in divisors(launch, kind, of_neighbours=of_neighbours):
        if isinstance(part, int):
            yield axis, part


def divisors(
    launch: LaunchOp, kind: AffineBinaryOpKind, *, of_neighbours: bool = False
) -> Iterator[tuple[int, Extent]]:
    """The same with sizes among the divisors."""
    for op in ops_in(launch.body):
        exprs, operands = index_of(op) or ((), [])
        if of_neighbours:
            exprs = exprs[-1:] if isinstance(op, LoadOp) else ()
        for node in (node for expr in exprs for node in divisions(expr)):
            if node.kind != kind or node.rhs.used_dims():
                continue
            if not isinstance(node.lhs, AffineDimExpr):
                continue
            axis = launch.axis_of(value := operands[node.lhs.position])
            if axis is None:
                continue
            extent, part = axis.extent.data, extent_of(node.rhs)
            if extent % part == 0 and trips(part) < trips(extent):
                assert isinstance(value, BlockArgument)
                yield value.index, part


def split(
    launch: LaunchOp, axis: int, part: Extent, *, places_first: bool = False
) -> list[Primitive]:
    """Make two axes of one: its parts, and the places in a part, which may become the outermost axis.

    Gives the steps; none if a part's size is dynamic, which no step can say.
    """
    if not isinstance(part, int):
        split_in_parts(launch, axis, part)
        return []
    names = name_axes(launch)
    name, parts = names[axis], _name_of_parts(names, axis)
    steps: list[Primitive] = [SplitPass(axis=name, by=part, into=(parts, name))]
    if places_first:
        names[axis] = parts
        steps.append(ReorderPass(axes=(name, *names)))
    for step in steps:
        reason = step.change(launch)
        assert reason is None, reason
    return steps


def split_in_parts(launch: LaunchOp, axis: int, part: Extent) -> None:
    """The same for any part, without a condition on the places of the last one."""
    names = name_axes(launch)
    split_axis(launch, axis, part, (_name_of_parts(names, axis), names[axis]))


def _name_of_parts(names: Sequence[str], axis: int) -> str:
    name = f"{names[axis]}_part"
    while name in names:
        name += "_part"
    return name


def has_phases(launch: LaunchOp, axis: int, part: int) -> bool:
    """Whether all factors depend on an axis, but of its two halves some one on the places alone."""
    if not all(axis in axes for axes in axes_of_factors(launch)):
        return False
    with trial(launch) as copy:
        split(copy, axis, part)
        return any(axis + 1 in axes and axis not in axes for axes in axes_of_factors(copy))


@contextmanager
def trial(launch: LaunchOp) -> Generator[LaunchOp]:
    """A copy of a launch, which reads nothing any more in the end."""
    copy = launch.clone()
    try:
        yield copy
    finally:
        copy.drop_all_references()


@dataclass(frozen=True)
class SplitAxesPass(MachineRecipe):
    """Split the axes that keep launches from being contractions, or their loops from walking along memory."""

    name = "split-axes"

    def take(self, launch: LaunchOp) -> Taken | str:
        if launch.settled is not None:
            return launch.settled
        steps = self._steps(launch)
        if isinstance(steps, str):
            split_more = self._split_transposed if self._on_gpu else self._split_remainder
            reason, steps = steps, [] if self._is_contraction(launch) else split_more(launch)
            if not steps:
                return reason
        said, taken = list[str](), list[Primitive]()
        for axis, part, places_first in steps:
            name = launch.body.block.args[axis].name_hint or f"axis {axis}"
            said.append(f"{name} is split in {'phases' if places_first else f'parts of {part}'}")
            taken += split(launch, axis, part, places_first=places_first)
        known = all(isinstance(part, int) for _, part, _ in steps)
        return Taken(", ".join(said), taken if known else None)

    def _steps(self, launch: LaunchOp) -> list[tuple[int, Extent, bool]] | str:
        """The splits that make a launch a contraction, or why there are none.

        Of each the axis, the size of a part, and whether the places in parts come first.
        """
        is_one = self._is_contraction(launch)
        if not any(quotients(launch)):
            return "it is a contraction as it is" if is_one else "no index divides an axis"
        with trial(launch) as copy:
            steps = [] if self._on_gpu else self._split_phases(copy)
            if steps and self._is_contraction(copy):
                return steps
            for axis, part in {} if is_one else dict.fromkeys(quotients(copy)):
                with trial(copy) as last:
                    split(last, axis, part)
                    if self._is_contraction(last):
                        return [*steps, (axis, part, False)]
        return "it is a contraction as it is" if is_one else "no split makes it a contraction"

    def _split_phases(self, launch: LaunchOp) -> list[tuple[int, Extent, bool]]:
        """Split all axes that have phases; gives the splits."""
        steps: list[tuple[int, Extent, bool]] = []
        while each := next((q for q in quotients(launch) if has_phases(launch, *q)), None):
            split(launch, *each, places_first=True)
            steps.append((*each, True))
        return steps

    def _split_remainder(self, launch: LaunchOp) -> list[tuple[int, Extent, bool]]:
        """The split of the last axis by which an index takes its remainder, if the places are many.

        Where something is reduced, the axis may be its rows: then the remainder is to count neighbours.
        """
        last = len(launch.axes) - 1
        reduces = any(isinstance(op, ForOp) and op.res for op in ops_in(launch))
        found = divisors(launch, AffineBinaryOpKind.Mod, of_neighbours=reduces)
        return [(last, n, False) for axis, n in found if axis == last and trips(n) >= LONG][:1]

    def _split_transposed(self, launch: LaunchOp) -> list[tuple[int, Extent, bool]]:
        """The splits, long parts first, after which a tile of the launch saves sectors."""
        target = get_target(self.target)
        steps: list[tuple[int, Extent, bool]] = []
        with trial(launch) as copy:
            while found := max(quotients(copy), key=lambda each: each[1], default=None):
                split(copy, *found)
                steps.append((*found, False))
                if not isinstance(find_tile(copy, target), str):
                    return steps
        return []

    @property
    def _on_gpu(self) -> bool:
        return get_target(self.target).is_gpu

    def _is_contraction(self, launch: LaunchOp) -> bool:
        """Whether a launch is a contraction; on a CPU also if `deepen-launch` makes it one."""
        if self._on_gpu:
            return not isinstance(find_contraction(launch), str)
        product = find_product(launch)
        if isinstance(product, str) and isinstance(find_loop(launch), ForOp):
            copy = deepened(launch)
            product = find_product(copy)
            copy.drop_all_references()
        return not isinstance(product, str)
