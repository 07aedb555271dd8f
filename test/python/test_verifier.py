"""A module that passes have left as it was is not verified again; whatever they change is seen."""

from collections.abc import Callable

import pytest
from ir_programs import parse
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32, f64, i32
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from deplo.analysis import verify
from deplo.analysis.verify import Verifier
from deplo.dialects.inside import ops_in

PROGRAM = """
func.func @f(%x: f32, %y: f32) -> f32 {
  %c = arith.constant 1.0 : f32
  %a = arith.addf %x, %c : f32
  %t = arith.cmpf olt, %a, %y : f32
  %s = scf.if %t -> (f32) {
    %m = arith.mulf %a, %y : f32
    scf.yield %m : f32
  } else {
    scf.yield %a : f32
  }
  func.return %s : f32
}
"""


def _find(module: ModuleOp, name: str) -> Operation:
    return next(op for op in ops_in(module) if op.name == name)


def _operand(module: ModuleOp) -> None:
    _find(module, "arith.addf").operands[0] = _find(module, "arith.mulf").results[0]


def _order(module: ModuleOp) -> None:
    constant = _find(module, "arith.constant")
    constant.detach()
    Rewriter.insert_op(constant, InsertPoint.after(_find(module, "arith.addf")))


def _result_type(module: ModuleOp) -> None:
    Rewriter.replace_value_with_new_type(_find(module, "arith.mulf").results[0], f64)


def _argument_type(module: ModuleOp) -> None:
    block = _find(module, "func.func").regions[0].block
    Rewriter.replace_value_with_new_type(block.args[0], f64)


def _property(module: ModuleOp) -> None:
    _find(module, "arith.constant").properties["value"] = FloatAttr(1.0, f64)


def _missing_property(module: ModuleOp) -> None:
    del _find(module, "arith.cmpf").properties["predicate"]


def _terminator(module: ModuleOp) -> None:
    end = _find(module, "func.return")
    end.detach()
    end.erase()


def _new_op(module: ModuleOp) -> None:
    a = _find(module, "arith.addf").results[0]
    Rewriter.insert_op(arith.SubiOp(a, a, i32), InsertPoint.before(_find(module, "func.return")))


def _region(module: ModuleOp) -> None:
    choice = _find(module, "scf.if")
    choice.add_region(choice.regions[1].clone())


CHANGES = [
    *(_operand, _order, _result_type, _argument_type, _property),
    *(_missing_property, _terminator, _new_op, _region),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__[1:])
def test_every_kind_of_change_is_seen(change: Callable[[ModuleOp], None]) -> None:
    module, verifier = parse(PROGRAM), Verifier()
    verifier.verify(module)
    change(module)
    with pytest.raises(VerifyException):
        verifier.verify(module)
    with pytest.raises(VerifyException):  # it is not taken for verified now
        verifier.verify(module)


def test_what_is_unchanged_is_verified_once(monkeypatch) -> None:
    verified: list[ModuleOp] = []
    whole = verify.verify_module
    monkeypatch.setattr(verify, "verify_module", lambda m: [verified.append(m), whole(m)])
    module, verifier = parse(PROGRAM), Verifier()
    for _ in range(3):
        verifier.verify(module)
    assert verified == [module]
    _find(module, "arith.addf").attributes["new"] = FloatAttr(1.0, f32)
    verifier.verify(module)
    verifier.verify(module)
    assert verified == [module] * 2
    other = parse(PROGRAM)
    verifier.verify(other)
    assert verified[2:] == [other]
