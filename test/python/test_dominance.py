"""The dominance check: what it accepts, what it refuses, and that its time is linear."""

import sys

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import Builtin

from deplo.analysis.dominance import DominanceError, check_dominance
from deplo.tools.located_parser import LocatedParser


def parse(text):
    ctx = Context()
    for dialect in (Builtin, arith.Arith, cf.Cf, func.Func, scf.Scf):
        ctx.load_dialect(dialect)
    return LocatedParser(ctx, text, "program.mlir").parse_module()


def test_body_of_an_isolated_op_sees_nothing_from_above():
    module = parse(
        """
        %outer = arith.constant 1 : i32
        func.func @f() {
          %0 = arith.addi %outer, %outer : i32
          func.return
        }"""
    )
    with pytest.raises(DominanceError, match=r"outside 'func\.func', whose body cannot see it"):
        check_dominance(module)


def test_value_does_not_leave_its_region():
    module = parse(
        """
        func.func @f(%c: i1, %x: i32) -> i32 {
          scf.if %c {
            %inner = arith.addi %x, %x : i32
          }
          %y = arith.addi %x, %x : i32
          func.return %y : i32
        }"""
    )
    main = module.body.block.first_op
    branch = main.body.block.first_op
    inner = branch.regions[0].block.first_op.results[0]
    main.body.block.last_op.operands[0] = inner
    with pytest.raises(
        DominanceError, match=r"operand #0 \(%inner\) is defined in a region"
    ) as caught:
        check_dominance(module)
    assert caught.value.op is main.body.block.last_op


def ladder(rungs):
    """A function of many blocks, each joined from two, that uses values of far blocks."""
    lines = ["func.func @f(%c: i1, %x: i32) -> i32 {", "  cf.br ^a0"]
    for i in range(rungs):
        lines += [
            f"^a{i}:",
            f"  %v{i} = arith.addi %{'x' if i == 0 else f'v{i - 1}'}, %x : i32",
            f"  cf.cond_br %c, ^b{i}, ^a{i + 1}",
            f"^b{i}:",
            f"  %w{i} = arith.addi %v{i}, %x : i32",
            f"  cf.br ^a{i + 1}",
        ]
    return "\n".join([*lines, f"^a{rungs}:", "  func.return %v0 : i32", "}"])


def lines_run(function, *arguments):
    """How many lines of Python a call runs: its time, whatever else the machine does."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


def test_many_blocks_take_time_in_proportion():
    few, many = (lines_run(check_dominance, parse(ladder(rungs))) for rungs in (250, 1000))
    assert 3.5 * few < many < 4.5 * few
