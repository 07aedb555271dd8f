"""Reproducers of wrong results, of internal errors, and `deplo doctor`."""

import json
import re
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from deplo.errors import DeploError, MismatchError
from deplo.tools import commands as command
from deplo.tools import reducer
from deplo.tools.check_each_pass import PassChecker
from deplo.tools.instrumentation import run_passes
from deplo.tools.reproducer import (
    Reproducer,
    load_reproducer,
    of_mismatch,
    read_reproducer,
    write_directory,
)

PROGRAM = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = tensor_ir.elementwise mul(%a, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = tensor_ir.elementwise sub(%b, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = tensor_ir.elementwise neg(%c) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d, %b : tensor<4xf32>, tensor<4xf32>
}
"""


@dataclass(frozen=True)
class SwapSubtraction(ModulePass):
    """Takes a - b for b - a, which it must not."""

    name = "swap-subtraction"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "tensor_ir.elementwise" and len(each.operands) == 2:
                each.operands = each.operands[::-1]


@dataclass(frozen=True)
class Stumble(ModulePass):
    """Fails on every negation."""

    name = "stumble"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any("neg" in str(each) for each in op.walk() if not isinstance(each, ModuleOp)):
            raise KeyError("neg")


@pytest.fixture(autouse=True)
def passes(monkeypatch):
    """The wrong passes are known by name, as any other."""
    known = reducer.get_all_available_passes()
    extra = {"swap-subtraction": lambda: SwapSubtraction, "stumble": lambda: Stumble}
    monkeypatch.setattr(reducer, "get_all_available_passes", lambda: {**known, **extra})


def mismatch() -> MismatchError:
    checker = PassChecker(lambda line: None)
    with pytest.raises(MismatchError, match="after pass 'swap-subtraction'") as caught:
        run_passes(Context(), reducer.parse(PROGRAM), [SwapSubtraction()], [checker])
    return caught.value


def test_a_wrong_result_is_reduced_to_what_is_wrong(tmp_path):
    error = mismatch()
    directory = write_directory(of_mismatch(error), error, tmp_path)
    reproducer = load_reproducer(directory)
    assert reproducer.check
    assert reproducer.pipeline == "builtin.module(swap-subtraction)"
    assert "Traceback" in (directory / "traceback.txt").read_text()
    assert [p.name for p in tmp_path.iterdir()] == [directory.name]
    reduction = reducer.reduce(reproducer, seconds=60)
    (only,) = (op for op in reduction.program.walk() if op.name.startswith("tensor_ir"))
    assert "sub" in str(only)
    assert reducer.failure_of(reduction.program, reduction.passes, check=True) == reduction.failure
    again = read_reproducer(reduction.reproducer.text, "again")
    assert reducer.reduce(again, seconds=60).reproducer.text == again.text


def test_an_internal_error_is_reduced_past_the_passes_before_it():
    pipeline = "builtin.module(canonicalize,cse,stumble,canonicalize)"
    reduction = reducer.reduce(Reproducer(PROGRAM, pipeline), seconds=60)
    assert reduction.reproducer.pipeline == "builtin.module(stumble)"
    assert str(reduction.failure) == "KeyError in pass 'stumble'"
    assert len([op for op in reduction.program.walk() if op.name.startswith("tensor_ir")]) == 1
    (main,) = (op for op in reduction.program.ops if isinstance(op, func.FuncOp))
    assert len(main.body.block.args) == 1


def test_no_time_leaves_the_program_as_it_is():
    reduction = reducer.reduce(Reproducer(PROGRAM, "builtin.module(stumble)"), seconds=0)
    assert str(reduction.program) == str(reducer.parse(PROGRAM))


def test_what_does_not_fail_is_not_reduced():
    with pytest.raises(DeploError, match="does not fail"):
        reducer.reduce(Reproducer(PROGRAM, "builtin.module(cse)"), seconds=1)


def test_a_mismatch_on_the_command_line_leaves_a_reproducer(tmp_path, monkeypatch, capsys):
    def fails(options):
        raise mismatch()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.run_command, "main", fails)
    assert command.run(["run", "-c", "torch.ones(2)"]) == MismatchError.exit_code
    told = re.search(r"a reproducer is in (\S+)", capsys.readouterr().err)
    assert told is not None
    (directory,) = tmp_path.iterdir()
    assert str(directory) == told[1]
    assert load_reproducer(directory).program.count("tensor_ir.elementwise") == 4


def test_doctor(capsys):
    assert command.run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if not line.startswith(" ")] == [
        "python",
        "torch",
        "cpu",
        "nvrtc",
        "gpu",
        "models",
        "cache",
    ]
    assert command.run(["doctor", "--json"]) == 0
    found = {each["what"]: each["state"] for each in json.loads(capsys.readouterr().out)}
    assert found["cpu"] == found["torch"] == "ok"


def test_doctor_says_what_is_broken(monkeypatch, capsys):
    wrong = command.doctor_command.ADD_ONE.replace(
        "fadd float %value, 1.0", "fadd float %value, 2.0"
    )
    monkeypatch.setattr(command.doctor_command, "ADD_ONE", wrong)
    assert command.run(["doctor"]) == 4
    assert "broken   cpu       41 + 1 is 43.0 in compiled code" in capsys.readouterr().out
