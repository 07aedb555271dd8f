"""Right programs as a person writes them become CUDA, and nothing has to be assumed of them."""

from pathlib import Path

import pytest
from wrong_kernels import FILL, RETURN, Y, Z, host, kernel
from wrong_programs import nest
from wrong_tiles import launch

from deplo.tools.deplo_opt import run

VECTOR = "?xf32, #sym.extents<s0>"


def vectors(body: str, out: str = VECTOR) -> str:
    """A kernel of one vector, x of s0 elements, and one output."""
    return f"""
func.func @main(%x: tensor<{VECTOR}>) -> tensor<{out}> {{
  %r = loop.kernel @k(%x) : (tensor<{VECTOR}>) -> tensor<{out}> {{
  ^bb0(%xs: memref<{VECTOR}>, %out: memref<{out}>):
    {body}
  }}
  func.return %r : tensor<{out}>
}}"""


RIGHT = {
    "loop: a dynamic tail behind a guard": (
        "loop",
        vectors(f"""loop.for %b = 0 to (s0 + 31) floordiv 32 {{
      loop.for %t = 0 to 32 {{
        %in = loop.test [%b * 32 + %t < s0]
        scf.if %in {{
          %v = loop.load %xs[%b * 32 + %t] : memref<{VECTOR}>
          loop.store %v, %out[%b * 32 + %t] : memref<{VECTOR}>
        }}
      }}
    }}"""),
    ),
    "loop: a dynamic vector behind a number": (
        "loop",
        vectors(
            f"""loop.for %i = 0 to s0 + 1 {{
      %first = loop.test [%i < 1]
      %v = scf.if %first -> (f32) {{
        %zero = arith.constant 0.0 : f32
        scf.yield %zero : f32
      }} else {{
        %w = loop.load %xs[%i - 1] : memref<{VECTOR}>
        scf.yield %w : f32
      }}
      loop.store %v, %out[%i] : memref<?xf32, #sym.extents<s0 + 1>>
    }}""",
            "?xf32, #sym.extents<s0 + 1>",
        ),
    ),
    "loop: a transpose by quotient and remainder": (
        "loop",
        nest(
            """loop.for %i = 0 to 32 {
      %v = loop.load %xs[%i floordiv 8, %i mod 8] : memref<4x8xf32>
      loop.store %v, %out[%i mod 8, %i floordiv 8] : memref<8x4xf32>
    }""",
            "8x4xf32",
        ),
    ),
    "loop: a concatenation by two stores": (
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      %v = loop.load %xs[%i, 0] : memref<4x8xf32>
      loop.store %v, %out[%i] : memref<8xf32>
      loop.store %v, %out[%i + 4] : memref<8xf32>
    }""",
            "8xf32",
        ),
    ),
    "loop: a limit below zero": (
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      %s = loop.for %j = 0 to min(8, %i - 2) reduce(add) -> f32 {
        %v = loop.load %xs[%i, %j] : memref<4x8xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }""",
            "4xf32",
        ),
    ),
    "tile: a combine that each block reaches or not": (
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %in = loop.test [%b < 2]
      %r = scf.if %in -> (f32) {
        %s = tile.combine add %v over(%t) : f32
        scf.yield %s : f32
      } else {
        scf.yield %v : f32
      }
      loop.store %r, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
    ),
    "tile: a combine behind what the block has found": (
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %m = tile.combine max %v over(%t) : f32
      %z = arith.constant 0.0 : f32
      %in = arith.cmpf olt, %z, %m : f32
      %r = scf.if %in -> (f32) {
        %s = tile.combine add %v over(%t) : f32
        scf.yield %s : f32
      } else {
        scf.yield %v : f32
      }
      loop.store %r, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
    ),
    "tile: a slab behind a condition that always holds": (
        "tile",
        launch(
            """%in = loop.test [%t < 8]
      scf.if %in {
        %s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1x8xf32, "shared">
        %v = loop.load %s[0, %t] : memref<1x8xf32, "shared">
        loop.store %v, %out[%b * 8 + %t] : memref<32xf32>
      }"""
        ),
    ),
    "kernel: shared memory used twice": (
        "kernel",
        kernel(
            FILL
            + """kernel.barrier
  %w = loop.load %s[127 - %t] : memref<128xf32, "shared">
  kernel.barrier
  loop.store %w, %s[%t] : memref<128xf32, "shared">
  kernel.barrier
  %u = loop.load %s[127 - %t] : memref<128xf32, "shared">
  loop.store %u, %y[%t] : memref<128xf32>"""
        ),
    ),
    "kernel: a shuffle": (
        "kernel",
        kernel(
            """%v = loop.load %x[%t] : memref<128xf32>
  %w = kernel.shuffle %v xor 16 : f32
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
    ),
    "kernel: an asynchronous copy": (
        "kernel",
        kernel(
            """kernel.async_copy %x[%t] to %s[%t] vector 1 : memref<128xf32> to memref<128xf32, "shared">
  kernel.async_commit
  kernel.async_wait 0
  kernel.barrier
  %v = loop.load %s[127 - %t] : memref<128xf32, "shared">
  loop.store %v, %y[%t] : memref<128xf32>"""
        ),
    ),
    "host: a sum that begins as a copy": (
        "kernel",
        host(
            Y + "kernel.launch @k(%x, %y) LAUNCH\n  kernel.launch @add(%x, %y) LAUNCH\n  " + RETURN
        ),
    ),
    "host: a place in the arena that is used again": (
        "kernel",
        host(
            Z.replace("alloc", "alloc at 0")
            + Y
            + "kernel.launch @k(%x, %z) LAUNCH\n  kernel.launch @k(%z, %y) LAUNCH\n  "
            + "%w = kernel.alloc at 0 : memref<128xf32>\n  kernel.launch @k(%y, %w) LAUNCH\n  "
            + "kernel.launch @add(%w, %y) LAUNCH\n  "
            + RETURN
        ),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_becomes_cuda(name, tmp_path: Path, capfd):
    level, text = RIGHT[name]
    path = tmp_path / "right.mlir"
    path.write_text(text)
    code = run([str(path), "-p", f"{level}-to-cuda", "-t", "cuda"])
    output = capfd.readouterr()
    assert (code, output.err) == (0, "")
    assert "__global__" in output.out


@pytest.mark.parametrize("extent", ["1000000000000", "99999999999999999999"])
def test_what_no_memory_holds_is_not_executed(extent, tmp_path: Path, capfd):
    path = tmp_path / "huge.mlir"
    path.write_text(f"""
func.func @main(%x: tensor<{extent}xf32>) -> tensor<{extent}xf32> {{
  %r = tensor_ir.elementwise exp(%x) : (tensor<{extent}xf32>) -> tensor<{extent}xf32>
  func.return %r : tensor<{extent}xf32>
}}""")
    assert run([str(path), "--run"]) == 1
    assert f"it needs an array of {extent} elements" in capfd.readouterr().err
