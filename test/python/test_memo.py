"""A kernel runs once on the same arrays, whatever its name is and however often the program runs."""

import importlib

import numpy as np
import pytest
from ir_programs import parse

from deplo.interpreter import History, access_rows, execute

X = np.arange(1, 9, dtype=np.float32)
FIRST = "%r = arith.addf %v, %v : f32"
TWICE = "%c = arith.constant 2.0 : f32 %r = arith.mulf %v, %c : f32"
SQUARE = "%r = arith.mulf %v, %v : f32"
NEGATE = "%r = arith.negf %v : f32"


def loops(first: str, second: str, name: str = "k") -> str:
    """A program of two kernels, each a function of every element of what is before it."""

    def kernel(result: str, argument: str, body: str) -> str:
        return f"""
        {result} = loop.kernel @{name}_{result[1:]}({argument}) : (tensor<8xf32>) -> tensor<8xf32> {{
        ^bb0(%a: memref<8xf32>, %b: memref<8xf32>):
          loop.for %i = 0 to 8 {{
            %v = loop.load %a[%i] : memref<8xf32>
            {body}
            loop.store %r, %b[%i] : memref<8xf32>
          }}
        }}"""

    return f"""
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
      {kernel("%y", "%x", first)}
      {kernel("%z", "%y", second)}
      func.return %z : tensor<8xf32>
    }}"""


def launches(body: str) -> str:
    """A program that launches a kernel on its input twice, then on what the kernel made of it."""
    return f"""
    kernel.func @k(%a: memref<8xf32>, %b: memref<8xf32>) blocks(2) threads(4) {{
      %block = kernel.block_id
      %t = kernel.thread_id
      %v = loop.load %a[%block * 4 + %t] : memref<8xf32>
      {body}
      loop.store %r, %b[%block * 4 + %t] : memref<8xf32>
    }}
    func.func @main(%x: memref<8xf32>) -> memref<8xf32> {{
      %y = kernel.alloc : memref<8xf32>
      kernel.launch @k(%x, %y) blocks(2) threads(4) : memref<8xf32>, memref<8xf32>
      %z = kernel.alloc : memref<8xf32>
      kernel.launch @k(%x, %z) blocks(2) threads(4) : memref<8xf32>, memref<8xf32>
      kernel.launch @k(%y, %z) blocks(2) threads(4) : memref<8xf32>, memref<8xf32>
      func.return %z : memref<8xf32>
    }}"""


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are executed."""
    names: list[str] = []

    def spy(module: str, function: str) -> None:
        where = importlib.import_module(module)
        original = getattr(where, function)

        def run(kernel, *args):
            names.append(kernel.sym_name.data)
            return original(kernel, *args)

        monkeypatch.setattr(where, function, run)

    spy("deplo.interpreter.execute", "evaluate_kernel")
    spy("deplo.interpreter.launches", "_launch")
    return names


def test_a_program_that_runs_again_on_the_same_executes_no_kernel(executed: list[str]) -> None:
    history = History()
    for name in ("k", "renamed"):
        np.testing.assert_array_equal(
            execute(parse(loops(FIRST, SQUARE, name)), [X], history)[0], 4 * X * X
        )
    assert executed == ["k_y", "k_z"]
    np.testing.assert_array_equal(
        execute(parse(loops(FIRST, SQUARE)), [X + 1], history)[0], 4 * (X + 1) ** 2
    )
    assert executed == ["k_y", "k_z"] * 2


def test_only_a_kernel_that_changed_is_executed_where_it_computes_the_same(executed) -> None:
    history = History()
    execute(parse(loops(FIRST, SQUARE, "before")), [X], history)
    (result,) = execute(parse(loops(TWICE, SQUARE, "after")), [X], history)
    np.testing.assert_array_equal(result, 4 * X * X)
    assert executed == ["before_y", "before_z", "after_y"]


def test_what_reads_other_results_is_executed(executed: list[str]) -> None:
    history = History()
    execute(parse(loops(FIRST, SQUARE, "before")), [X], history)
    (result,) = execute(parse(loops(NEGATE, SQUARE, "after")), [X], history)
    np.testing.assert_array_equal(result, X * X)
    assert executed == ["before_y", "before_z", "after_y", "after_z"]


def test_another_last_kernel_gives_its_own_results(executed: list[str]) -> None:
    history = History()
    execute(parse(loops(FIRST, SQUARE)), [X], history)
    np.testing.assert_array_equal(execute(parse(loops(FIRST, NEGATE)), [X], history)[0], -2 * X)
    assert executed == ["k_y", "k_z", "k_z"]


def test_what_was_given_does_not_change_what_is_known() -> None:
    history = History()
    module = parse(loops(FIRST, NEGATE))
    (first,) = execute(module, [X], history)
    first[:] = 0
    np.testing.assert_array_equal(execute(module, [X], history)[0], -2 * X)


def test_a_kernel_is_launched_once_on_the_same_arrays(executed: list[str]) -> None:
    history = History()
    for _ in range(2):
        (result,) = execute(parse(launches(SQUARE)), [X], history)
        np.testing.assert_array_equal(result, X**4)
    assert executed == ["k", "k"]  # the first launch, which the second repeats, and the third


def test_accesses_are_counted_for_each_launch() -> None:
    rows = access_rows(parse(launches(SQUARE)), [X])
    assert [row.requests for row in rows] == [6, 6]
