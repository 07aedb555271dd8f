"""`roll-registers` on random code: the same values, in kernels that load and store one memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ir_programs import parse
from xdsl.context import Context
from xdsl.passes import ModulePass

from deplo.interpreter import execute
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass
from deplo.passes.kernel.roll_registers import RollRegistersPass

THREADS, OWN = 32, 64
"""Threads of the block, and elements of the memory that each of them has."""
STEPS = 3
"""Steps of the loop around the statements."""


@st.composite
def statements(draw: st.DrawFn) -> list[str]:
    """Statements, each for some turns, one after the other or turn by turn."""
    turns, is_by_turn = draw(st.integers(4, 8)), draw(st.booleans())
    rows: list[list[str]] = []
    values = ["v0"]

    def place(turn: int) -> int:
        return (stride * turn + first) % OWN

    for number in range(draw(st.integers(1, 5))):
        stride, first = draw(st.sampled_from([1, 1, 2, 8, 0, -1, 5])), draw(st.integers(0, OWN - 1))
        kind = draw(st.sampled_from(["load", "load", "add", "mul", "store", "shuffle", "store"]))
        one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        turned, fixed = draw(st.booleans()), draw(st.integers(0, turns - 1))
        row: list[str] = []
        for turn in range(turns):
            a = f"%{one}_{turn}"
            elsewhere = turns - 1 - turn if turned else fixed if kind == "mul" else turn
            b = f"%{other}_{turn if is_by_turn else elsewhere}"
            match kind:
                case "load":
                    row.append(f"%w{number}_{turn} = loop.load %x[%t * {OWN} + {place(turn)}] : MEM")
                case "store":
                    row.append(f"loop.store {a}, %x[%t * {OWN} + {place(turn)}] : MEM")
                case "shuffle":
                    row.append(f"%w{number}_{turn} = kernel.shuffle {a} xor {1 << number} : f32")
                case _:
                    row.append(f"%w{number}_{turn} = arith.{kind}f {a}, {b} : f32")
        rows.append(row)
        if kind != "store":
            values.append(f"w{number}")
    last = values[-1]
    order = zip(*rows, strict=True) if is_by_turn else rows
    body = [line for group in order for line in group]
    f32s = ", ".join(["f32"] * turns)
    carried = ", ".join(f"%v0_{i} = %i{i}" for i in range(turns))
    return [
        *(f"%i{i} = loop.load %x[%t * {OWN} + {i * 3}] : MEM" for i in range(turns)),
        f"%r:{turns} = scf.for %k = %c0 to %c3 step %c1 iter_args({carried}) -> ({f32s}) {{",
        *body,
        *(f"%n{i} = arith.addf %{last}_{i}, %i{i} : f32" for i in range(turns)),
        f"scf.yield {', '.join(f'%n{i}' for i in range(turns))} : {f32s}",
        "}",
        *(f"loop.store %r#{i}, %x[%t * {OWN} + {i * 2}] : MEM" for i in range(turns)),
    ]


def source(body: list[str]) -> str:
    """A program that runs a body on one block, in place."""
    count = THREADS * OWN
    text = "\n".join(body).replace("MEM", f"memref<{count}xf32>")
    return f"""
kernel.func @k(%x: memref<{count}xf32>) blocks(1) threads({THREADS}) {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c3 = arith.constant {STEPS} : index
%t = kernel.thread_id
{text}
}}
func.func @main(%x: memref<{count}xf32>) -> memref<{count}xf32> {{
  kernel.launch @k(%x) blocks(1) threads({THREADS}) : memref<{count}xf32>
  func.return %x : memref<{count}xf32>
}}"""


@given(body=statements())
def test_rolled_code_computes_the_same_to_the_bit(body: list[str]) -> None:
    rng = np.random.default_rng(0)
    given = rng.integers(-4, 5, THREADS * OWN).astype(np.float32)

    def run(*passes: ModulePass) -> np.ndarray:
        module = parse(source(body))
        for each in passes:
            each.apply(Context(), module)
            module.verify()
        (result,) = execute(module, [given.copy()])
        return result

    expected = run()
    np.testing.assert_array_equal(run(RollRegistersPass()), expected)
    np.testing.assert_array_equal(run(RollRegistersPass(), LowerToCudaPass()), expected)
