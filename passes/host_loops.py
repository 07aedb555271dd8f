"""Scans on the host's side: a loop of launches, whose step writes its results to where they are to lie.

    func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ... %hs = tensor_ir.scan @step carried(%h0) slices(%xs) shared() : ... -> tensor<9x4xf32>

becomes

    func.func private @step(%h: memref<4xf32>, %x: memref<4xf32>, %y: memref<4xf32>) { ... }
    ... %hs = kernel.alloc : memref<9x4xf32>
        kernel.loop carried(%h = %h0) slices(%x = %xs) stacks(%y = %hs) : ... {
          func.call @step(%h, %x, %y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
        }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from ..dialects.kernel import AllocOp, LoopOp
from ..dialects.tensor_ir_scan import ScanOp
from ..errors import DeploError


def loop_of(op: ScanOp, stacks: Sequence[SSAValue]) -> LoopOp:
    """The loop that fills `stacks`, the buffers of the results, and calls the function of the step."""
    loop = LoopOp([op.carried, op.slices, stacks], reversed=op.reversed is not None)
    block = loop.body.block
    for argument, value in zip(block.args, (*op.carried, *op.slices, *stacks), strict=True):
        argument.name_hint = value.name_hint
    inputs = len(op.carried) + len(op.slices)
    arguments = [*block.args[:inputs], *op.shared, *block.args[inputs:]]
    call = func.CallOp(op.step, arguments, [])
    call.location = loop.location = op.location
    Builder(InsertPoint.at_end(block)).insert(call)
    return loop


def take_results(step: func.FuncOp) -> None:
    """Let a host function take the buffers of its results as its last arguments.

    Raises DeploError if a result is no buffer that it makes itself.
    """
    block = step.body.block
    returned = block.last_op
    assert isinstance(returned, func.ReturnOp)
    for value in list(returned.arguments):
        if not isinstance(value.owner, AllocOp):
            raise DeploError(f"@{step.sym_name.data}, which a scan runs, gives what it does not compute")
        argument = block.insert_arg(value.type, len(block.args))
        argument.name_hint = value.name_hint
        value.replace_all_uses_with(argument)
        value.owner.detach()
        value.owner.erase()
    returned.operands = ()
    step.function_type = FunctionType.from_lists(list(block.arg_types), [])
