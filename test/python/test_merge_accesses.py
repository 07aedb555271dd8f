"""Accesses that become vectors: memory is what it was, in whatever order threads load and store."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ir_programs import make_context, parse
from xdsl.dialects.builtin import ModuleOp

from deplo.dialects.kernel import VectorLoadOp, VectorStoreOp
from deplo.interpreter import execute
from deplo.passes.kernel.merge_accesses import MergeAccessesPass

TURNS = 2
SHAPES = [(8,), (2, 6), (2, 7)]
"""Of 7 elements in a row no two are a vector wherever the row begins."""

PROGRAM = """
kernel.func @k(%x: {type}, %y: {type}) blocks(1) threads(1) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turns = arith.constant {turns} : index
  %v0 = arith.constant 0.5 : f32
  {filled}
  scf.for %t = %c0 to %turns step %c1 {{
    {body}
  }}
}}
func.func @main(%x: {type}) -> {type} {{
  %y = kernel.alloc : {type}
  kernel.launch @k(%x, %y) blocks(1) threads(1) : {type}, {type}
  func.return %y : {type}
}}
"""

STRIDES = (0, 2)
"""How far a turn goes along a row; the same elements are accessed in the first turn."""

KINDS = ("load %x", "load %y", "store", "store", "store", "loop")

Step = tuple[str, int, int]

steps = st.tuples(st.sampled_from(KINDS), st.sampled_from(STRIDES), st.integers(0, 1))


def index(shape: tuple[int, ...], stride: int, first: int) -> str:
    """An element of the only row, or of the turn's."""
    inner = f"%t * {stride} + {first}"
    return inner if len(shape) == 1 else f"%t, {inner}"


def program(shape: tuple[int, ...], script: list[Step]) -> str:
    """A kernel of one thread that fills its result, and then does what the script says in each turn.

    Each store has a value of its own.
    """
    type = f"memref<{'x'.join(map(str, shape))}xf32>"
    places = [", ".join(map(str, place)) for place in np.ndindex(*shape)]
    filled = [f"loop.store %v0, %y[{place}] : {type}" for place in places]
    body = list[str]()
    for number, (kind, stride, first) in enumerate(script):
        place = index(shape, stride, first)
        value, new = f"%v{number}", f"%v{number + 1}"
        store = f"loop.store {new}, %y[{place}] : {type}"
        if kind.startswith("load"):
            body.append(f"%l{number} = loop.{kind}[{place}] : {type}")
            body.append(f"{new} = arith.addf {value}, %l{number} : f32")
            continue
        body.append(f"{new} = arith.addf {value}, %v0 : f32")
        body.append(f"scf.for %i = %c0 to %c1 step %c1 {{ {store} }}" if kind == "loop" else store)
    lines = {"filled": "\n  ".join(filled), "body": "\n    ".join(body)}
    return PROGRAM.format(type=type, turns=TURNS, **lines)


def merged(text: str) -> ModuleOp:
    """The program, with its accesses merged."""
    module = parse(text)
    MergeAccessesPass().apply(make_context(), module)
    module.verify()
    return module


def vectors(module: ModuleOp) -> list[int]:
    """How many elements each vector of a program has."""
    found = [op for op in module.walk() if isinstance(op, VectorLoadOp | VectorStoreOp)]
    return [len(op.values) for op in found]


@given(st.sampled_from(SHAPES), st.lists(steps, min_size=3, max_size=8))
def test_what_is_stored_does_not_change(shape: tuple[int, ...], script: list[Step]) -> None:
    text = program(shape, script)
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (expected,) = execute(parse(text), [values])
    (actual,) = execute(merged(text), [values])
    np.testing.assert_array_equal(actual, expected)


def test_neighbours_become_vectors() -> None:
    """So the test above has something to find."""
    pair = [("load %x", 2, 0), ("load %x", 2, 1)]
    assert vectors(merged(program((8,), []))) == [4, 4]
    assert vectors(merged(program((8,), pair))) == [4, 4, 2]
    assert vectors(merged(program((2, 6), []))) == [4, 2, 2, 2, 2]
    assert vectors(merged(program((2, 6), pair))) == [4, 2, 2, 2, 2, 2]


def test_rows_of_odd_length_have_vectors_only_where_it_is_known_which_row_it_is() -> None:
    """The first one begins at 0, the second at 7."""
    pair = [("load %x", 2, 0), ("load %x", 2, 1)]
    assert vectors(merged(program((2, 7), []))) == [4, 2]
    assert vectors(merged(program((2, 7), pair))) == [4, 2]
