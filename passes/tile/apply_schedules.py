"""`apply-schedules`: carries out the schedules that people gave, each on its kernel.

    loop.kernel @k(%x) ... attributes {schedule = "tileify,split{axis=j by=64},bind{axis=j_outer to=block}"}

or, as `deplo explain --schedule-only` prints it and `--schedule` takes it, a line for each kernel:

    k: tileify,split{axis=j by=64},bind{axis=j_outer to=block}

A schedule is a pipeline of primitives and of passes of `loop-to-tile`, and makes a launch. It is carried out
on its kernel alone, and on those that this one becomes. A step that is not legal is an error, which names it.
The launch has `schedule(#tile.schedule<given = 1>)` then: no pass of `loop-to-tile` adds anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ...analysis.launches import kernels_of, launches_of
from ...analysis.verify import verify_module
from ...dialects.loop import KernelOp
from ...dialects.schedule import ScheduleAttr, split_schedules
from ...errors import UsageError
from .. import get_all_passes
from ..decisions import record, recording
from ..pipeline_text import read_pipeline
from ..pipelines import order_of
from ..replacing import rename
from ..schedule.primitive import Primitive
from ..symbol_names import insert_kernel

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
        if unknown := [name for name in given if name not in kernels]:
            listed = f"there are {', '.join(kernels)}" if kernels else "there is none"
            raise UsageError(f"schedule: no kernel is named {unknown[0]}; {listed}")
        for name, kernel in kernels.items():
            attribute, location = kernel.attributes.pop(ATTRIBUTE, None), kernel.location
            if name not in given and attribute is None:
                record(self.name, name, False, "no schedule is given for it", location)
                continue
            try:
                steps = read_steps(given[name] if name in given else _text(attribute))
                made = schedule_kernel(ctx, kernel, steps)
            except UsageError as error:
                raise UsageError(f"schedule of {name}: {error}") from None
            names = tuple(each for each in made if each != name)
            record(self.name, name, True, "as its schedule says", location, names, steps)


def _text(attribute: Attribute | None) -> str:
    """The text of an attribute. Raises UsageError if it is none."""
    if not isinstance(attribute, StringAttr):
        raise UsageError(f"the attribute is a text of steps, not {attribute}")
    return attribute.data


def schedule_kernel(ctx: Context, kernel: KernelOp, steps: Sequence[ModulePass]) -> list[str]:
    """Carry steps out on a kernel alone; gives the names of the kernels that it became. Raises UsageError."""
    module = _alone(kernel)
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
    return _put_back(module, kernel)


def _alone(kernel: KernelOp) -> ModuleOp:
    """A module with a copy of one kernel, in a function in which sizes mean what they mean around it."""
    arguments = list(dict.fromkeys(kernel.operands))
    block = Block(arg_types=[value.type for value in arguments])
    for value, argument in zip(arguments, block.args, strict=True):
        argument.name_hint = value.name_hint
    copy = kernel.clone(dict(zip(arguments, block.args, strict=True)))
    block.add_ops([copy, func.ReturnOp(*copy.outputs)])
    types = [argument.type for argument in block.args], list(copy.outputs.types)
    function = func.FuncOp("main", types, Region(block))
    if isinstance(around := kernel.parent_op(), func.FuncOp):
        function.attributes |= around.attributes
    return ModuleOp([function])


def _put_back(module: ModuleOp, kernel: KernelOp) -> list[str]:
    """Put what stands in a module in the place of a kernel; gives the names of the kernels."""
    block = next(op for op in module.ops if isinstance(op, func.FuncOp)).body.block
    for value, argument in zip(dict.fromkeys(kernel.operands), block.args, strict=True):
        argument.replace_all_uses_with(value)
    *made, end = block.ops
    kernel.sym_name = StringAttr("")  # the name is free
    for op in made:
        op.detach()
        if isinstance(op, KernelOp):
            insert_kernel(op, kernel)
        else:
            assert kernel.parent is not None
            kernel.parent.insert_op_before(op, kernel)
    rename(kernel.outputs, list(end.operands))
    for op in (end, kernel):
        op.detach()
        op.erase()
    return [op.sym_name.data for op in made if isinstance(op, KernelOp)]
