"""Bank conflicts and sectors per request, counted while a kernel is executed."""

import numpy as np
import pytest
from kernel_programs import INPUT, PROGRAMS, Program

from deplo import interpreter
from deplo.interpreter import AccessRow, access_rows


def rows_of(body: str, level: str = "kernel") -> dict[str, AccessRow]:
    """The rows of a kernel's accesses, by memory; each is accessed by one operation."""
    program = Program(body, np.array)
    module = program.cuda_module() if level == "cuda" else program.kernel_module()
    return {row.memory: row for row in access_rows(module, [INPUT])}


def store(where: str, rows: int, pitch: int, type: str = "f32", zero: str = "0.0") -> AccessRow:
    """What 32 threads do that store to shared memory."""
    memref = f'memref<{rows}x{pitch}x{type}, "shared">'
    body = f"""
%s = kernel.shared : {memref}
%z = arith.constant {zero} : {type}
%first = loop.test[%t < 32, %b < 1]
scf.if %first {{
  loop.store %z, %s[{where}] : {memref}
}}"""
    return rows_of(body)["s"]


@pytest.mark.parametrize(
    ("where", "rows", "pitch", "type", "turns"),
    [
        ("0, %t", 1, 32, "f32", 1),  # a row
        ("0, 31 - %t", 1, 32, "f32", 1),
        ("0, %t * 2", 1, 64, "f32", 2),
        ("0, %t * 4", 1, 128, "f32", 4),
        ("%t, 0", 32, 32, "f32", 32),  # a column: one bank
        ("%t, 0", 32, 33, "f32", 1),  # padded
        ("%t, 0", 32, 36, "f32", 4),
        ("%t, 0", 32, 16, "f32", 16),
        ("0, %t", 1, 32, "i16", 1),  # two threads share a word
        ("%t, 0", 32, 64, "i16", 32),
        ("0, %t", 1, 32, "f64", 1),  # half a warp at a time
        ("%t, 0", 32, 16, "f64", 16),
    ],
)
def test_turns_of_a_request(where: str, rows: int, pitch: int, type: str, turns: int) -> None:
    row = store(where, rows, pitch, type, "0" if type == "i16" else "0.0")
    assert (row.space, row.worst, row.cost, row.least) == ("shared", turns, turns, 1)
    assert row.requests == (2 if type == "f64" else 1)


def test_threads_that_read_one_word_share_it() -> None:
    body = """
%s = kernel.shared : memref<64xf32, "shared">
%z = arith.constant 0.0 : f32
loop.store %z, %s[%t] : memref<64xf32, "shared">
kernel.barrier
%v = loop.load %s[3] : memref<64xf32, "shared">
"""
    module = Program(body, np.array).kernel_module()
    load = next(row for row in access_rows(module, [INPUT]) if row.operation == "loop.load")
    assert (load.requests, load.worst) == (4, 1)


@pytest.mark.parametrize(
    ("where", "sectors"),
    [
        ("%b, %t", 4),  # 32 threads of 4 bytes
        ("%b, %t + 1", 5),
        ("%b, %t * 4", 16),
        ("%b, 7", 1),
        ("%t mod 8, 0", 8),
    ],
)
def test_sectors_of_a_request(where: str, sectors: int) -> None:
    row = rows_of(f"%v = loop.load %x[{where}] : memref<8x256xf32>")["x"]
    assert (row.space, row.requests, row.worst, row.cost) == ("global", 4, sectors, sectors)


def test_what_the_bytes_need_is_told_beside_it() -> None:
    assert rows_of("%v = loop.load %x[%b, %t * 4] : memref<8x256xf32>")["x"].least == 4
    wide = "%v, %w, %p, %q = kernel.vector_load %x[%b, %t * 4] : memref<8x256xf32> -> f32, f32, f32, f32"
    row = rows_of(wide)["x"]
    assert (row.cost, row.least) == (16, 16)


@pytest.mark.parametrize("level", ["kernel", "cuda"])
def test_copies_and_vectors_are_counted(level: str) -> None:
    program = PROGRAMS["pipeline"]
    module = program.cuda_module() if level == "cuda" else program.kernel_module()
    rows = {(row.operation.split(".")[1], row.memory): row for row in access_rows(module, [INPUT])}
    copy = "async_copy" if level == "kernel" else "cp_async"
    assert rows[(copy, "s")].worst == rows[(copy, "s")].cost == 1
    assert rows[("load", "s")].worst == 1
    assert rows[(copy, "x")].cost == rows[(copy, "x")].least == 16
    assert "k.mlir" in rows[("load", "s")].location


def test_nothing_is_counted_unasked() -> None:
    history = interpreter.History()
    interpreter.execute(PROGRAMS["pipeline"].kernel_module(), [INPUT], history)
    assert history.accesses is None
