"""`apply-schedules`: carries out the schedules that people gave and tuning found, each on its kernel.

    loop.kernel @k(%x) ... attributes {schedule = "tileify,split{axis=j by=64},bind{axis=j_outer to=block}"}

or, as `deplo explain --schedule-only` prints it and `--schedule` takes it, a line for each kernel:

    k: tileify,split{axis=j by=64},bind{axis=j_outer to=block}

A schedule is a pipeline of primitives and of passes of `loop-to-tile`, and makes a launch. It is carried out
on its kernel alone, and on those that this one becomes. That of kernels that become one names all of them,
`k_scores+k_softmax: ...`. A step that is not legal is an error, which names it.
Kernels that no schedule is given for get the one that was found for them by measuring (`passes/tuned.py`), if
its steps are legal.
The launch has `schedule(#tile.schedule<given = 1>)` then: no pass of `loop-to-tile` adds anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ...analysis.launches import kernels_of, launches_of
from ...analysis.verify import verify_module
from ...dialects.loop import KernelOp
from ...dialects.schedule import ScheduleAttr, split_schedules
from ...errors import DeploError, UsageError
from .. import get_all_passes
from ..decisions import record, recording
from ..pipeline_text import read_pipeline
from ..pipelines import order_of
from ..replacing import rename
from ..schedule.primitive import Primitive
from ..symbol_names import insert_kernel
from ..tuned import tuned_groups

ATTRIBUTE = "schedule"
"""The attribute of a kernel that says how it is scheduled."""


def read_steps(text: str) -> tuple[ModulePass, ...]:
    """The passes of a schedule. Raises UsageError for a text that is none."""
    allowed = {name for names in order_of("loop-to-tile").values() for name in names}
    steps = read_pipeline(text, get_all_passes())
    for step in steps:
        if not isinstance(step, Primitive) and step.name not in allowed:
            raise UsageError(f"'{step.name}' is no step of a schedule")
    return steps


@dataclass(frozen=True)
class ApplySchedulesPass(ModulePass):
    """Carry out the schedules given. Raises UsageError for one that is not legal."""

    name = "apply-schedules"

    given: str = ""
    """Schedules of kernels, a line each; they come before what attributes say."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        given, _ = split_schedules(self.given)
        kernels = {kernel.sym_name.data: kernel for kernel in kernels_of(op)}
        lines = {name: line for line in given for name in line.split("+")}
        if unknown := [name for name in lines if name not in kernels]:
            listed = f"there are {', '.join(kernels)}" if kernels else "there is none"
            raise UsageError(f"schedule: no kernel is named {unknown[0]}; {listed}")
        left: list[KernelOp] = []
        for name, kernel in kernels.items():
            attribute = kernel.attributes.pop(ATTRIBUTE, None)
            line = lines.get(name, name)
            together = [each for each in kernels if lines.get(each, each) == line]
            if line not in given and attribute is None:
                left.append(kernel)
            elif name == together[-1]:  # where all that they need is there
                text = given[line] if line in given else _text(name, attribute)
                self._schedule(ctx, line, [kernels[each] for each in together], text, "as its schedule says")
        self._schedule_tuned(ctx, left)

    def _schedule_tuned(self, ctx: Context, kernels: Sequence[KernelOp]) -> None:
        """Schedule what was tuned as it was found to be best, if that is legal."""
        left = dict.fromkeys(kernels)
        for group, text in tuned_groups(kernels):
            group = sorted(group, key=kernels.index)
            line = "+".join(kernel.sym_name.data for kernel in group)
            try:
                self._schedule(ctx, line, group, text, "as tuned")
            except DeploError as error:
                record(self.name, line, False, str(error), group[-1])
                continue
            for each in group:
                del left[each]
        for each in left:
            record(self.name, each.sym_name.data, False, "no schedule is given for it", each)

    def _schedule(
        self, ctx: Context, line: str, kernels: Sequence[KernelOp], text: str, told: str
    ) -> None:
        """Schedule kernels by the steps of a text. Raises UsageError, with nothing changed."""
        together, location = [kernel.sym_name.data for kernel in kernels], kernels[-1].location
        try:
            steps = read_steps(text)
            made = schedule_kernels(ctx, kernels, steps)
        except UsageError as error:
            raise UsageError(f"schedule of {line}: {error}") from None
        *_, name = together
        others = tuple(each for each in (*together, *made) if each != name)
        record(self.name, name, True, told, location, others, steps)


def _text(kernel: str, attribute: Attribute | None) -> str:
    """The text of a kernel's attribute. Raises UsageError if it is none."""
    if not isinstance(attribute, StringAttr):
        raise UsageError(f"schedule of {kernel}: the attribute is a text of steps, not {attribute}")
    return attribute.data


def schedule_kernels(
    ctx: Context, kernels: Sequence[KernelOp], steps: Sequence[ModulePass]
) -> list[str]:
    """Carry steps out on kernels alone; gives the names of what they became. Raises UsageError."""
    module, arguments, results = _alone(kernels)
    for step in steps:
        with recording(alone=True) as decisions:
            step.apply(ctx, module)
        if not any(decision.fired for decision in decisions):
            reasons = dict.fromkeys(decision.reason for decision in decisions)
            raise UsageError(f"{step.name}: {'; '.join(reasons) or 'there is no launch'}")
    launches = [launch for _, launch in launches_of(module)]
    if not launches:
        raise UsageError("it makes no launch; it begins with tileify")
    try:
        for launch in launches:
            launch.schedule = (launch.schedule or ScheduleAttr()).with_choices(given=1)
        verify_module(module)
    except VerifyException as error:
        raise UsageError(str(error)) from None
    return _put_back(module, kernels, arguments, results)


def _alone(kernels: Sequence[KernelOp]) -> tuple[ModuleOp, list[SSAValue], list[SSAValue]]:
    """A module with copies of kernels, in a function in which sizes mean what they mean around them.

    Gives the arguments of the function and its results, too: what others make, and what others read. Raises
    UsageError if one of these stands between the kernels.
    """
    made = [value for kernel in kernels for value in kernel.outputs]
    results: list[SSAValue] = []
    for value in made:
        readers = [use.operation for use in value.uses if use.operation not in kernels]
        if any(reader.is_before_in_block(kernels[-1]) for reader in readers):
            raise UsageError(f"another operation reads {value.name_hint} before the last of them runs")
        results += [value] if readers else []
    operands = dict.fromkeys(value for kernel in kernels for value in kernel.operands)
    arguments = [value for value in operands if value not in made]
    block = Block(arg_types=[value.type for value in arguments])
    mapped: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    for value, argument in mapped.items():
        argument.name_hint = value.name_hint
    block.add_ops([kernel.clone(mapped) for kernel in kernels])
    block.add_op(func.ReturnOp(*(mapped[value] for value in results)))
    types = [value.type for value in arguments], [value.type for value in results]
    function = func.FuncOp("main", types, Region(block))
    if isinstance(around := kernels[0].parent_op(), func.FuncOp):
        function.attributes |= around.attributes
    return ModuleOp([function]), arguments, results


def _put_back(
    module: ModuleOp,
    kernels: Sequence[KernelOp],
    arguments: Sequence[SSAValue],
    results: Sequence[SSAValue],
) -> list[str]:
    """Put what stands in a module in the place of kernels; gives the names of the kernels."""
    block = next(op for op in module.ops if isinstance(op, func.FuncOp)).body.block
    for value, argument in zip(arguments, block.args, strict=True):
        argument.replace_all_uses_with(value)
    *made, end = block.ops
    for kernel in kernels:
        kernel.sym_name = StringAttr("")  # the name is free
    for op in made:
        op.detach()
        if isinstance(op, KernelOp):
            insert_kernel(op, kernels[-1])
        else:
            assert kernels[-1].parent is not None
            kernels[-1].parent.insert_op_before(op, kernels[-1])
    rename(results, list(end.operands))
    for op in (end, *reversed(kernels)):
        op.detach()
        op.erase()
    return [op.sym_name.data for op in made if isinstance(op, KernelOp)]
