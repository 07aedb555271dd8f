"""A sample of a launch's blocks: what is executed, what is filled in, and what is found all the same."""

import re

import numpy as np
import pytest
from ir_programs import TILE_PROGRAMS, parse
from test_mutants import CAUGHT, MUTANTS, check, mutated_pass

from deplo.interpreter import History, NotExecutable, ProgramError, execute, launches, random_inputs
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass
from deplo.passes.kernel.materialize_tile import MaterializeTilePass
from deplo.program_stages import make_context

BLOCKS, THREADS = 8, 4
X = np.arange(BLOCKS * THREADS, dtype=np.float32)


def program(body: str, blocks: int = BLOCKS) -> str:
    """A program whose kernel runs `body`, `%v` being the thread's own element of 32."""
    return f"""
kernel.func @k(%x: memref<32xf32>, %y: memref<32xf32>) blocks({blocks}) threads({THREADS}) {{
  %b = kernel.block_id
  %t = kernel.thread_id
  %v = loop.load %x[%b * 4 + %t] : memref<32xf32>
  {body}
}}
func.func @main(%x: memref<32xf32>) -> memref<32xf32> {{
  %y = kernel.alloc : memref<32xf32>
  kernel.launch @k(%x, %y) blocks({blocks}) threads({THREADS}) : memref<32xf32>, memref<32xf32>
  func.return %y : memref<32xf32>
}}"""


NEGATE = """
%n = arith.negf %v : f32
loop.store %n, %y[%b * 4 + %t] : memref<32xf32>
"""


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch of more than two blocks executes its first and its last."""
    monkeypatch.setattr(launches, "BUDGET", 1)


def run(text: str, history: History, level: str = "kernel") -> np.ndarray:
    module = parse(text)
    if level == "cuda":
        LowerToCudaPass().apply(make_context(), module)
    return execute(module, [X], history)[0]


def test_a_sample_has_the_first_block_the_last_and_no_block_twice() -> None:
    for count in (2, 3, 50, 999, 1000):
        blocks = launches.sample(1000, count)
        assert len(set(blocks.tolist())) == count
        assert (blocks[0], blocks[-1]) == (0, 999)
    np.testing.assert_array_equal(launches.sample(1000, 50), launches.sample(1000, 50))


# --------------------------------------------------------------------------- filling


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.usefixtures("two_blocks")
def test_only_what_no_executed_block_stores_is_filled_in(level: str) -> None:
    expected = -X
    expected[4:28] = 1000 + np.arange(24)  # what no block computes shows where it comes from
    history = History(kernels=[[expected]])
    np.testing.assert_array_equal(run(program(NEGATE), history, level), expected)
    assert history.remarks == ["kernel k: 2 of 8 blocks executed (seed 0)"]


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("element", [0, 3, 28, 31])
@pytest.mark.usefixtures("two_blocks")
def test_what_an_executed_block_stores_is_compared(element: int, level: str) -> None:
    expected = -X
    expected[element] += 1
    message = rf"kernel k: output 0: 1 of 32 elements differ; the first at \[{element}\]"
    with pytest.raises(ProgramError, match=message):
        run(program(NEGATE), History(kernels=[[expected]]), level)


def test_a_small_launch_is_executed_in_full() -> None:
    history = History(kernels=[[np.zeros(32, np.float32)]])
    np.testing.assert_array_equal(run(program(NEGATE), history), -X)
    assert history.remarks == []


@pytest.mark.usefixtures("two_blocks")
def test_a_launch_of_which_nothing_is_known_is_executed_in_full() -> None:
    np.testing.assert_array_equal(run(program(NEGATE), History()), -X)


@pytest.mark.usefixtures("two_blocks")
def test_launches_after_a_sampled_one_find_their_inputs_complete() -> None:
    module = parse(TILE_PROGRAMS["chain"])
    lowered = module.clone()
    MaterializeTilePass().apply(make_context(), lowered)
    history = History()
    for inputs in random_inputs(module):
        (expected,) = execute(module, inputs, history)
        np.testing.assert_array_equal(execute(lowered, inputs, history)[0], expected)
        assert len(history.remarks) == 5


# --------------------------------------------------------------------------- what is found

FAULTS = {
    "two blocks that are not executed write one element": (
        "loop.store %v, %y[%b * 4 - %b floordiv 4 * 4 + %b floordiv 5 * 4 + %t] : memref<32xf32>",
        "races: two threads write one element of y",
    ),
    "a block that is not executed stores out of bounds": (
        "loop.store %v, %y[%b * 4 + %b floordiv 4 * 32 - %b floordiv 5 * 32 + %t] : memref<32xf32>",
        "out of bounds: index 48..51",
    ),
    "no block stores some elements": (
        "%in = loop.test[(%b * 4 + %t + 1) mod 14 >= 1]\nscf.if %in {" + NEGATE + "}",
        "kernel k: no block stores 2 elements of y",
    ),
    "an executed block reads out of bounds": (
        "%w = loop.load %x[%b * 4 + %t + 1] : memref<32xf32>" + NEGATE,
        "out of bounds: index 32..32",
    ),
}


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("two_blocks")
def test_a_fault_is_found_in_a_sampled_launch(fault: str, level: str) -> None:
    body, message = FAULTS[fault]
    with pytest.raises(ProgramError, match=message):
        run(program(body), History(kernels=[[-X]]), level)


NOT_SAMPLED = {
    "where it stores depends on data": (
        "%i = arith.fptosi %v : f32 to i64\n%at = arith.index_cast %i : i64 to index\n"
        "loop.store %v, %y[%at] : memref<32xf32>",
        History(kernels=[[-X]]),
        "where kernel k stores depends on what it computes",
    ),
    "another output": (NEGATE, History(kernels=[[-X[:30]]]), "kernel k has other outputs"),
    "more outputs": (NEGATE, History(kernels=[[-X, -X]]), "kernel k has other outputs"),
    "more kernels": (NEGATE, History(kernels=[[-X], [-X]]), "1 launches of 2 kernels"),
}


@pytest.mark.parametrize("reason", NOT_SAMPLED)
@pytest.mark.usefixtures("two_blocks")
def test_a_launch_that_cannot_be_sampled_is_not_executed(reason: str) -> None:
    body, history, message = NOT_SAMPLED[reason]
    with pytest.raises(NotExecutable, match=message):
        run(program(body), history)


@pytest.mark.usefixtures("two_blocks")
def test_where_the_program_failed_before_it_fails_again() -> None:
    module = parse(TILE_PROGRAMS["chain"])
    lowered = module.clone()
    MaterializeTilePass().apply(make_context(), lowered)
    history = History(kernels=[], failure=ProgramError("index out of range"))
    history.kernels = [[np.zeros(50, np.float32)]]
    inputs = [np.zeros(64, np.float32)]
    with pytest.raises(ProgramError, match="index out of range"):
        execute(lowered, inputs, history)


# --------------------------------------------------------------------------- mutants

PRODUCT_BLOCKS = 72
SAMPLED_MUTANTS = (
    "block axes swapped",
    "loop one iteration short",
    "strides swapped",
    "one block fewer",
)


@pytest.fixture
def some_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """About twelve of the blocks of the program `matrix_product` are executed."""
    monkeypatch.setattr(launches, "BUDGET", 120_000)


@pytest.mark.parametrize("name", SAMPLED_MUTANTS)
@pytest.mark.usefixtures("some_blocks")
def test_a_mutant_is_caught_by_a_sample(name: str) -> None:
    with pytest.raises(CAUGHT):
        check("matrix_product", "sm_90a", mutated_pass(MUTANTS[name]))


@pytest.mark.usefixtures("some_blocks")
def test_the_passes_themselves_are_not_accused_by_a_sample() -> None:
    told: list[str] = []
    check("matrix_product", "sm_90a", None, told.append)
    sizes = [re.search(r"kernel k: (\d+) of (\d+) blocks executed \(seed 0\)$", t) for t in told]
    assert [t.split(": ")[1] for t in told] == [
        "after materialize-tile",
        "after lower-to-cuda",
    ]
    for size in sizes:
        assert size is not None
        assert 5 < int(size[1]) < int(size[2]) == PRODUCT_BLOCKS


@pytest.mark.parametrize("name", ["rms_norm", "primes", "layer_norm_bf16", "longer_than_a_block"])
@pytest.mark.usefixtures("two_blocks")
def test_programs_from_torch_are_not_accused_by_a_sample(name: str) -> None:
    told: list[str] = []
    check(name, "sm_90a", None, told.append)
    assert any("2 of" in line for line in told)
