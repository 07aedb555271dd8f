"""`deplo-opt` answers any bytes with a result or one short diagnostic: no traceback, 5 s, 1 GB."""

import os
import random
import subprocess
import time

import pytest

from .conftest import script

SECONDS = 5
PASSING = {
    "wide_integer_type_is_a_type": b"func.func private @f(tensor<99999999999xi8>)",
    "carriage_returns": b"func.func @f() {\r\n  func.return\r\n}\r\n",
    "long_name": b"func.func private @" + b"a" * 1_000_000 + b"()",
    "symbol_that_looks_like_code": b'func.func private @"evil\\0A}; system(1); //"()',
}
FAILING = {
    "nested_regions": (
        b'"builtin.module"() ({' * 300 + b"}) : () -> ()" * 300,
        "regions are nested",
    ),
    "nested_attributes": (
        b'"test.op"() {a = ' + b"[" * 1000 + b"]" * 1000,
        "attributes are nested",
    ),
    "nested_types": (
        b"func.func private @f(" + b"tuple<" * 500 + b"i32" + b">" * 500 + b")",
        "attributes are nested",
    ),
    "nested_parentheses": (
        b"#m = affine_map<(d0) -> (" + b"(" * 30_000 + b"d0" + b")" * 30_000 + b")>",
        "nested too deeply",
    ),
    "long_sum": (
        b"func.func private @f() attributes {m = affine_map<(d0) -> ("
        + b"d0 + " * 30_000
        + b"d0)>}",
        "nested too deeply",
    ),
    "large_splat": (
        b"%0 = arith.constant dense<1> : tensor<300000000xi8>",
        "300000000 elements is over the limit",
    ),
    "larger_splat": (
        b"%0 = arith.constant dense<1> : tensor<99999999999xi8>",
        "99999999999 elements is over the limit",
    ),
    "large_hexadecimal_splat": (
        b'%0 = arith.constant dense<"0x01"> : tensor<99999999999xi8>',
        "99999999999 elements is over the limit",
    ),
    "wide_integer": (b"%0 = arith.constant 1 : i99999999999", "limited to 65536 bits"),
    "long_integer": (b"%0 = arith.constant " + b"9" * 5000 + b" : i32", "too many digits"),
    "invalid_utf8": (
        b"func.func @f() {\n  \xff\xfe }",
        "<stdin>:2:3: error: invalid UTF-8 at byte 19",
    ),
    "nul": (b"func.func @f() {\n \x00 }", "<stdin>:2:2: error: Unexpected character"),
    "unterminated_string": (b'func.func @"abc', "<stdin>:1:12: error: End of file"),
    "unknown_op": (b"%0 = arith.adi %a, %b : i32", "unknown op 'arith.adi'; did you mean"),
    "unknown_dialect": (b"arit.addi", "unknown op 'arit.addi'; did you mean the dialect 'arith'"),
    "redefined_value": (
        b"func.func @f(%a: i32) {\n  %a = arith.constant 1 : i32\n}",
        "%a is already defined",
    ),
    "missing_block": (b"func.func @f() {\n cf.br ^foo\n}", "missing block declarations"),
    "cyclic_alias": (b"!a = !b\n!b = !a", "undefined symbol alias"),
    "many_results": (b"%0:1000000000 = arith.constant 1 : i32", "was given 1000000000 to bind"),
    "no_program": (b"", "the input holds no program"),
    "superscript_digit": ("%0 = arith.constant ² : i32".encode(), "error: invalid literal"),
}


def is_short_diagnostic(stderr: str) -> bool:
    """One located error, perhaps with its source line and two notes."""
    lines = stderr.splitlines()
    return 1 <= len(lines) <= 9 and "Traceback" not in stderr and stderr.count("error: ") == 1


@pytest.mark.parametrize("name", PASSING)
def test_odd_but_valid_input_passes(name, deplo_opt):
    done = deplo_opt(text=PASSING[name], timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FAILING)
def test_hostile_input_gets_one_short_diagnostic(name, deplo_opt):
    text, message = FAILING[name]
    done = deplo_opt(text=text, timeout=SECONDS)
    assert done.returncode == 1
    assert message in done.stderr
    assert is_short_diagnostic(done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("path", "message"),
    [("directory", "is a directory"), ("absent", "No such file"), ("fifo", "not a regular file")],
)
def test_what_is_no_file_is_refused(path, message, deplo_opt, tmp_path):
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    done = deplo_opt(path, timeout=SECONDS)
    assert done.returncode == 2
    assert message in done.stderr
    assert is_short_diagnostic(done.stderr)


def test_reader_that_closes_the_pipe_ends_the_driver_quietly(tmp_path):
    path = tmp_path / "a.mlir"
    path.write_text("".join(f"func.func private @f{i}()\n" for i in range(5000)))
    command = f"{script('deplo-opt')} {path} | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_closed_stdout_is_reported(tmp_path):
    path = tmp_path / "a.mlir"
    path.write_text("func.func private @f()\n")
    command = f"{script('deplo-opt')} {path} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: standard output is closed\n"


def test_full_disk_is_reported(tmp_path):
    path = tmp_path / "a.mlir"
    path.write_text("func.func private @f()\n")
    command = f"{script('deplo-opt')} {path} > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"


PROGRAM = b"""
func.func @main(%x: tensor<4x8xf32>, %i: index) -> f32 {
  %c = arith.constant dense<[1.0, 2.5]> : tensor<2xf32>
  %0 = scf.for %k = %i to %i step %i iter_args(%a = %i) -> (index) {
    %s = arith.addi %a, %k {note = "a\\0Ab", map = affine_map<(d0)[s0] -> (d0 + s0 * 4 mod 3)>} : index
    scf.yield %s : index
  }
  %v = tensor.extract %x[%0, %i] : tensor<4x8xf32>
  func.return %v : f32
}
"""


def test_damaged_programs_never_break_the_driver(capfd, tmp_path, monkeypatch):
    """Random edits of a program: the parser's only answers are a program or a diagnostic."""
    import sys

    from deplo.tools.deplo_opt import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "setrecursionlimit", lambda limit: None)
    rng = random.Random(0)
    path = tmp_path / "damaged.mlir"
    for _ in range(150):
        data = bytearray(PROGRAM)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            match rng.randrange(3):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randint(1, 8)]
                case _:
                    data[at:at] = data[at : at + rng.randint(1, 30)]
        path.write_bytes(bytes(data))
        start = time.process_time()
        code = run([str(path)])
        assert time.process_time() - start < SECONDS
        out, err = capfd.readouterr()
        assert code in (0, 1)
        assert (code == 0) == (err == "") == bool(out)
        assert "internal error" not in err, bytes(data)
