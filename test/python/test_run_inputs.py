"""`deplo-opt --run` refuses inputs that do not fit the program, and a second program that takes others."""

from pathlib import Path

import numpy as np
import pytest

from deplo.tools.deplo_opt import run

PROGRAM = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = tensor_ir.elementwise sub(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}"""
FITS = np.zeros((4, 8), np.float32)


def refusal(path: Path, *options: str) -> int:
    program = path / "program.mlir"
    program.write_text(PROGRAM)
    return run([str(program), "--run", *options])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": FITS, "y": np.float32(1)}, "argument 1: expected 2 axes, got 0"),
        ({"x": FITS, "z": FITS}, "@main has no %z"),
        ({"x": FITS}, "has 1 arrays, @main has 2 arguments"),
        ({"x": FITS, "y": FITS.astype(np.float64)}, "has float64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, message, tmp_path: Path, capfd):
    np.savez(tmp_path / "inputs.npz", **arrays)
    assert refusal(tmp_path, "--inputs", str(tmp_path / "inputs.npz")) == 2
    assert message in capfd.readouterr().err


def test_a_file_of_one_array_is_refused(tmp_path: Path, capfd):
    with (tmp_path / "inputs.npz").open("wb") as file:
        np.save(file, FITS)
    assert refusal(tmp_path, "--inputs", str(tmp_path / "inputs.npz")) == 2
    assert "it holds one array" in capfd.readouterr().err


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, capfd):
    (tmp_path / "inputs.npz").write_bytes(b"PK\x03\x04")
    assert refusal(tmp_path, "--inputs", str(tmp_path / "inputs.npz")) == 2
    assert "cannot read" in capfd.readouterr().err


@pytest.mark.parametrize("seed", ["-1", "1.5", "²"])
def test_a_seed_is_a_number_of_ascii_digits(seed, tmp_path: Path, capfd):
    assert refusal(tmp_path, "--inputs", f"random:{seed}") == 2
    assert "random:SEED" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (PROGRAM.replace("4x8", "4x9"), "argument 0, axis 1: expected 9"),
        (PROGRAM.replace("%x: ", "%w: tensor<4xf32>, %x: "), "expected 3 arguments, got 2"),
        (PROGRAM.replace("4x8", "32"), "argument 0: expected 1 axes, got 2"),
    ],
)
def test_a_program_with_other_arguments_is_not_compared(other, message, tmp_path: Path, capfd):
    (tmp_path / "other.mlir").write_text(other)
    assert refusal(tmp_path, "--compare", str(tmp_path / "other.mlir")) == 2
    error = capfd.readouterr().err
    assert "--compare: the other program takes other inputs" in error
    assert message in error


def test_a_function_of_several_blocks_is_not_executed(tmp_path: Path, capfd):
    path = tmp_path / "blocks.mlir"
    path.write_text("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  func.return %x : tensor<4xf32>
}""")
    assert run([str(path), "--run"]) == 1
    assert "@main branches from block to block" in capfd.readouterr().err
    assert run([str(path), "-p", "outline-repeats"]) == 0
    assert "cf.br" in capfd.readouterr().out


@pytest.mark.parametrize("inputs", ["random:1", "ones"])
@pytest.mark.parametrize(
    ("type", "reason"),
    [
        ("tensor<4xf8E5M2>", "there are no arrays of f8E5M2"),
        ("memref<4xi7>", "there are no arrays of i7"),
        ("tensor<4xui16>", "there are no arrays of ui16"),
        ("tensor<9999999999xf32>", "it needs an array of 9999999999 elements"),
        ("complex<f32>", "arguments are tensors or memrefs, not complex<f32>"),
    ],
)
def test_arguments_that_are_no_arrays_are_refused(type, reason, inputs, tmp_path: Path, capfd):
    path = tmp_path / "program.mlir"
    path.write_text(f"func.func @main(%x: {type}) -> {type} {{\n  return %x : {type}\n}}")
    assert run([str(path), "--run", "--inputs", inputs]) == 1
    assert reason in capfd.readouterr().err


COPY = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = loop.kernel @{0}(%x) : (tensor<4xf32>) -> tensor<4xf32> {{
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {{
      %v = loop.load %x[%i] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }}
  }}
  func.return %y : tensor<4xf32>
}}"""


@pytest.mark.parametrize("name", [r'"k k\22;"', r'"a\5Cb"', '"größe"', "int"])
def test_a_kernel_of_any_name_runs_on_the_cpu(name, tmp_path: Path, capfd):
    path = tmp_path / "program.mlir"
    path.write_text(COPY.format(name), encoding="utf-8")
    assert run([str(path), "--run", "--target", "cpu", "--compare", str(path)]) == 0
    assert "computes the same" in capfd.readouterr().out
