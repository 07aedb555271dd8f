"""The pass checker blames the pass that changed what the program computes, and no other."""

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin
from xdsl.passes import ModulePass

from deplo.analysis.equivalence import equivalent
from deplo.dialects.tensor_ir import ElementwiseOp, TensorIR
from deplo.errors import MismatchError
from deplo.interpreter import NotExecutable, ProgramError, execute
from deplo.tools.check_each_pass import PassChecker
from deplo.tools.instrumentation import run_passes
from deplo.tools.located_parser import LocatedParser

PROGRAM = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %sum = tensor_ir.elementwise add(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %sum : tensor<4xf32>
}
"""


@dataclass(frozen=True)
class KeepPass(ModulePass):
    name = "keep"

    def apply(self, ctx, op):
        """Change nothing."""


@dataclass(frozen=True)
class ReturnTheInputPass(ModulePass):
    name = "return-the-input"

    def apply(self, ctx, op):
        main = next(each for each in op.ops if isinstance(each, func.FuncOp))
        main.body.block.last_op.operands[0] = main.body.block.args[0]


@dataclass(frozen=True)
class SwapOperandsPass(ModulePass):
    name = "swap-operands"

    def apply(self, ctx, op):
        """x + y becomes y + x."""
        for each in op.walk():
            if isinstance(each, ElementwiseOp):
                each.operands = each.operands[::-1]


def parse(text):
    ctx = Context()
    for dialect in (Builtin, func.Func, TensorIR):
        ctx.load_dialect(dialect)
    return ctx, LocatedParser(ctx, text, "program.mlir").parse_module()


@pytest.fixture
def module():
    return parse(PROGRAM)


def check(module, passes, **options):
    told = []
    checker = PassChecker(told.append, **options)
    run_passes(*module, passes, [checker])
    return checker, told


def test_passes_that_keep_the_meaning_are_checked(module):
    checker, told = check(module, [SwapOperandsPass(), SwapOperandsPass()])
    assert (checker.checked, checker.unchanged, told) == (2, 0, [])


def test_a_program_that_did_not_change_is_not_run_again(module):
    calls = []

    def count(program, inputs, history):
        calls.append(program)
        return execute(program, inputs, history)

    checker, told = check(module, [KeepPass(), SwapOperandsPass(), KeepPass()], execute=count)
    assert (checker.checked, checker.unchanged, told) == (3, 2, [])
    assert len(calls) == 2 * 2  # two input sets, before and after the swap


def test_a_change_of_the_type_of_a_value_is_a_change():
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %h = tensor_ir.cast %x : tensor<2xf32> to tensor<2xf16>
      %y = tensor_ir.cast %h : tensor<2xf16> to tensor<2xf32>
      func.return %y : tensor<2xf32>
    }"""
    assert not equivalent(parse(text)[1], parse(text.replace("f16", "bf16"))[1])
    assert equivalent(parse(text)[1], parse(text)[1])


def test_first_wrong_pass_is_named(module):
    with pytest.raises(MismatchError, match="after pass 'return-the-input'") as caught:
        check(module, [KeepPass(), ReturnTheInputPass(), KeepPass()])
    assert caught.value.exit_code == 3


def test_blame_spans_the_stages_that_cannot_run(module):
    calls = []

    def every_other_time(program, inputs, history):
        calls.append(program)
        if len(calls) == 2:
            raise NotExecutable("no such stage")
        return execute(program, inputs, history)

    inputs = [[np.arange(4, dtype=np.float32), np.ones(4, dtype=np.float32)]]
    with pytest.raises(MismatchError, match="after pass 'return-the-input' or 'keep'"):
        check(module, [ReturnTheInputPass(), KeepPass()], execute=every_other_time, inputs=inputs)


def test_a_stage_passed_over_is_told(module):
    def never(program, inputs, history):
        raise NotExecutable("no such stage")

    checker, told = check(module, [KeepPass()], execute=never)
    assert checker.checked == 0
    assert told[-1] == "check-each-pass: after keep: not executed: no such stage"


def test_a_program_that_starts_to_fail_is_a_mismatch(module):
    calls = []

    def fails_later(program, inputs, history):
        calls.append(program)
        if len(calls) > 2:
            raise ProgramError("index 7 is out of range")
        return execute(program, inputs, history)

    with pytest.raises(MismatchError, match="it fails: index 7 is out of range"):
        check(module, [ReturnTheInputPass()], execute=fails_later)


def test_the_driver_checks_each_pass(deplo_opt):
    done = deplo_opt("--check-each-pass", "-p", "cse,canonicalize", text=PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert "tensor_ir.elementwise add" in done.stdout
