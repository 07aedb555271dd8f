"""The named axes of a launch: finding them, replacing one by others, and the condition around the body."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, IndexType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, TestOp
from ...dialects.tile import AxisAttr, LaunchOp
from ...errors import UsageError
from ...index.affine import replace_dims
from .rewrite_indices import rewrite_index

INDEX = IndexType()


def axis_names(launch: LaunchOp) -> list[str]:
    """The names of a launch's axes; one without a name is called by its position, `i2`."""
    return [each.name_hint or f"i{n}" for n, each in enumerate(launch.body.block.args)]


def name_axes(launch: LaunchOp) -> list[str]:
    """Give each axis of a launch a name that is legal and that no other one has; gives the names."""
    names = axis_names(launch)
    for n, counter in enumerate(launch.body.block.args):
        if names.count(names[n]) > 1 or counter.name_hint is None or not is_name(names[n]):
            names[n] = next(each for each in _letters() if each not in names)
            counter.name_hint = names[n]
    return names


def name_sweeps(launch: LaunchOp, sweeps: Sequence[ForOp]) -> list[str]:
    """Give each sweep of a launch a name that is legal and that no axis has; gives the names."""
    axes = axis_names(launch)
    for sweep in sweeps:
        counter = sweep.induction_var
        if counter.name_hint is None or not is_name(counter.name_hint) or counter.name_hint in axes:
            counter.name_hint = next(each for each in _letters("k") if each not in axes)
    return [sweep.induction_var.name_hint or "" for sweep in sweeps]


def _letters(first: str = "i") -> Iterator[str]:
    """i, j, ..., z, ii, jj, ..."""
    for count in itertools.count(1):
        yield from (letter * count for letter in ascii_lowercase[ascii_lowercase.index(first) :])


def is_name(text: str) -> bool:
    """Whether an axis may be called so: the name of a value keeps no number behind an underscore."""
    return re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None and not re.search(r"_\d+$", text)


def find_axis(launch: LaunchOp, name: str) -> int | str:
    """The position of the axis of that name, or why there is none."""
    names = axis_names(launch)
    if names.count(name) == 1:
        return names.index(name)
    if not name:
        return f"no axis is given; its axes are {', '.join(names)}"
    listed = f"its axes are {', '.join(names)}" if names else "it has no axis"
    return f"{names.count(name) or 'no'} axis of the launch is named {name}; {listed}"


def insert_axis(
    launch: LaunchOp, position: int, axis: AxisAttr, name: str | None
) -> SSAValue:
    """Give a launch another axis; gives its counter."""
    axes = list(launch.axes)
    axes.insert(position, axis)
    counter = launch.body.block.insert_arg(INDEX, position)
    counter.name_hint = name
    launch.axes = ArrayAttr(axes)
    return counter


def remove_axis(launch: LaunchOp, position: int) -> None:
    """Drop an axis whose counter nothing reads."""
    axes = list(launch.axes)
    del axes[position]
    launch.body.block.erase_arg(launch.body.block.args[position])
    launch.axes = ArrayAttr(axes)


def replace_counter(
    launch: LaunchOp, old: dict[SSAValue, AffineExpr], counters: Sequence[SSAValue]
) -> None:
    """Let expressions over counters stand for old ones, in all index expressions of a launch."""
    for op in ops_in(launch):
        rewrite_index(op, old, list(counters))


def guard(launch: LaunchOp, inside: AffineExpr, counters: Sequence[SSAValue]) -> None:
    """Put the body of a launch under one more condition: that an expression is at least zero."""
    block = launch.body.block
    if (found := find_guard(launch)) is not None:
        test, _ = found
        first = len(test.operands_)
        dims = [AffineExpr.dimension(first + n) for n in range(len(counters))]
        new = TestOp(
            [*test.exprs, replace_dims(inside, dims)], [*test.operands_, *counters]
        )
        new.result.name_hint = test.result.name_hint
        block.insert_op_before(new, test)
        test.result.replace_all_uses_with(new.result)
        test.detach()
        test.erase()
        return
    body = list(block.ops)
    for op in body:
        op.detach()
    builder = Builder(InsertPoint.at_end(block))
    test = builder.insert(TestOp([inside], counters))
    builder.insert(scf.IfOp(test.result, [], Region(Block([*body, scf.YieldOp()]))))


def find_guard(launch: LaunchOp) -> tuple[TestOp, scf.IfOp] | None:
    """The condition that the whole body of a launch is under, if it is and has nothing to do else."""
    ops = list(launch.body.block.ops)
    if len(ops) != 2:
        return None
    test, branch = ops
    if not isinstance(test, TestOp) or not isinstance(branch, scf.IfOp):
        return None
    return (test, branch) if is_guard(test, branch) else None


def take_off_guard(launch: LaunchOp) -> tuple[list[AffineExpr], list[SSAValue]]:
    """Run the body of a launch without the condition that it is under; gives that, none if there is none.

    There is a point where the expressions are at least zero, over the values.
    """
    if (found := find_guard(launch)) is None:
        return [], []
    test, branch = found
    condition = list(test.exprs), list(test.operands_)
    take_off_condition(test, branch)
    return condition


def take_off_condition(test: TestOp, branch: scf.IfOp) -> None:
    """Run what stands in a branch in any case."""
    assert branch.parent is not None
    for op in list(branch.true_region.block.ops)[:-1]:
        op.detach()
        branch.parent.insert_op_before(op, branch)
    for op in (branch, test):
        op.detach()
        op.erase()


def is_guard(test: TestOp, branch: scf.IfOp) -> bool:
    """Whether a branch runs under a test that nothing else reads, and does nothing where it fails."""
    reads = [use.operation for use in test.result.uses]
    return reads == [branch] and not branch.false_region.blocks and not branch.output


def check_names(names: Sequence[str]) -> None:
    """Raise UsageError for names that axes cannot have."""
    for name in names:
        if not is_name(name):
            raise UsageError(
                f"an axis may be named by letters, digits and _, with no number behind a _, not '{name}'"
            )
    if len(set(names)) < len(names):
        raise UsageError(f"axes have names of their own, not {' and '.join(names)}")


def taken(launch: LaunchOp, names: Sequence[str], replaced: Sequence[str]) -> str | None:
    """Why axes cannot be named so: others have these names; None if they can."""
    others = [name for name in axis_names(launch) if name not in replaced]
    found = next((name for name in names if name in others), None)
    return None if found is None else f"another axis is named {found}"
