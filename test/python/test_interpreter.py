"""What the interpreters of tensor, loop and tile IR compute, and the faults they report."""

import re
from fractions import Fraction

import numpy as np
import pytest
from ir_programs import TILE_PROGRAMS, kernel, parse
from xdsl.dialects.builtin import bf16, f16, f32, i8, i32, i64

from deplo.interpreter import (
    ProgramError,
    compare,
    execute,
    loop_lanes,
    random_inputs,
    round_to_bfloat16,
)
from deplo.interpreter.numpy_types import convert, float_to_integer
from deplo.interpreter.scalar_ops import fma
from deplo.passes.kernel.materialize_tile import MaterializeTilePass
from deplo.program_stages import make_context


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    return execute(parse(text), inputs)


def loops(body: str, source: str = "4x8xf32", result: str = "4xf32") -> str:
    return f"""
func.func @main(%x: tensor<{source}>) -> tensor<{result}> {{
  %y = loop.kernel @k(%x) : (tensor<{source}>) -> tensor<{result}> {{
  ^bb0(%in: memref<{source}>, %out: memref<{result}>):
    {body}
  }}
  func.return %y : tensor<{result}>
}}"""


X = np.arange(32, dtype=np.float32).reshape(4, 8)

ROW_SUMS = loops("""
loop.for %i = 0 to 4 {
  %s = loop.for %j = 0 to 8 reduce(add) -> f32 {
    %v = loop.load %in[%i, %j] : memref<4x8xf32>
    loop.yield %v : f32
  }
  loop.store %s, %out[%i] : memref<4xf32>
}""")

# --------------------------------------------------------------------------- numbers


def test_bfloat16_rounds_to_nearest_and_ties_to_even() -> None:
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.3895e38, np.nan, -0.0])
    rounded = round_to_bfloat16(ties.astype(np.float32))
    np.testing.assert_array_equal(rounded[:3], [1.0, 1 + 2**-6, 1 + 2**-7])
    assert np.isinf(round_to_bfloat16(np.float32([3.4e38]))[0])
    assert np.isnan(rounded[4])
    assert np.signbit(rounded[5])


def test_float64_is_rounded_to_bfloat16_once() -> None:
    just_above_a_tie = np.array([1 + 2**-8 + 2**-40])
    assert round_to_bfloat16(just_above_a_tie)[0] == np.float32(1 + 2**-7)


def test_a_program_in_bfloat16_agrees_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(1000) * torch.tensor([1e-38, 1.0, 1e30]).repeat(1000)[:1000]
    np.testing.assert_array_equal(convert(x.numpy(), bf16), x.bfloat16().float().numpy())
    np.testing.assert_array_equal(convert(x.numpy(), f16), x.half().numpy())


def test_floats_become_integers_as_in_pytorch() -> None:
    values = np.array([2.9, -2.9, 300.0, np.nan, np.inf, 3e9], np.float32)
    assert float_to_integer(values, np.dtype(np.int32)).tolist() == [2, -2, 300, *[-(2**31)] * 3]
    assert convert(values[:3], i8).tolist() == [2, -2, 44]
    assert convert(np.array([2**31, -1]), i32).tolist() == [-(2**31), -1]
    assert convert(np.array([True, False]), i64).tolist() == [1, 0]


# --------------------------------------------------------------------------- judging


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(3, np.float32), r"shape \(3,\) instead of \(4,\)"),
        (np.ones(4, np.float64), "dtype float64 instead of float32"),
        (np.array([1, 1, 1.1, 1], np.float32), r"1 of 4 elements differ; the first at \[2\]"),
        (np.array([1, np.nan, 1, 1], np.float32), "1 of 4 elements differ"),
        (np.array([1, np.inf, 1, 1], np.float32), "1 of 4 elements differ"),
        (np.zeros(4, np.float32), "4 of 4 elements differ"),
    ],
)
def test_a_wrong_result_is_described(wrong: np.ndarray, message: str) -> None:
    problem = compare(np.ones(4, np.float32), wrong, f32)
    assert problem is not None
    assert re.search(message, problem)


def test_equal_infinities_and_nans_agree() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert compare(odd, odd.copy(), f32) is None
    assert compare(odd, -odd, f32) is not None


def test_random_inputs_are_repeatable_and_adversarial() -> None:
    module = parse(ROW_SUMS.replace("4x8", "40x80").replace("0 to 4 ", "0 to 40 ", 1))
    first, again = random_inputs(module, 3), random_inputs(module, 3)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(first[0][0]).all()
    values = np.abs(first[1][0])
    assert (~np.isfinite(values) | np.isin(values, np.float32([0, 100, 1e-40, 1e-4]))).any()


# --------------------------------------------------------------------------- tensor IR


def test_an_index_map_out_of_bounds_is_reported() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tensor_ir.index_map (i) -> %x[i + 1] : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }"""
    with pytest.raises(ProgramError, match=r"reads index 1\.\.4 of axis 0, whose extent is 4"):
        run(text, X[0, :4])


def test_the_first_source_whose_condition_holds_is_read() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>) -> tensor<6xf32> {
      %y = tensor_ir.index_map (i) -> %a[i] if i < 2 else %a[i - 1] if i < 4 else 7.0
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<6xf32>
      func.return %y : tensor<6xf32>
    }"""
    assert run(text, X[0, :4])[0].tolist() == [0, 1, 1, 2, 7, 7]


@pytest.mark.parametrize("function", ["floordiv", "truncdiv", "remainder", "fmod"])
def test_division_of_integers_by_zero_is_the_programs_fault(function: str) -> None:
    text = f"""
    func.func @main(%a: tensor<2xi64>, %b: tensor<2xi64>) -> tensor<2xi64> {{
      %y = tensor_ir.elementwise {function}(%a, %b) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      func.return %y : tensor<2xi64>
    }}"""
    with pytest.raises(ProgramError, match="division by zero"):
        run(text, np.array([1, 2]), np.array([1, 0]))
    python = {"floordiv": -4, "truncdiv": -3, "remainder": 1, "fmod": -1}[function]
    assert run(text, np.array([-7, 7]), np.array([2, 7]))[0][0] == python


def test_a_multiply_add_of_f64_is_exact_where_that_fits() -> None:
    random = np.random.default_rng(0)
    divisor = random.standard_normal(500).astype(np.float32) * 2.0 ** random.integers(
        -300, 300, 500
    )
    value = divisor * random.random(500) * 2.0 ** random.integers(0, 50, 500)
    quotient = np.rint(value / divisor)
    rest = fma(-quotient, divisor, value)
    v, q, d = ([Fraction(x) for x in each] for each in (value, quotient, divisor))
    exact = [a - b * c for a, b, c in zip(v, q, d, strict=True)]
    assert [Fraction(r) for r in rest] == [Fraction(float(e)) for e in exact]


def test_a_multiply_add_of_f64_of_what_is_not_finite_or_zero() -> None:
    a, b, c = np.array([[np.inf, 1, 2], [1, 0, np.inf], [0.0, -0.0, -0.0], [0, np.inf, 1]]).T
    with np.errstate(invalid="ignore"):
        rest = fma(a, b, c)
    np.testing.assert_array_equal(rest, [np.inf, np.inf, -0.0, np.nan])
    assert np.signbit(rest[2])


# --------------------------------------------------------------------------- loop IR


def test_a_nest_folds_its_rows() -> None:
    np.testing.assert_array_equal(run(ROW_SUMS, X)[0], X.sum(1))


@pytest.mark.parametrize("lanes", [1, 3, 8, 20])
def test_large_nests_are_cut_into_slices(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(ROW_SUMS, X)[0]
    monkeypatch.setattr(loop_lanes, "MAX_LANES", lanes)
    np.testing.assert_array_equal(run(ROW_SUMS, X)[0], expected)


@pytest.mark.parametrize("name", TILE_PROGRAMS)
def test_slices_of_a_launch_compute_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse(TILE_PROGRAMS[name])
    inputs = random_inputs(module)[0]
    expected = execute(module, inputs)[0]
    monkeypatch.setattr(loop_lanes, "MAX_LANES", 64)
    assert compare(expected, execute(module, inputs)[0]) is None


@pytest.mark.parametrize(("index", "times"), [("0", r"\[0, 4\]"), ("%i floordiv 2", r"\[0, 2\]")])
def test_every_element_is_stored_exactly_once(index: str, times: str) -> None:
    text = loops(f"""
loop.for %i = 0 to 4 {{
  %v = loop.load %in[%i, 0] : memref<4x8xf32>
  loop.store %v, %out[{index}] : memref<4xf32>
}}""")
    with pytest.raises(ProgramError, match=f"@k: elements of output #0 are stored {times} times"):
        run(text, X)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ("%v = loop.load %in[%i + 1, 0]", r"'loop.load' out of bounds: index 4\.\.4 of axis 0"),
        ("%v = loop.load %in[%i, %i - 1]", r"'loop.load' out of bounds: index -1\.\.-1 of axis 1"),
    ],
)
def test_an_access_out_of_bounds_is_reported_with_its_place(access: str, message: str) -> None:
    text = loops(f"""
loop.for %i = 0 to 4 {{
  {access} : memref<4x8xf32>
  loop.store %v, %out[%i] : memref<4xf32>
}}""")
    with pytest.raises(ProgramError, match=message) as caught:
        run(text, X)
    assert "program.mlir" in str(caught.value)


def test_a_guarded_access_may_be_out_of_bounds_elsewhere() -> None:
    text = loops("""
loop.for %i = 0 to 4 {
  %in_range = loop.test[%i < 3]
  %w = scf.if %in_range -> (f32) {
    %v = loop.load %in[%i + 1, 0] : memref<4x8xf32>
    scf.yield %v : f32
  } else {
    %z = arith.constant -1.0 : f32
    scf.yield %z : f32
  }
  loop.store %w, %out[%i] : memref<4xf32>
}""")
    assert run(text, X)[0].tolist() == [8, 16, 24, -1]


@pytest.mark.parametrize(
    ("combiner", "empty"), [("add", 0.0), ("mul", 1.0), ("max", -np.inf), ("min", np.inf)]
)
def test_a_loop_that_never_runs_gives_the_identity(combiner: str, empty: float) -> None:
    text = loops(
        f"""
%s = loop.for %j = 0 to 0 reduce({combiner}) -> f32 {{
  %v = loop.load %in[%j] : memref<0xf32>
  loop.yield %v : f32
}}
loop.store %s, %out[] : memref<f32>""",
        "0xf32",
        "f32",
    )
    assert run(text, np.zeros(0, np.float32))[0] == empty


# --------------------------------------------------------------------------- tile IR

ROWS = np.arange(3 * 64, dtype=np.float32).reshape(3, 64)


def test_a_combine_folds_its_axis_and_keeps_it() -> None:
    (y,) = run(TILE_PROGRAMS["combined"], ROWS)
    np.testing.assert_array_equal(y, np.repeat(ROWS.sum(1, keepdims=True), 64, 1))


def test_a_combine_folds_one_of_two_axes() -> None:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    (y,) = run(TILE_PROGRAMS["grouped"], x)
    np.testing.assert_array_equal(y, np.repeat(x.min(1, keepdims=True), 8, 1))


def test_a_stage_copies_a_slab() -> None:
    x = np.arange(300, dtype=np.float32).reshape(3, 100)
    np.testing.assert_array_equal(run(TILE_PROGRAMS["staged"], x)[0], x[:, ::-1][:, :64])
    x = np.arange(54, dtype=np.float32).reshape(6, 9)
    np.testing.assert_array_equal(run(TILE_PROGRAMS["staged_transposed"], x)[0], x[2:6, 3:8].T)


def staged_from(start: str) -> str:
    """A program that copies eight elements of a row from `start` on."""
    return kernel(
        "4x8xf32",
        "8xf32",
        "%t = 8 : thread",
        8,
        f"""
        %xs = tile.stage %in[1, {start}] : memref<4x8xf32> -> memref<8xf32, "shared">
        %v = loop.load %xs[%t] : memref<8xf32, "shared">
        loop.store %v, %out[%t] : memref<8xf32>""",
    )


def test_a_stage_is_zero_outside_of_its_source() -> None:
    np.testing.assert_array_equal(run(staged_from("3"), X)[0], [*X[1, 3:], 0, 0, 0])
    np.testing.assert_array_equal(run(staged_from("-1"), X)[0], [0, *X[1, :7]])


@pytest.mark.parametrize("name", TILE_PROGRAMS)
def test_kernels_compute_what_their_launches_do(name: str) -> None:
    module = parse(TILE_PROGRAMS[name])
    for inputs in random_inputs(module):
        expected = execute(module, inputs)[0]
        lowered = module.clone()
        MaterializeTilePass().apply(make_context(), lowered)
        assert compare(expected, execute(lowered, inputs)[0], f32) is None
